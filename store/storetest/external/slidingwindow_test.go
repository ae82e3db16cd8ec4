package external

import (
	"math/bits"
	"slices"
)

// A SlidingWindow limit counts the units of the window under way, and of the one before it
// the part that still overlaps the window that slides. Windows are numbered from the epoch.

// in returns the units of a window that have left up to an instant.
func (m meter) in(number, until int64) (units int64) {
	for _, b := range m.bookings {
		if b.slot/m.Window == number && b.slot <= until && m.covers(b) {
			units += b.cost
		}
	}
	return units
}

// overlap returns how much of the window before a slot's own still counts at the slot.
func (m meter) overlap(slot int64) int64 {
	begins := slot - slot%m.Window
	return begins + m.Window - max(begins, slot-m.margin())
}

// exceeds reports whether a part of older units is more than there is room for.
func (m meter) exceeds(older, part, room int64) bool {
	if room < 0 {
		return true
	}
	high, low := bits.Mul64(uint64(older), uint64(part))
	most, least := bits.Mul64(uint64(room), uint64(m.Window))
	return high > most || high == most && low > least
}

// slide returns the slot if the limit admits the cost then, and still all that is booked
// behind it; otherwise a later instant up to which it does not.
func (m meter) slide(slot, cost, most int64) int64 {
	number := slot / m.Window
	begins, ends := number*m.Window, (number+1)*m.Window
	older, room := m.in(number-1, slot), most-m.in(number, slot)-cost
	switch {
	case slot >= ends-m.margin() || room < 0:
		return ends
	case m.exceeds(older, m.overlap(slot), room):
		high, low := bits.Mul64(uint64(room), uint64(m.Window))
		part, _ := bits.Div64(high, low, uint64(older))
		return min(ends, begins+m.margin()+m.Window-int64(part))
	}
	for _, b := range m.bookings {
		if b.slot <= slot || !m.covers(b) {
			continue
		}
		later := b.slot / m.Window
		switch {
		case later == number && m.exceeds(older, m.overlap(b.slot), most-m.in(number, b.slot)-cost):
			return b.slot + 1
		case later == number+1 && m.exceeds(m.in(number, b.slot)+cost, m.overlap(b.slot), most-m.in(later, b.slot)):
			return ends
		}
	}
	return slot
}

// weigh returns what units of the window before an instant's own count then, rounded up.
func (m meter) weigh(units, at int64) int64 {
	high, low := bits.Mul64(uint64(units), uint64(m.Window-at%m.Window))
	part, rest := bits.Div64(high, low, uint64(m.Window))
	if rest > 0 {
		part++
	}
	return int64(part)
}

// weighted returns what counts at an instant.
func (m meter) weighted(at int64) int64 {
	number := at / m.Window
	return m.weigh(m.in(number-1, at), at) + m.in(number, at)
}

func (m meter) usedWeighted() (used, freeAt int64) {
	now := m.now / m.Window
	numbers := []int64{now - 1, now}
	units := make(map[int64]int64)
	rest := int64(0)
	for _, b := range m.bookings {
		if number := b.slot / m.Window; number >= now-1 && m.covers(b) {
			units[number] += b.cost
			if numbers = append(numbers, number); number >= now {
				rest += b.cost
			}
		}
	}
	slices.Sort(numbers)
	used = m.weigh(units[now-1], m.now) + rest
	least := min(used, m.Max) - 1
	for _, number := range slices.Compact(numbers) {
		if number >= now {
			rest -= units[number]
		}
		if rest <= least && units[number] > 0 {
			high, low := bits.Mul64(uint64(least-rest), uint64(m.Window))
			part, _ := bits.Div64(high, low, uint64(units[number]))
			return used, (number+2)*m.Window - int64(part)
		}
	}
	return used, 0
}
