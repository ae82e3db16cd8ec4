package memstore

import (
	"cmp"
	"math"
	"slices"

	"github.com/ration-go/ration/limit"
)

// A fixedWindow counts the units of each window, in the order of windows.
// lua/fixedwindow.lua is the same in Redis, step by step; the comments there say
// why.
type fixedWindow struct {
	list  []windowCount
	begun bool // whether a window was added since the last trim
}

// A windowCount is a window in which units were booked.
type windowCount struct {
	key   int64 // its number; of a first-use window, its beginning
	units int64
	last  int64 // of a first-use window, its last slot
	first int64 // of a first-use window, the units at its beginning
	late  int64 // of a first-use window that may have begun later, when it ends at the latest; 0: it has not
	till  int64 // of a first-use window, the end that Reset set; 0: none
}

// A windowView is a window as it stands: slots are in [opens, closes).
type windowView struct {
	from, opens, closes, to int64
	units                   int64 // that count
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

// view returns a first-use window if the next one begins at next.
func (w windowCount) view(m meter, next int64) windowView {
	margin := fixedMargin(m)
	end := w.till
	if end == 0 {
		end = w.key + m.Window + margin
	}
	to := min(max(end, w.late), next)
	return windowView{w.key, w.key, min(end-2*margin, to), to, w.units}
}

func nextBeginning(list []windowCount, i int) int64 {
	if i < len(list) {
		return list[i].key
	}
	return math.MaxInt64
}

// inUse returns the place of the first-use window that contains an instant, or of
// the one behind it, and whether it contains it.
func (f *fixedWindow) inUse(m meter, instant int64) (i int, found bool) {
	i, _ = f.find(instant + 1)
	if i > 0 && instant < f.list[i-1].view(m, nextBeginning(f.list, i)).to {
		return i - 1, true
	}
	return i, false
}

// at returns the window that contains an instant. Where there is none it is one
// that a call at this instant would begin, if it ended before the next.
func (f *fixedWindow) at(m meter, instant int64) windowView {
	if !m.FirstUse {
		return f.aligned(m, numberOf(m, instant))
	}
	i, found := f.inUse(m, instant)
	next := nextBeginning(f.list, i)
	if found {
		return f.list[i].view(m, nextBeginning(f.list, i+1))
	}
	gap := windowView{from: instant, opens: instant, closes: instant, to: next}
	if next-instant >= m.Window+fixedMargin(m) {
		gap.closes = instant + 1
	}
	return gap
}

func (f *fixedWindow) earliest(m meter, from, cost, most int64) int64 {
	for {
		w := f.at(m, from)
		slot := max(from, w.opens)
		if slot < w.closes && (w.units+cost <= most || w.units == 0) {
			return slot
		}
		from = w.to
	}
}

// add enters units in a window.
func (f *fixedWindow) add(key, slot, cost int64) {
	i, found := f.find(key)
	if !found {
		f.list = slices.Insert(f.list, i, windowCount{key: key})
		f.begun = true
	}
	w := &f.list[i]
	w.units += cost
	w.last = max(w.last, slot)
	if slot == w.key {
		w.first, w.late = w.first+cost, 0
	}
}

func (f *fixedWindow) commit(m meter, slot, cost int64) {
	key := slot
	if m.FirstUse {
		if i, found := f.inUse(m, slot); found {
			key = f.list[i].key
		}
	} else {
		key = numberOf(m, slot)
	}
	f.add(key, slot, cost)
}

// cancel takes the units back. A first-use window whose first call is gone begins with one of
// the others at the provider, nobody knows which: it may end as late as if that were the last.
func (f *fixedWindow) cancel(m meter, slot, cost int64) {
	i, found := f.find(numberOf(m, slot))
	if m.FirstUse {
		i, _ = f.find(slot + 1)
		i--
		found = i >= 0 && slot <= f.list[i].last
	}
	if !found {
		return
	}
	w := &f.list[i]
	w.units -= cost
	if w.units <= 0 && w.till == 0 {
		f.list = slices.Delete(f.list, i, i+1)
		return
	}
	w.units = max(0, w.units)
	if slot == w.key {
		w.first = max(0, w.first-cost)
	}
	if m.FirstUse && w.first == 0 && w.till == 0 {
		w.late = w.last + m.Window + fixedMargin(m)
	}
}

func (f *fixedWindow) record(m meter, slot, cost int64) {
	margin := fixedMargin(m)
	if !m.FirstUse {
		first, second := numberOf(m, slot), numberOf(m, slot+margin)
		f.add(first, slot, cost)
		if second != first {
			f.add(second, slot, cost)
		}
		return
	}
	i, found := f.inUse(m, slot)
	length := m.Window + margin
	if found || nextBeginning(f.list, i)-slot >= length {
		f.commit(m, slot, cost)
		return
	}
	if w := &f.list[i]; w.last < slot+length-2*margin {
		w.key, w.first = slot, 0
	}
	f.add(f.list[i].key, slot, cost)
}

// ahead returns the windows that have not ended, and the units in all of them.
func (f *fixedWindow) ahead(m meter, now int64) (all []windowView, units int64) {
	for i, w := range f.list {
		var v windowView
		if m.FirstUse {
			v = w.view(m, nextBeginning(f.list, i+1))
		} else {
			v = f.aligned(m, w.key)
		}
		if v.to > now {
			all = append(all, v)
			units += v.units
		}
	}
	return all, units
}

func (f *fixedWindow) usage(m meter, now int64) (used, ahead, freeAt int64) {
	all, total := f.ahead(m, now)
	if total == 0 {
		return 0, 0, 0
	}
	for _, w := range all {
		if w.from > now {
			ahead += w.units
		}
	}
	least, units := min(total, m.Max), int64(0)
	for _, w := range slices.Backward(all) {
		if units += w.units; units >= least {
			return total - ahead, ahead, w.to
		}
	}
	return total - ahead, ahead, 0
}

func (f *fixedWindow) left(m meter, slot int64) int64 { return f.at(m, slot).units }

func (f *fixedWindow) trim(m meter, now int64) {
	if !f.begun {
		return
	}
	f.begun = false
	oldest := now - m.Window
	if !m.FirstUse {
		oldest = numberOf(m, oldest)
	}
	f.list = slices.DeleteFunc(f.list, func(w windowCount) bool {
		return w.key < oldest && (!m.FirstUse || w.view(m, math.MaxInt64).to <= oldest)
	})
}

// reset corrects the window under way, or begins one, so that it ends at an
// instant. It returns the instant before which no slot may come that was booked,
// or 0.
func (f *fixedWindow) reset(m meter, now, at, within int64) int64 {
	margin := fixedMargin(m)
	if at <= now || at > now+m.Window+margin {
		return 0
	}
	i, found := f.inUse(m, now)
	if !found {
		f.list = slices.Insert(f.list, i, windowCount{key: now})
		f.begun = true
	} else if end := f.list[i].view(m, math.MaxInt64).to; end-margin-within <= at && at <= end+within {
		return 0
	}
	w := f.list[i]
	w.till, w.late = max(at, min(at+within, now+m.Window))+margin, 0
	j := i + 1
	for ; j < len(f.list) && f.list[j].key < w.till; j++ {
		w.units += f.list[j].units
		w.last = max(w.last, f.list[j].last)
	}
	merged := j > i+1
	f.list = slices.Delete(f.list, i+1, j)
	f.list[i] = w
	v := w.view(m, math.MaxInt64)
	if w.last >= v.closes || merged && v.units > m.Max {
		return w.last + 1
	}
	return 0
}
