package simulated

import (
	"slices"
	"time"
)

// overtakers is how many later arrivals may be in a log before an earlier one is entered: calls that were stamped after
// it and got the lock before it. It is far above the handful of calls that are between the two at the same time.
const overtakers = 1024

// arrivals is a log of the arrivals that a rule counts, in order. It needs the lock of its provider.
//
// A rule looks back over at most depth arrivals to judge one, and an arrival is entered at most overtakers places
// before the end. So the last depth+overtakers are enough. The log is trimmed to that when it is twice as long, so that
// an addition takes constant time on average.
type arrivals struct {
	rule   rule
	depth  int
	stamps []time.Duration // since the provider's start, ascending
	states []int64         // what the rule keeps of each, such as when it ceases to count
}

// add enters an arrival at its place. It returns the place and the capacity left: the least at the arrival and at the
// later ones that it affects. A negative capacity means that the arrival is beyond the limit.
//
// An arrival with more overtakers than the log allows for is entered behind the last that it may precede.
func (a *arrivals) add(at time.Duration) (place, room int) {
	if keep := a.depth + overtakers; len(a.stamps) >= 2*keep {
		a.stamps = append(a.stamps[:0], a.stamps[len(a.stamps)-keep:]...)
		a.states = append(a.states[:0], a.states[len(a.states)-keep:]...)
	}

	place = len(a.stamps)
	for place > 0 && a.stamps[place-1] > at {
		if len(a.stamps)-place == overtakers {
			at = a.stamps[place-1]
			break
		}
		place--
	}
	a.stamps = slices.Insert(a.stamps, place, at)
	a.states = slices.Insert(a.states, place, 0)
	a.computeStates(place)

	room = a.rule.room(a, place)
	for later := place + 1; later < len(a.stamps) && a.rule.affects(a, place, later); later++ {
		room = min(room, a.rule.room(a, later))
	}
	return place, room
}

// remove removes the arrival at that place.
func (a *arrivals) remove(place int) {
	a.stamps = slices.Delete(a.stamps, place, place+1)
	a.states = slices.Delete(a.states, place, place+1)
	a.computeStates(place)
}

// computeStates computes the states of the arrivals from that place on.
func (a *arrivals) computeStates(place int) {
	for i := place; i < len(a.stamps); i++ {
		a.states[i] = a.rule.state(a, i)
	}
}

// roomAt returns the moment from which the next arrival is within the limit. The log must be full.
func (a *arrivals) roomAt() time.Duration { return a.rule.roomAt(a) }

// fullAt returns the moment from which none of the arrivals counts. The log must not be empty.
func (a *arrivals) fullAt() time.Duration { return a.rule.fullAt(a) }
