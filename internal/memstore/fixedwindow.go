package memstore

import (
	"cmp"
	"slices"

	"github.com/ration-go/ration/limit"
)

// A fixedWindow counts the units of each aligned window, in the order of windows.
// lua/fixedwindow.lua is the same in Redis, step by step; the comments there say
// why.
type fixedWindow struct {
	list  []windowCount
	begun bool // whether a window was added since the last trim
}

// A windowCount is a window in which units were booked.
type windowCount struct{ key, units int64 } // key is its number

// A windowView is a window as it stands: slots are in [opens, closes).
type windowView struct {
	from, opens, closes, to int64
	units                   int64 // that count
}

// A windows is what counts the units of windows, aligned or begun by calls.
type windows interface {
	// at returns the window that contains an instant.
	at(m meter, instant int64) windowView
	// windows returns those that are kept, in order.
	windows(m meter) []windowView
}

// earliestIn returns the first slot not before from in windows that admit a booking.
func earliestIn(w windows, m meter, from, cost, most int64) int64 {
	for {
		v := w.at(m, from)
		slot := max(from, v.opens)
		if slot < v.closes && (v.units+cost <= most || v.units == 0) {
			return slot
		}
		from = v.to
	}
}

// usageOf returns what is used of windows that have not ended.
func usageOf(w windows, m meter, now int64) (used, ahead, freeAt int64) {
	all := slices.DeleteFunc(w.windows(m), func(v windowView) bool { return v.to <= now })
	for _, v := range all {
		if v.from > now {
			ahead += v.units
		} else {
			used += v.units
		}
	}
	least, units := min(used+ahead, m.Max), int64(0)
	for _, v := range slices.Backward(all) {
		if units += v.units; least > 0 && units >= least {
			return used, ahead, v.to
		}
	}
	return used, ahead, 0
}

// fixedMargin is the part of a limit's margin that its windows have room for.
func fixedMargin(m meter) int64 { return min(m.Margin, m.Window/4) }

func compareWindows(w windowCount, key int64) int { return cmp.Compare(w.key, key) }

// find returns the place of the first window that is not before key, and whether
// it is key's. Most often it is the last one.
func (f *fixedWindow) find(key int64) (int, bool) {
	if last := len(f.list) - 1; last < 0 || f.list[last].key < key {
		return last + 1, false
	} else if f.list[last].key == key {
		return last, true
	}
	return slices.BinarySearchFunc(f.list, key, compareWindows)
}

// numberOf returns the number of the aligned window that contains an instant.
func numberOf(m meter, instant int64) int64 {
	local := limit.ZoneAt(m.Zone, m.transaction.now).Latest(instant)
	k := local / m.Window
	if local%m.Window < 0 {
		k--
	}
	return k
}

// aligned returns the aligned window of that number.
func (f *fixedWindow) aligned(m meter, key int64) windowView {
	z, margin := limit.ZoneAt(m.Zone, m.transaction.now), fixedMargin(m)
	w := windowView{from: z.Reaches(key * m.Window), to: z.Reaches((key + 1) * m.Window)}
	w.opens, w.closes = w.from+margin/2, w.to-margin
	if i, found := f.find(key); found {
		w.units = f.list[i].units
	}
	return w
}

// at returns the window that contains an instant.
func (f *fixedWindow) at(m meter, instant int64) windowView {
	return f.aligned(m, numberOf(m, instant))
}

// windows returns those that are kept.
func (f *fixedWindow) windows(m meter) []windowView {
	all := make([]windowView, len(f.list))
	for i, w := range f.list {
		all[i] = f.aligned(m, w.key)
	}
	return all
}

func (f *fixedWindow) earliest(m meter, from, cost, most int64) int64 {
	return earliestIn(f, m, from, cost, most)
}

// add enters units in a window.
func (f *fixedWindow) add(key, cost int64) {
	i, found := f.find(key)
	if !found {
		f.list = slices.Insert(f.list, i, windowCount{key: key})
		f.begun = true
	}
	f.list[i].units += cost
}

func (f *fixedWindow) commit(m meter, slot, cost int64) { f.add(numberOf(m, slot), cost) }

// cancel takes the units back.
func (f *fixedWindow) cancel(m meter, slot, cost int64) {
	i, found := f.find(numberOf(m, slot))
	if !found {
		return
	}
	if f.list[i].units -= cost; f.list[i].units <= 0 {
		f.list = slices.Delete(f.list, i, i+1)
	}
}

func (f *fixedWindow) record(m meter, slot, cost int64) {
	first, second := numberOf(m, slot), numberOf(m, slot+fixedMargin(m))
	f.add(first, cost)
	if second != first {
		f.add(second, cost)
	}
}

func (f *fixedWindow) usage(m meter, now int64) (used, ahead, freeAt int64) {
	return usageOf(f, m, now)
}

func (f *fixedWindow) left(m meter, slot int64) int64 { return f.at(m, slot).units }

func (f *fixedWindow) trim(m meter, now int64) {
	if !f.begun {
		return
	}
	f.begun = false
	oldest := numberOf(m, now-m.Window)
	f.list = slices.DeleteFunc(f.list, func(w windowCount) bool { return w.key < oldest })
}
