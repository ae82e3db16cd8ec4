package external

import (
	"math"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A meter counts the bookings of an account by one limit.
type meter struct {
	store.CompiledLimit
	*account
	now int64
}

func (c *charge) meter(l store.CompiledLimit) meter { return meter{l, c.account, c.now} }

// covers reports whether the limit covers a booking.
func (m meter) covers(b *booking) bool {
	switch b.only {
	case "":
	case logs:
		if !m.Algorithm.IsLog() {
			return false
		}
	default:
		if b.only != m.Name {
			return false
		}
	}
	return store.Covers(m.Scope, scopesOf(b.queue))
}

// margin is that of windows between fixed instants, which have room for so much.
func (m meter) margin() int64 { return min(m.Margin, m.Window/4) }

// leaves returns the first instant at which the units of a slot are free again.
func (m meter) leaves(slot int64) int64 {
	switch {
	case m.Algorithm == limit.SubWindows:
		return slot - slot%m.Resolution + m.Resolution - 1 + m.Window + m.Margin
	case m.FirstUse:
		return m.windowAt(slot).until
	case m.Algorithm == limit.FixedWindow:
		return m.alignedAt(slot).ends
	case m.Algorithm == limit.SlidingWindow:
		return slot - slot%m.Window + 2*m.Window
	}
	return slot + m.Window // of a log, with its margin
}

// earliest returns the first slot not before from at which the limit admits the cost, if at
// most most units may be used. Every instant that it passes over admits it not.
func (m meter) earliest(from, cost, most int64) int64 {
	for slot := from; ; {
		var next int64
		switch m.Algorithm {
		case limit.GCRA:
			next = m.drop(slot, cost, most)
		case limit.SlidingWindow:
			next = m.slide(slot, cost, most)
		case limit.FixedWindow:
			if next = m.opens(slot); next == slot {
				next = m.fit(slot, cost, most)
			}
		default:
			next = m.fit(slot, cost, most)
		}
		if next == slot {
			return slot
		}
		slot = next
	}
}

// fit returns the slot if there is room at it, and at all slots up to when it is free
// again; otherwise a later instant up to which there is none.
func (m meter) fit(slot, cost, most int64) int64 {
	units, free := m.unitsAt(slot)
	if units+cost > most {
		return free
	}
	leaves := m.leaves(slot)
	for _, b := range m.bookings {
		if b.slot > slot && b.slot < leaves && m.covers(b) {
			if units, _ := m.unitsAt(b.slot); units+cost > most {
				return b.slot + 1
			}
		}
	}
	return slot
}

// unitsAt returns the units that count at an instant, and when the first of them leave.
func (m meter) unitsAt(at int64) (units, free int64) {
	free = math.MaxInt64
	for _, b := range m.bookings {
		if b.slot > at {
			break
		}
		if m.covers(b) {
			if leaves := m.leaves(b.slot); leaves > at {
				units, free = units+b.cost, min(free, leaves)
			}
		}
	}
	return units, free
}

// used returns the units that are used now, those that are booked ahead, and when the next is free.
func (m meter) used() (used, ahead, freeAt int64) {
	if m.Algorithm == limit.GCRA {
		all, freeAt := m.usedBucket()
		return min(all, m.Burst), max(0, all-m.Burst), freeAt
	}
	for _, b := range m.bookings {
		if m.covers(b) && m.begins(b.slot) > m.now {
			ahead += b.cost
		}
	}
	all, freeAt := m.total()
	return all - ahead, ahead, freeAt
}

// begins returns where the window, or the sub-window, begins by which a slot is counted; of an
// algorithm that has none it is the slot.
func (m meter) begins(slot int64) int64 {
	switch m.Algorithm {
	case limit.FixedWindow:
		if m.FirstUse {
			return m.windowAt(slot).begins
		}
		return m.alignedAt(slot).begins
	case limit.SlidingWindow:
		return slot - slot%m.Window
	case limit.SubWindows:
		return slot - slot%m.Resolution
	}
	return slot
}

// total returns the units that are used now or booked ahead, and when the next is free.
func (m meter) total() (used, freeAt int64) {
	if m.Algorithm == limit.SlidingWindow {
		return m.usedWeighted()
	}
	for _, b := range m.bookings {
		if m.covers(b) && m.leaves(b.slot) > m.now {
			used += b.cost
		}
	}
	units := used
	for _, b := range m.bookings {
		if m.covers(b) && m.leaves(b.slot) > m.now {
			if units -= b.cost; units < min(used, m.Max) {
				return used, m.leaves(b.slot)
			}
		}
	}
	return 0, 0
}

// counted returns the units that a provider may have counted at any instant from slot to
// now, and those of them that had left by the slot.
func (m meter) counted(slot int64) (units, atSlot int64) {
	switch m.Algorithm {
	case limit.GCRA:
		return m.countedBucket(slot)
	case limit.SlidingWindow:
		atSlot = m.weighted(slot)
		return max(atSlot, m.weighted(m.now)), atSlot
	}
	for _, b := range m.bookings {
		if m.covers(b) && m.leaves(b.slot) > slot && b.slot <= m.now {
			if units += b.cost; b.slot <= slot {
				atSlot += b.cost
			}
		}
	}
	return units, atSlot
}
