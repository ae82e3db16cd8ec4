// Package clock estimates where the clock of a store stands.
package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/arrival"
)

// A Clock bounds when a store read its clock, which is known from its answers alone: after
// the question was asked and before the answer arrived. On a busy machine these can be far
// apart. But both clocks go on at the same rate, so an answer that came fast bounds those
// that come after it. A step of a clock that is smaller than an answer's time on its way is
// not noticed; the bounds lie between question and answer all the same. The zero Clock is
// ready, and safe for concurrent use.
type Clock struct {
	// Away is how long answers take: how far away the store is. Its value is zero if none came, or the store is in this process.
	Away arrival.Least
	// Learned reports whether [Clock.Learn] has succeeded. It is to be read only.
	Learned atomic.Bool

	mu              sync.Mutex // protects all below
	soonest, latest sighting   // the answers that bound it best
}

// A sighting is an instant of the store's clock, and one of this process's clock that is
// not later, or not earlier; and what the clock on the wall read at that one.
type sighting struct {
	now, at time.Time
	wall    int64
}

// Wall returns what the clock on the wall reads at an instant, in nanoseconds since 1970. The clock that
// instants are compared by, the monotonic one, stands still while a machine sleeps or a virtual one is
// paused; the one on the wall does not, but is set now and then. Tests replace Wall.
var Wall = time.Time.UnixNano

// napFrom is how much longer a time is by the wall's clock before it counts as a sleep of the machine:
// more than the wall's clock is slewed by.
const napFrom = time.Second

// Slept returns how long the machine slept, at least about napFrom, in a time that passed by the monotonic
// clock and by the wall's. If the wall's clock was set forward meanwhile that counts too: the two look the
// same. Zero: it did not sleep.
func Slept(passed, onWall time.Duration) time.Duration {
	if slept := onWall - passed; slept > napFrom && slept > napFrom+time.Duration(passed.Abs().Seconds()*float64(drift)) {
		return slept
	}
	return 0
}

// drift is how far two clocks may drift apart in a second: more than twice what NTP slews
// a clock by.
const drift = time.Millisecond

// Place returns the instants of this process's clock between which the store's clock stood
// at now, as an answer says that was asked for and arrived.
func (c *Clock) Place(now, asked, arrived time.Time) (soonest, latest time.Time) {
	c.Away.Note(arrived.Sub(asked), arrived)
	c.mu.Lock()
	defer c.mu.Unlock()
	soonest, latest = asked, arrived
	if at := c.latest.at.Add(now.Sub(c.latest.now) + c.latest.drifted(arrived)); at.Before(latest) {
		latest = at
	}
	if at := c.soonest.at.Add(now.Sub(c.soonest.now) - c.soonest.drifted(arrived)); at.After(soonest) {
		soonest = at
	}
	if latest.Before(soonest) || c.latest.at.IsZero() {
		// The first answer; or one of the clocks has stepped or stood still.
		soonest, latest = asked, arrived
	}
	if soonest.Equal(asked) {
		c.soonest = sighting{now, asked, Wall(asked)}
	}
	if latest.Equal(arrived) {
		c.latest = sighting{now, arrived, Wall(arrived)}
	}
	return soonest, latest
}

// stepFrom is the difference of clocks from which on it counts as a step.
const stepFrom = time.Second

// Stepped returns by how much the store's clock, in an answer that was asked for and arrived at
// those instants, is ahead of what it can be if it has not stepped. If it has not, the question took
// long to reach the store, and the answer counts as in Place.
func (c *Clock) Stepped(now, asked, arrived time.Time) (ahead time.Duration) {
	if _, most := c.Reads(arrived); !most.IsZero() {
		if ahead = now.Sub(most).Truncate(time.Microsecond); ahead > stepFrom {
			return ahead
		}
	}
	c.Place(now, asked, arrived)
	return 0
}

// Reads returns between which instants the store's clock stands at an instant of this process's
// clock, by the answers so far; zero: there was none. An answer that was read late, because the
// machine was busy or the process was stopped, moves neither. A machine that slept since the last
// answer moves the second: the store's clock may not have slept.
func (c *Clock) Reads(at time.Time) (least, most time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latest.at.IsZero() {
		return time.Time{}, time.Time{}
	}
	slept := Slept(at.Sub(c.soonest.at), time.Duration(Wall(at)-c.soonest.wall))
	return c.latest.now.Add(at.Sub(c.latest.at)), c.soonest.now.Add(at.Sub(c.soonest.at) + slept)
}

// drifted returns how far the clocks may have drifted apart since the sighting.
func (s sighting) drifted(at time.Time) time.Duration {
	return time.Duration(at.Sub(s.at).Abs().Seconds() * float64(drift))
}
