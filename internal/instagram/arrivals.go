package instagram

import (
	"slices"
	"sort"
	"time"
)

// overtakers is how many later arrivals may be in a log before an earlier one. It is far above the number of calls that
// are between their stamp and the lock at the same time, which is a handful.
const overtakers = 1024

// arrivals is a log of the arrivals that matter to a limit, in order. It needs the lock of its provider.
//
// The windows of an arrival reach back over limit arrivals at most before one is known to be too many, and an arrival
// comes at most overtakers places before the end. So the last limit+overtakers are enough to judge any, and twice that
// is kept at most: trimmed by halves, an addition costs constant time on average.
type arrivals struct {
	limit  int
	window time.Duration
	stamps []time.Duration // since the provider's start, ascending
}

// add enters an arrival at its place, and returns that place and the number of arrivals in the fullest window that
// contains it. Beyond the limit the number says only that it is beyond.
//
// An arrival with more overtakers than the log allows for is moved up behind the last it cannot pass.
func (a *arrivals) add(at time.Duration) (place, inWindow int) {
	if keep := a.limit + overtakers; len(a.stamps) >= 2*keep {
		a.stamps = append(a.stamps[:0], a.stamps[len(a.stamps)-keep:]...)
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

	// The fullest window ends at an arrival: at this one, or at one that overtook it.
	for _, end := range a.stamps[place:] {
		if end-at >= a.window {
			break
		}
		inWindow = max(inWindow, a.inWindowAt(end))
	}
	return place, inWindow
}

// remove takes back the arrival at that place.
func (a *arrivals) remove(place int) {
	a.stamps = slices.Delete(a.stamps, place, place+1)
}

// inWindowAt is the number of arrivals in the window that ends at that moment: those at the moment itself are in it,
// those exactly one window earlier are not.
func (a *arrivals) inWindowAt(at time.Duration) int {
	return a.upTo(at) - a.upTo(at-a.window)
}

// upTo is the number of arrivals in the log at that moment or before.
func (a *arrivals) upTo(at time.Duration) int {
	return sort.Search(len(a.stamps), func(i int) bool { return a.stamps[i] > at })
}

// roomAt is the moment from which the next arrival is within the limit. The log must hold limit arrivals or more.
func (a *arrivals) roomAt() time.Duration {
	return a.stamps[len(a.stamps)-a.limit] + a.window
}
