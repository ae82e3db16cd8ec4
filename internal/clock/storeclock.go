// Package clock reckons where the clock of a store stands.
package clock

import (
	"sync"
	"time"
)

// A storeClock tells where a store's clock stands, which is known from its answers
// alone: it was read after the question was asked and before the answer arrived, and
// between the two a busy machine can take long. But the clock goes on as ours does, so
// an answer that came fast bounds those that come after it. A step of a clock that is
// less than an answer was long on its way is not seen by this; what is told lies between
// the question and the answer all the same.
type Clock struct {
	mu              sync.Mutex
	soonest, latest sighting // the answers that bound it best
}

// A sighting is an instant of the store's clock, and the one of this process's clock
// that it does not come before, or behind.
type sighting struct{ now, at time.Time }

// drift is by how much two clocks may drift apart in a second: by no more than this do
// those that are kept in step by NTP, which slews a clock by half of it at the most.
const drift = time.Millisecond

// place returns between which instants of this process's clock the store's stood at
// now, as an answer tells that was asked for and arrived.
func (c *Clock) Place(now, asked, arrived time.Time) (soonest, latest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	soonest, latest = asked, arrived
	if at, off := c.latest.place(now, arrived); at.Add(off).Before(latest) {
		latest = at.Add(off)
	}
	if at, off := c.soonest.place(now, arrived); at.Add(-off).After(soonest) {
		soonest = at.Add(-off)
	}
	if latest.Before(soonest) || c.latest.at.IsZero() {
		// The first answer; or one of the clocks has stepped or stood still.
		soonest, latest = asked, arrived
	}
	if soonest.Equal(asked) {
		c.soonest = sighting{now, asked}
	}
	if latest.Equal(arrived) {
		c.latest = sighting{now, arrived}
	}
	return soonest, latest
}

// place returns where on this process's clock the store's stands at now if both have
// gone on alike since the sighting, and by how much they may not.
func (r sighting) place(now, arrived time.Time) (at time.Time, off time.Duration) {
	return r.at.Add(now.Sub(r.now)), time.Duration(arrived.Sub(r.at).Abs().Seconds() * float64(drift))
}
