package simulated

import (
	"math"
	"time"
)

// gcra is the rule of CountGCRA, as a leaky bucket: a call adds Window to its level, Limit leaks in a nanosecond, and it
// overflows above Burst*Window. The level is (TAT - now)*Limit, which is a whole number even if TAT is not. A call's
// state is the level with it. Burst*Window must be below 2^63 ns, which is 292 years.
type gcra struct {
	limit  int
	window time.Duration
	burst  int
}

func (g gcra) state(a *arrivals, place int) int64 {
	call := int64(g.window)
	if place == 0 {
		return call
	}
	level, since := a.states[place-1], int64(a.stamps[place]-a.stamps[place-1])
	if since > level/int64(g.limit) { // empty by then
		return call
	}
	return min(level-since*int64(g.limit), math.MaxInt64-call) + call // refused calls may count without end
}

func (g gcra) room(a *arrivals, place int) int {
	call := int64(g.window)
	free := int64(g.burst)*call - a.states[place]
	if free < 0 {
		return -1
	}
	return int(free / call)
}

// affects reports whether the bucket was never empty between the two.
func (g gcra) affects(a *arrivals, _, later int) bool { return a.states[later] > int64(g.window) }

func (g gcra) roomAt(a *arrivals) time.Duration {
	return g.levelAt(a, int64(g.burst-1)*int64(g.window))
}

func (g gcra) fullAt(a *arrivals) time.Duration { return g.levelAt(a, 0) }

// levelAt returns when the bucket has leaked down to that level.
func (g gcra) levelAt(a *arrivals, level int64) time.Duration {
	last := len(a.states) - 1
	limit := int64(g.limit)
	return a.stamps[last] + time.Duration((a.states[last]-level+limit-1)/limit)
}
