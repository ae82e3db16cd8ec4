package main

import (
	"fmt"
	"sort"
	"time"
	_ "time/tzdata" // -limit names zones, and a machine may know none

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/simulated"
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

// withLimit returns a demo of that limit in place of its own, which takes about as
// long.
func (d demoSize) withLimit(l ration.Limit) (demoSize, error) {
	lasting := time.Duration(d.windows-1) * d.limit.Window
	now := time.Now()
	edge := now.Add(untilEdge(l, now))
	n := d.tokens * admits(l, 0, edge, lasting)
	if n > mostDemoPages {
		return d, fmt.Errorf("%s: %d tokens have quota for %d calls in the %v of the demo, and one machine gets through %d: give a smaller -limit",
			l, d.tokens, n, lasting, mostDemoPages)
	}
	n -= n / 100 // room, as in fullDemo
	d.limit = l
	d.pages = max(1, n/d.users)
	d.users = n / d.pages
	return d, nil
}

// duration is about how long the demo takes that begins then.
func (d demoSize) duration(begin time.Time) time.Duration {
	const step = 10 * time.Millisecond
	each := (d.total() + d.tokens - 1) / d.tokens
	steps := sort.Search(int(24*time.Hour/step), func(n int) bool {
		return admits(d.limit, demoMarginOf(d.limit), begin, time.Duration(n)*step) >= each
	})
	return time.Duration(steps) * step
}

// demoMarginOf is the margin that the demo keeps with that limit.
func demoMarginOf(l ration.Limit) time.Duration {
	if l.Margin == 0 {
		return demoMargin
	}
	return max(l.Margin, 0)
}

// startDelay is how long the demo waits before it begins. Where windows have fixed
// edges a burst across one would be of two windows and fill neither: what is left
// of the first has to be enough to send all of its quota.
func (d demoSize) startDelay(now time.Time) time.Duration {
	l := d.limit
	if l.FirstUse || l.Algorithm != ration.FixedWindow && l.Algorithm != ration.SlidingWindow {
		return 0
	}
	const start, perCall = 500 * time.Millisecond, time.Millisecond // of a fleet of processes, and of its calls
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
		"It has %d pages of %d users. The quota admits %s: about %v.",
		base, speaks, d.tokens, rule, d.total(), d.users, pace, d.duration(begin))
}
