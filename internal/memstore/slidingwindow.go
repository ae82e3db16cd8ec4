package memstore

import (
	"maps"
	"math"
	"slices"
)

// A slidingWindow counts in two fixed windows, the older one weighted.
// lua/slidingwindow.lua is the same in Redis, step by step, and says why no call is
// refused and what may leave at worst. Windows are numbered from the epoch.
type slidingWindow struct {
	units map[int64]int64 // in each window
	caps  map[int64]int64 // of the window before
}

// part returns units * numerator / denominator, rounded down.
func (m meter) part(units, numerator, denominator int64) int64 {
	product := float64(units) * float64(numerator)
	part := math.Floor(product / float64(denominator))
	if product > 1<<53 {
		part--
	}
	return int64(math.Min(part, 1<<53))
}

// early is the margin, as far as a window has room for it.
func (m meter) early() int64 { return min(m.Margin, m.Window/4) }

// in returns the units that count in a window.
func (w *slidingWindow) in(m meter, k int64) int64 {
	units := w.units[k]
	if units > 0 {
		units = max(0, units-m.unusedIn(k*m.Window, (k+1)*m.Window))
	}
	return units
}

func (w *slidingWindow) earliest(m meter, from, cost, most int64) int64 {
	for k := from / m.Window; ; k++ {
		begins, ends := k*m.Window, (k+1)*m.Window-m.early()
		older, units := w.in(m, k-1), w.in(m, k)+cost
		limit, booked := w.caps[k+1]
		room := most - units
		if room < 0 || booked && units > limit {
			continue
		}
		slot := max(from, begins)
		if older > room {
			slot = max(slot, begins+m.early()+m.Window-m.part(room, m.Window, older))
		}
		if slot < ends {
			return slot
		}
	}
}

func (w *slidingWindow) commit(m meter, slot, cost int64) {
	if w.units == nil {
		w.units, w.caps = make(map[int64]int64), make(map[int64]int64)
	}
	k := slot / m.Window
	w.units[k] += cost
	left := (k+1)*m.Window - max(k*m.Window, slot-m.early())
	limit := m.part(max(0, m.Max-w.in(m, k)), m.Window, left)
	if known, booked := w.caps[k]; booked {
		limit = min(limit, known)
	}
	w.caps[k] = limit
}

func (w *slidingWindow) enter(m meter, slot, cost int64) { w.commit(m, slot, cost) }

func (w *slidingWindow) usage(m meter, now int64) (used, freeAt int64) {
	k := now / m.Window
	windows := []int64{k - 1, k}
	for j := range w.units {
		if j > k {
			windows = append(windows, j)
		}
	}
	slices.Sort(windows)
	rest := int64(0)
	for _, j := range windows[1:] {
		rest += w.in(m, j)
	}
	if used = w.weighted(m, now) + rest; used == 0 {
		return 0, 0
	}
	target := min(used, m.Max) - 1
	for i, j := range windows {
		if i > 0 {
			rest -= w.in(m, j)
		}
		if units := w.in(m, j); rest <= target && units > 0 {
			return used, (j+2)*m.Window - m.part(target-rest, m.Window, units)
		}
	}
	return used, 0
}

// weighted returns what the window before counts for, rounded up.
func (w *slidingWindow) weighted(m meter, now int64) int64 {
	k := now / m.Window
	product := float64(w.in(m, k-1)) * float64((k+1)*m.Window-now)
	return int64(math.Ceil(product / float64(m.Window)))
}

func (w *slidingWindow) left(m meter, slot int64) int64 {
	return w.weighted(m, slot) + w.in(m, slot/m.Window)
}

func (w *slidingWindow) trim(m meter, now int64) {
	old := func(k, _ int64) bool { return k < now/m.Window-2 }
	maps.DeleteFunc(w.units, old)
	maps.DeleteFunc(w.caps, old)
}
