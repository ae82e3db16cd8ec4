package memstore

import (
	"cmp"
	"math"
	"slices"
)

// firstUse counts the units of windows that begin with a call, in the order of windows. lua/firstuse.lua is the
// same in Redis, step by step; the comments there say why.
type firstUse struct {
	list  []callWindow
	begun bool // whether a window was added since the last trim
}

// A callWindow is a window that a call has begun.
type callWindow struct {
	key   int64 // its beginning
	units int64
	last  int64 // its last slot
	first int64 // the units at its beginning
	late  int64 // if it may have begun later, when it ends at the latest; 0: it has not
	till  int64 // the end that Reset set; 0: none
}

// view returns the window as it stands if the next one begins at next.
func (w callWindow) view(m meter, next int64) windowView {
	margin := fixedMargin(m)
	end := w.till
	if end == 0 {
		end = w.key + m.Window + margin
	}
	to := min(max(end, w.late), next)
	return windowView{w.key, w.key, min(end-2*margin, to), to, w.units}
}

func nextBeginning(list []callWindow, i int) int64 {
	if i < len(list) {
		return list[i].key
	}
	return math.MaxInt64
}

// inUse returns the place of the window that contains an instant, or of the one behind it, and whether it
// contains it.
func (f *firstUse) inUse(m meter, instant int64) (i int, found bool) {
	i = f.behind(instant)
	if i > 0 && instant < f.list[i-1].view(m, nextBeginning(f.list, i)).to {
		return i - 1, true
	}
	return i, false
}

// behind returns the place of the first window that begins behind an instant. Most often there is none.
func (f *firstUse) behind(instant int64) int {
	if last := len(f.list) - 1; last < 0 || f.list[last].key <= instant {
		return last + 1
	}
	i, _ := slices.BinarySearchFunc(f.list, instant+1, func(w callWindow, key int64) int { return cmp.Compare(w.key, key) })
	return i
}

// at returns the window that contains an instant. Where there is none it is one
// that a call at this instant would begin, if it ended before the next.
func (f *firstUse) at(m meter, instant int64) windowView {
	i, found := f.inUse(m, instant)
	if found {
		return f.list[i].view(m, nextBeginning(f.list, i+1))
	}
	next := nextBeginning(f.list, i)
	gap := windowView{from: instant, opens: instant, closes: instant, to: next}
	if next-instant >= m.Window+fixedMargin(m) {
		gap.closes = instant + 1
	}
	return gap
}

// windows returns those that are kept.
func (f *firstUse) windows(m meter) []windowView {
	all := make([]windowView, len(f.list))
	for i, w := range f.list {
		all[i] = w.view(m, nextBeginning(f.list, i+1))
	}
	return all
}

func (f *firstUse) earliest(m meter, from, cost, most int64) int64 {
	return earliestIn(f, m, from, cost, most)
}

func (f *firstUse) commit(m meter, slot, cost int64) {
	i, found := f.inUse(m, slot)
	if !found {
		f.list = slices.Insert(f.list, i, callWindow{key: slot})
		f.begun = true
	}
	f.list[i].add(slot, cost)
}

// add enters units in a window.
func (w *callWindow) add(slot, cost int64) {
	w.units += cost
	w.last = max(w.last, slot)
	if slot == w.key {
		w.first, w.late = w.first+cost, 0
	}
}

// cancel takes the units back. A window whose first call is gone begins with one of the others at the provider,
// nobody knows which: it may end as late as if that were the last.
func (f *firstUse) cancel(m meter, slot, cost int64) {
	i := f.behind(slot) - 1
	if i < 0 || slot > f.list[i].last {
		return
	}
	w := &f.list[i]
	w.units = max(0, w.units-cost)
	if w.units == 0 && w.till == 0 {
		f.list = slices.Delete(f.list, i, i+1)
		return
	}
	if slot == w.key {
		w.first = max(0, w.first-cost)
	}
	if w.first == 0 && w.till == 0 {
		w.late = w.last + m.Window + fixedMargin(m)
	}
}

func (f *firstUse) record(m meter, slot, cost int64) {
	i, found := f.inUse(m, slot)
	margin := fixedMargin(m)
	length := m.Window + margin
	if found || nextBeginning(f.list, i)-slot >= length {
		f.commit(m, slot, cost)
		return
	}
	w := &f.list[i]
	if w.last < slot+length-2*margin {
		w.key, w.first = slot, 0
	}
	w.add(slot, cost)
}

func (f *firstUse) usage(m meter, now int64) (used, ahead, freeAt int64) { return usageOf(f, m, now) }

func (f *firstUse) left(m meter, slot int64) int64 { return f.at(m, slot).units }

func (f *firstUse) trim(m meter, now int64) {
	if !f.begun {
		return
	}
	f.begun = false
	oldest := now - m.Window
	f.list = slices.DeleteFunc(f.list, func(w callWindow) bool {
		return w.key < oldest && w.view(m, math.MaxInt64).to <= oldest
	})
}

// reset corrects the window under way, or begins one, so that it ends at an
// instant. It returns the instant before which no slot may come that was booked,
// or 0.
func (f *firstUse) reset(m meter, now, at, within int64) int64 {
	margin := fixedMargin(m)
	if at <= now || at > now+m.Window+margin {
		return 0
	}
	i, found := f.inUse(m, now)
	if !found {
		f.list = slices.Insert(f.list, i, callWindow{key: now})
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
