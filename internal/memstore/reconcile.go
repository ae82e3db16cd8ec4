package memstore

import (
	"math"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// reconcile records for each limit the units that the provider counted and the log lacks. The counting was done at some instant between slot and now.
func (c *transaction) reconcile(slot int64, scopes string, counted []int) []store.LimitReconciliation {
	all := make([]store.LimitReconciliation, len(counted))
	most, entered := int64(0), false
	for i := range c.set.Compiled {
		s := &c.set.Compiled[i]
		units, there := c.leftBetween(s, slot)
		lacking := max(0, int64(counted[i])-units)
		all[i] = store.LimitReconciliation{Counted: toInt(units), AtSlot: toInt(there), Missing: toInt(lacking)}
		switch {
		case lacking == 0 || !store.Covers(s.Scope, scopes):
		case s.Algorithm.IsLog():
			most = max(most, lacking)
		default:
			c.counter(s).enter(meter{s, c}, c.now, lacking)
			entered = true
		}
	}
	if most > 0 {
		l := plainQueue(scopes)
		at := max(c.now, c.account.last(l.name), c.account.segments.endOfFirst(scopes))
		c.lead(&l, at)
		c.log(&l, at, most)
		entered = true
	}
	if entered {
		c.finish()
	}
	return all
}

// toInt keeps a sum of units from wrapping around in an int of 32 bits.
func toInt(units int64) int { return int(min(units, math.MaxInt)) }

// leftBetween returns the units that a provider may have counted of a limit at any
// instant from slot to now, and those of them that had left by the slot.
func (c *transaction) leftBetween(s *store.CompiledLimit, slot int64) (units, there int64) {
	if s.Algorithm.IsLog() {
		runs := c.account.covered(s.Scope)
		units = runs.since(slot - s.Window)
		return units - runs.since(c.now), units - runs.since(slot)
	}
	m, counter := meter{s, c}, c.counter(s)
	there = counter.left(m, slot)
	units = max(there, counter.left(m, c.now))
	if s.Algorithm == limit.GCRA {
		// What has run out of the bucket since.
		units += (max(0, c.now-slot)*s.Max + s.Window - 1) / s.Window
	}
	return units, there
}
