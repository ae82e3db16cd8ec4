package memstore

import (
	"math"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// reconcile records for each limit the units that the provider counted and the log lacks. The
// counting was done at some instant between slot and now. The number is for what it records.
func (c *transaction) reconcile(number, slot int64, scopes string, counted []int) []store.LimitReconciliation {
	all := make([]store.LimitReconciliation, len(counted))
	most, entered := int64(0), false
	for i, m := range c.meters {
		units, there := m.leftBetween(slot)
		lacking := max(0, int64(counted[i])-units)
		all[i] = store.LimitReconciliation{Counted: toInt(units), AtSlot: toInt(there), Missing: toInt(lacking)}
		switch {
		case lacking == 0 || !store.Covers(m.Scope, scopes):
		case m.counter == nil:
			most = max(most, lacking)
		default:
			m.counter.record(m, c.now, lacking)
			entered = true
		}
	}
	l := plainQueue(scopes)
	if most > 0 {
		c.addToLog(&l, c.now, number, most)
		entered = true
	}
	if entered {
		c.account.lead(l.name, c.now)
		c.finish()
	}
	return all
}

// toInt keeps a sum of units from wrapping around in an int of 32 bits.
func toInt(units int64) int { return int(min(units, math.MaxInt)) }

// leftBetween returns the units that a provider may have counted of the limit at any
// instant from slot to now, and those of them that had left by the slot.
func (m meter) leftBetween(slot int64) (units, there int64) {
	c := m.transaction
	if m.counter == nil {
		all := c.account.log(m.Scope)
		units = all.after(slot - m.Window)
		return units - all.after(c.now), units - all.after(slot)
	}
	there = m.counter.left(m, slot)
	units = max(there, m.counter.left(m, c.now))
	if m.Algorithm == limit.GCRA {
		// What has run out of the bucket since.
		units += (max(0, c.now-slot)*m.Max + m.Window - 1) / m.Window
	}
	return units, there
}
