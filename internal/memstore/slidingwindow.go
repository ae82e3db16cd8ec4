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
	units  map[int64]int64 // in each window
	caps   map[int64]int64 // of the window before
	oldest int64           // no window before this one is kept
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

func (w *slidingWindow) earliest(m meter, from, cost, most int64) int64 {
	for k := from / m.Window; ; k++ {
		begins, ends := k*m.Window, (k+1)*m.Window-m.early()
		older, units := w.units[k-1], w.units[k]+cost
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
	w.oldest = min(w.oldest, k)
	left := (k+1)*m.Window - max(k*m.Window, slot-m.early())
	limit := m.part(max(0, m.Max-w.units[k]), m.Window, left)
	if known, booked := w.caps[k]; booked {
		limit = min(limit, known)
	}
	w.caps[k] = limit
}

// cancel takes the units back. Of others in the window the cap stays: it is that of the
// earliest of them, which need not be the one that goes.
func (w *slidingWindow) cancel(m meter, slot, cost int64) {
	k := slot / m.Window
	if w.units[k] > cost {
		w.units[k] -= cost
		return
	}
	delete(w.units, k)
	delete(w.caps, k)
}

func (w *slidingWindow) record(m meter, slot, cost int64) { w.commit(m, slot, cost) }

func (w *slidingWindow) usage(m meter, now int64) (used, ahead, freeAt int64) {
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
		rest += w.units[j]
	}
	ahead = rest - w.units[k]
	if used = w.weighted(m, now) + rest; used == 0 {
		return 0, 0, 0
	}
	target := min(used, m.Max) - 1
	for i, j := range windows {
		if i > 0 {
			rest -= w.units[j]
		}
		if units := w.units[j]; rest <= target && units > 0 {
			return used - ahead, ahead, (j+2)*m.Window - m.part(target-rest, m.Window, units)
		}
	}
	return used - ahead, ahead, 0
}

// weighted returns what the window before counts for, rounded up.
func (w *slidingWindow) weighted(m meter, now int64) int64 {
	k := now / m.Window
	product := float64(w.units[k-1]) * float64((k+1)*m.Window-now)
	return int64(math.Ceil(product / float64(m.Window)))
}

func (w *slidingWindow) left(m meter, slot int64) int64 {
	return w.weighted(m, slot) + w.units[slot/m.Window]
}

func (w *slidingWindow) trim(m meter, now int64) {
	oldest := now/m.Window - 2
	if oldest <= w.oldest {
		return
	}
	w.oldest = oldest
	old := func(k, _ int64) bool { return k < oldest }
	maps.DeleteFunc(w.units, old)
	maps.DeleteFunc(w.caps, old)
}
