package main

import (
	"fmt"
	"sort"
	"time"
	_ "time/tzdata" // -limit names zones, and a machine may know none

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// setCounting makes the simulated provider count by the limit.
func setCounting(p *simulated.Provider, l ration.Limit) {
	p.Limit, p.Window = l.Max, l.Window
	switch l.Algorithm {
	case ration.FixedWindow:
		p.Count, p.Zone = simulated.CountFixedWindow, zone(l)
		if l.FirstUse {
			p.Count = simulated.CountFirstUse
		}
	case ration.SlidingWindow:
		p.Count = simulated.CountWeighted
	case ration.SubWindows:
		p.Count, p.Resolution = simulated.CountSubWindows, resolution(l)
	case ration.GCRA:
		p.Count, p.Burst = simulated.CountGCRA, l.Burst
	default: // the logs are one rule
		p.Count = simulated.CountLog
	}
}

// mostDemoPages is what a crawler and a provider on one small machine get through
// in the time of the demo.
const mostDemoPages = 16_000

// withLimit returns a demo of that limit in place of its own.
func (d demoSize) withLimit(l ration.Limit) (demoSize, error) {
	if l != d.limit {
		d.limit, d.spends = l, max(d.spends, d.spendsOther)
	}
	if n := d.calls(time.Now()); n > mostDemoPages {
		return d, fmt.Errorf("%s: %d tokens have quota for %d calls in the %v of the demo, and one machine gets through %d: give a smaller -limit",
			l, d.tokens, n, d.spends, mostDemoPages)
	}
	return d, nil
}

// calls is how many the limit admits in the time of the demo, from the edge of a window on.
func (d demoSize) calls(now time.Time) int {
	return d.tokens * admits(d.limit, 0, now.Add(untilEdge(d.limit, now)), d.spends)
}

// duration is about how long it takes to spend that, from begin on, but not much longer than
// the demo's time: with a margin between single calls it would take minutes.
func (d demoSize) duration(begin time.Time) time.Duration {
	const step = 10 * time.Millisecond
	each := d.calls(begin) / d.tokens
	steps := sort.Search(int(2*d.spends/step), func(n int) bool {
		return admits(d.limit, demoMarginOf(d.limit), begin, time.Duration(n)*step) >= each
	})
	return time.Duration(steps) * step
}

// perCall is what one machine needs for a call of the demo, with its share of Redis and of the
// provider.
const perCall = time.Millisecond

// slack is how long the demo goes on after the last calls that it counts with became free: long
// enough to send them, and not until the next do.
func (d demoSize) slack() time.Duration {
	l := d.limit
	atOnce := l.Max
	if l.Algorithm == ration.GCRA {
		atOnce = max(1, l.Burst)
	}
	slack := max(time.Duration(d.tokens*atOnce)*perCall, min(l.Window/2, 2500*time.Millisecond))
	if isEven(l) {
		return slack
	}
	return min(slack, l.Window/4*3)
}

// demoMarginOf is the margin that the demo keeps with that limit. A bucket's lowers its rate if
// its burst does not cover it.
func demoMarginOf(l ration.Limit) time.Duration {
	switch {
	case l.Margin != 0:
		return max(l.Margin, 0)
	case l.Algorithm == ration.GCRA:
		return min(demoMargin, 2*l.DefaultMargin())
	}
	return demoMargin
}

// hasEdges reports whether the limit's windows begin by the clock.
func (d demoSize) hasEdges() bool {
	return d.limit.Algorithm == ration.FixedWindow && !d.limit.FirstUse || d.limit.Algorithm == ration.SlidingWindow
}

// startDelay is how long the demo waits before it begins. Where windows have fixed
// edges a burst across one would be of two windows and fill neither: what is left
// of the first has to be enough to send all of its quota.
func (d demoSize) startDelay(now time.Time) time.Duration {
	l := d.limit
	if !d.hasEdges() {
		return 0
	}
	const start = 500 * time.Millisecond // of a fleet of processes
	left := untilEdge(l, now)
	if left > start+time.Duration(d.tokens*l.Max)*perCall+demoMarginOf(l) {
		return 0
	}
	return left
}

// intro says what the provider at that address allows, and what there is to do
// from begin on.
func (d demoSize) intro(base string, begin time.Time) string {
	l := d.limit
	all := d.tokens * l.Max
	rule := fmt.Sprintf("%d calls in any %v", l.Max, l.Window)
	pace := fmt.Sprintf("%d at once and %d more every %v", all, all, l.Window)
	switch {
	case l.FirstUse:
		rule = fmt.Sprintf("%d calls in the %v from a first one on", l.Max, l.Window)
	case l.Algorithm == ration.FixedWindow:
		rule = fmt.Sprintf("%d calls in each %v of the clock in %v", l.Max, l.Window, zone(l))
		pace = fmt.Sprintf("%d in each %v of that clock", all, l.Window)
	case l.Algorithm == ration.SlidingWindow:
		rule = fmt.Sprintf("%d calls in %v of the clock, those of the %v before weighted by how much of it is less than %v ago",
			l.Max, l.Window, l.Window, l.Window)
		pace = fmt.Sprintf("%d at once and, from the next %v of the clock on, %d more every %v, evenly", all, l.Window, all, l.Window)
	case l.Algorithm == ration.SubWindows:
		rule = fmt.Sprintf("%d calls in %v, counted in sub-windows of %v", l.Max, l.Window, resolution(l))
	case l.Algorithm == ration.GCRA:
		burst := max(1, l.Burst)
		rule = fmt.Sprintf("%s at once and one more every %v", count(burst, "call"), l.Window/time.Duration(l.Max))
		pace = fmt.Sprintf("%d at once and %d more every %v, evenly", d.tokens*burst, all, l.Window)
	}
	speaks := ""
	if d.dialect != "" {
		speaks = ", in the dialect of " + d.dialect + ","
	}
	return fmt.Sprintf("A simulated provider at %s%s allows each of %d tokens %s, and judges.\n"+
		"It has pages without end. The quota admits %s: it is spent for %v.",
		base, speaks, d.tokens, rule, pace, d.duration(begin)+d.slack())
}
