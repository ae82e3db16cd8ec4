package simulated

import (
	"slices"
	"sort"
	"time"
)

// overtakers is how many later arrivals may be in a log before an earlier one. It is far above the number of calls that
// are between their stamp and the lock at the same time, which is a handful.
const overtakers = 1024

// arrivals is a log of the arrivals that matter to a rule, in order. It needs the lock of its provider.
//
// A rule looks back over depth arrivals at most before one is known to be too many, and an arrival comes at most
// overtakers places before the end. So the last depth+overtakers are enough to judge any, and twice that is kept at
// most: trimmed by halves, an addition costs constant time on average.
type arrivals struct {
	rule   rule
	depth  int
	stamps []time.Duration // since the provider's start, ascending
	marks  []int64         // the rule's, of each
}

// add enters an arrival at its place, and returns that place and the room that it leaves: the least at it and at those
// that overtook it and are affected. Negative room tells that the arrival is beyond the limit.
//
// An arrival with more overtakers than the log allows for is moved up behind the last it cannot pass.
func (a *arrivals) add(at time.Duration) (place, room int) {
	if keep := a.depth + overtakers; len(a.stamps) >= 2*keep {
		a.stamps = append(a.stamps[:0], a.stamps[len(a.stamps)-keep:]...)
		a.marks = append(a.marks[:0], a.marks[len(a.marks)-keep:]...)
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
	a.marks = slices.Insert(a.marks, place, 0)
	a.mark(place)

	room = a.rule.room(a, place)
	for later := place + 1; later < len(a.stamps) && a.rule.bears(a, place, later); later++ {
		room = min(room, a.rule.room(a, later))
	}
	return place, room
}

// remove takes back the arrival at that place.
func (a *arrivals) remove(place int) {
	a.stamps = slices.Delete(a.stamps, place, place+1)
	a.marks = slices.Delete(a.marks, place, place+1)
	a.mark(place)
}

// mark marks the arrivals from that place on.
func (a *arrivals) mark(place int) {
	for i := place; i < len(a.stamps); i++ {
		a.marks[i] = a.rule.mark(a, i)
	}
}

// roomAt is the moment from which the next arrival is within the limit. The log must be full.
func (a *arrivals) roomAt() time.Duration { return a.rule.roomAt(a) }

// fullAt is the moment from which none of the arrivals counts. The log must not be empty.
func (a *arrivals) fullAt() time.Duration { return a.rule.fullAt(a) }

// upTo is the number of arrivals in the log at that moment or before.
func (a *arrivals) upTo(at time.Duration) int {
	return sort.Search(len(a.stamps), func(i int) bool { return a.stamps[i] > at })
}
