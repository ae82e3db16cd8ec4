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
// it is key's.
func (f *fixedWindow) find(key int64) (int, bool) {
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

// counted returns the units that count of those booked in a window.
func counted(m meter, units, from, to int64) int64 {
	if units == 0 || from >= m.transaction.now {
		return units
	}
	return max(0, units-m.unusedIn(from, to))
}

// aligned returns the aligned window of that number.
func (f *fixedWindow) aligned(m meter, key int64) windowView {
	z, margin := limit.ZoneAt(m.Zone, m.transaction.now), fixedMargin(m)
	w := windowView{from: z.Reaches(key * m.Window), to: z.Reaches((key + 1) * m.Window)}
	w.opens, w.closes = w.from+margin/2, w.to-margin
	if i, found := f.find(key); found {
		w.units = counted(m, f.list[i].units, w.from, w.to)
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
	to := min(end, next)
	return windowView{w.key, w.key, min(end-2*margin, to), to, counted(m, w.units, w.key, to)}
}

// live returns the first-use windows but those that came to nothing.
func (f *fixedWindow) live(m meter) []windowCount {
	dead := func(i int) bool {
		w := f.list[i]
		return w.till == 0 && w.key < m.transaction.now && w.view(m, nextBeginning(f.list, i+1)).units == 0
	}
	for i := 0; i < len(f.list) && f.list[i].key < m.transaction.now; i++ {
		if dead(i) {
			some := slices.Clone(f.list[:i])
			for j := i + 1; j < len(f.list); j++ {
				if !dead(j) {
					some = append(some, f.list[j])
				}
			}
			return some
		}
	}
	return f.list
}

func nextBeginning(list []windowCount, i int) int64 {
	if i < len(list) {
		return list[i].key
	}
	return math.MaxInt64
}

// inUse returns the place of the first-use window that contains an instant, or of
// the one behind it, and whether it contains it.
func inUse(m meter, list []windowCount, instant int64) (i int, found bool) {
	i, _ = slices.BinarySearchFunc(list, instant+1, compareWindows)
	if i > 0 && instant < list[i-1].view(m, nextBeginning(list, i)).to {
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
	list := f.live(m)
	i, found := inUse(m, list, instant)
	next := nextBeginning(list, i)
	if found {
		return list[i].view(m, nextBeginning(list, i+1))
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
}

func (f *fixedWindow) commit(m meter, slot, cost int64) {
	key := slot
	if m.FirstUse {
		f.list = f.live(m)
		if i, found := inUse(m, f.list, slot); found {
			key = f.list[i].key
		}
	} else {
		key = numberOf(m, slot)
	}
	f.add(key, slot, cost)
}

func (f *fixedWindow) enter(m meter, slot, cost int64) {
	margin := fixedMargin(m)
	if !m.FirstUse {
		first, second := numberOf(m, slot), numberOf(m, slot+margin)
		f.add(first, slot, cost)
		if second != first {
			f.add(second, slot, cost)
		}
		return
	}
	f.list = f.live(m)
	i, found := inUse(m, f.list, slot)
	length := m.Window + margin
	if found || nextBeginning(f.list, i)-slot >= length {
		f.commit(m, slot, cost)
		return
	}
	if w := &f.list[i]; w.last < slot+length-2*margin {
		w.key = slot
	}
	f.add(f.list[i].key, slot, cost)
}

// ahead returns the windows that have not ended, and the units in all of them.
func (f *fixedWindow) ahead(m meter, now int64) (all []windowView, units int64) {
	list := f.list
	if m.FirstUse {
		list = f.live(m)
	}
	for i, w := range list {
		var v windowView
		if m.FirstUse {
			v = w.view(m, nextBeginning(list, i+1))
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

func (f *fixedWindow) usage(m meter, now int64) (used, freeAt int64) {
	all, used := f.ahead(m, now)
	if used == 0 {
		return 0, 0
	}
	least, units := min(used, m.Max), int64(0)
	for _, w := range slices.Backward(all) {
		if units += w.units; units >= least {
			return used, w.to
		}
	}
	return used, 0
}

func (f *fixedWindow) left(m meter, slot int64) int64 { return f.at(m, slot).units }

func (f *fixedWindow) trim(m meter, now int64) {
	if m.FirstUse {
		f.list = f.live(m)
	}
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
func (f *fixedWindow) reset(m meter, now, at int64) int64 {
	margin := fixedMargin(m)
	if at <= now || at > now+m.Window+margin {
		return 0
	}
	f.list = f.live(m)
	i, found := inUse(m, f.list, now)
	if !found {
		f.list = slices.Insert(f.list, i, windowCount{key: now})
		f.begun = true
	} else if end := f.list[i].view(m, math.MaxInt64).to; end-margin <= at && at <= end {
		return 0
	}
	w := f.list[i]
	w.till = at + margin
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
