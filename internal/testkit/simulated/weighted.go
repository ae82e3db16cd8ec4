package simulated

import (
	"math/bits"
	"sort"
	"time"
)

// weighted is the rule of CountWeighted. A call's state is the number of calls in its window so far, itself included.
type weighted struct {
	start  *time.Time
	limit  int
	window time.Duration
}

func (w weighted) state(a *arrivals, place int) int64 {
	if place > 0 && a.stamps[place-1] >= w.begin(a.stamps[place]) {
		return a.states[place-1] + 1
	}
	return 1
}

func (w weighted) room(a *arrivals, place int) int {
	begin := w.begin(a.stamps[place])
	return w.limit - w.estimate(w.previous(a, place, begin), a.stamps[place]-begin) - int(a.states[place])
}

func (w weighted) affects(a *arrivals, place, later int) bool {
	return a.stamps[later] < w.begin(a.stamps[place])+2*w.window
}

// roomAt searches for the moment: while no call comes the estimate never rises, and after two windows it is 0.
func (w weighted) roomAt(a *arrivals) time.Duration {
	last := len(a.stamps) - 1
	at := a.stamps[last]
	begin := w.begin(at)
	previous, current := w.previous(a, last, begin), int(a.states[last])
	wait := sort.Search(int(2*w.window), func(wait int) bool {
		elapsed := at + time.Duration(wait) - begin
		if elapsed < w.window {
			return w.estimate(previous, elapsed)+current < w.limit
		}
		return elapsed >= 2*w.window || w.estimate(current, elapsed-w.window) < w.limit
	})
	return at + time.Duration(wait)
}

// fullAt returns the end of the window after the last call's, in which that call still has a weight.
func (w weighted) fullAt(a *arrivals) time.Duration {
	return w.begin(a.stamps[len(a.stamps)-1]) + 2*w.window
}

func (w weighted) begin(at time.Duration) time.Duration {
	return fixedWindow{w.start, w.window, time.UTC}.begin(at)
}

// previous returns the number of calls in the window before the one that begins there and holds the call at that place.
func (w weighted) previous(a *arrivals, place int, begin time.Duration) int {
	before := sort.Search(place, func(i int) bool { return a.stamps[i] >= begin }) - 1
	if before < 0 || a.stamps[before] < begin-w.window {
		return 0
	}
	return int(a.states[before])
}

// estimate returns how many of the previous window's calls still count. It is rounded up, because the rest of the
// estimate is a whole number.
func (w weighted) estimate(previous int, elapsed time.Duration) int {
	high, low := bits.Mul64(uint64(previous), uint64(w.window-elapsed)) // may be beyond 64 bits
	whole, rest := bits.Div64(high, low, uint64(w.window))
	if rest > 0 {
		whole++
	}
	return int(whole)
}
