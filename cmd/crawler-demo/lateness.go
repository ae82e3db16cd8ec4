package main

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/stall"
)

// The demo's provider, fleet and often Redis share one machine. If that is busy, a call arrives
// late through nobody's fault, and the demo must not be judged by it. So the demo measures the
// machine beside the fleet: how late a goroutine wakes that has nothing to do, and how long a
// call takes that has left until it arrives. Neither depends on the code that is judged.

// A wakeProbe measures how late its process wakes.
type wakeProbe struct{ worst atomic.Int64 } // microseconds

const probePeriod = 10 * time.Millisecond

// run measures until done.
func (p *wakeProbe) run(done <-chan struct{}) {
	stall.Probe(done, probePeriod, func(due, now time.Time) {
		p.worst.Store(max(p.worst.Load(), now.Sub(due).Microseconds()))
	})
}

// arrivals are when calls came to the demo's provider.
type arrivals struct {
	mu sync.Mutex
	at []int64 // microseconds since the epoch
}

// before returns a handler that notes the arrival of each call for h.
func (a *arrivals) before(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.at = append(a.at, time.Now().UnixMicro())
		a.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

// worstTransit is how long a call took at least from when it left until it arrived: the n-th to
// arrive left no later than the n-th to leave. If not all that left arrived it is not known,
// and zero.
func (a *arrivals) worstTransit(sent []int64) (worst time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.at) != len(sent) {
		return 0
	}
	left, came := slices.Sorted(slices.Values(sent)), slices.Sorted(slices.Values(a.at))
	for i := range came {
		worst = max(worst, time.Duration(came[i]-left[i])*time.Microsecond)
	}
	return worst
}

// machineLate is how late the demo's machine was at worst.
func (c *crawl) machineLate() (worst time.Duration) {
	for _, m := range c.groups {
		worst = max(worst, time.Duration(m.wokeLate)*time.Microsecond)
	}
	if c.plan.arrivals != nil {
		var sent []int64
		for _, of := range c.stats.byToken {
			sent = append(sent, of.sent...)
		}
		worst = max(worst, c.plan.arrivals.worstTransit(sent))
	}
	return worst
}
