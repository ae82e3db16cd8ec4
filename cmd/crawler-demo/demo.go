package main

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"
	_ "time/tzdata" // -limit names zones, and a machine may know none

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// A demoSize is the demo's quota, and for how long it is spent.
type demoSize struct {
	tokens int
	limit  ration.Limit
	spends time.Duration // what the limit admits by then is spent, with the margin
	users  int           // more than there are workers, so that each always has a page to fetch
}

// fullDemo spends a quota of 2,400 calls: 1,200 at once and the rest after 5 seconds. It ends
// by time: there are always more pages, so that a slot that was lost is one
// call less, and not one that waits for the next 5 seconds.
var fullDemo = demoSize{tokens: 3, limit: ration.Limit{Max: 400, Window: 5 * time.Second}, spends: 5 * time.Second, users: 132}

const (
	// manyPages are more than any demo fetches of a user.
	manyPages = 1 << 20
	// longestDemo is how long a demo of a limit with a longer window spends what that admits at once.
	longestDemo = 15 * time.Second
	// mostDemoPages is what a crawler and a provider on one small machine get through in that time.
	mostDemoPages = 16_000
)

// demoMargin is what the demo adds to the window. The provider, the fleet and often Redis share one small machine here,
// and for some of a second all want it at once: a call then arrives as much as a quarter of a second later behind its
// slot than another. Of an hour that would be nothing.
const demoMargin = 250 * time.Millisecond

// The provider answers as fast as a far one does. If it answered at once the
// workers would keep the machine busy to the last, and measure only that.
const (
	leastLatency = 25 * time.Millisecond
	mostLatency  = 55 * time.Millisecond
)

// margin is what the demo keeps with its limit. A bucket's lowers its rate if its burst does not cover it.
func (d demoSize) margin() time.Duration {
	switch {
	case d.limit.Margin != 0:
		return max(d.limit.Margin, 0)
	case d.limit.Algorithm == ration.GCRA:
		return min(demoMargin, 2*d.limit.DefaultMargin())
	}
	return demoMargin
}

// withLimit returns a demo of that limit in place of its own.
func (d demoSize) withLimit(l ration.Limit) (demoSize, error) {
	d.limit, d.spends = l, max(d.spends, min(l.Window, longestDemo))
	if n := d.tokens * admits([]ration.Limit{withMargin(l, 0)}, d.begin(time.Now()), d.spends); n > mostDemoPages {
		return d, fmt.Errorf("-limit %s: %d tokens have quota for %d calls in the %v of the demo, and one machine gets through %d: give a smaller -limit",
			l, d.tokens, n, d.spends, mostDemoPages)
	}
	return d, nil
}

// begin is when the demo begins. Where windows have fixed edges it is with the next window: a burst across an edge would
// be of two windows and fill neither.
func (d demoSize) begin(now time.Time) time.Time {
	if d.limit.Algorithm == ration.FixedWindow && !d.limit.FirstUse || d.limit.Algorithm == ration.SlidingWindow {
		_, offset := now.In(zone(d.limit)).Zone()
		since := time.Duration(now.UnixNano()) + time.Duration(offset)*time.Second
		return now.Add(d.limit.Window - since%d.limit.Window)
	}
	return now
}

func zone(l ration.Limit) *time.Location {
	if zone, err := time.LoadLocation(l.Zone); err == nil {
		return zone
	}
	return time.UTC
}

// lasts is how long the demo goes on: until what the limit admits has left, with the margin, and long enough to send
// that, but not until more is free.
func (d demoSize) lasts(begin time.Time) time.Duration {
	calls := admits([]ration.Limit{withMargin(d.limit, 0)}, begin, d.spends)
	var last time.Time
	slots([]ration.Limit{withMargin(d.limit, d.margin())}, begin, func(at time.Time) bool {
		last = at
		calls--
		return calls > 0 && at.Sub(begin) < 2*d.spends
	})
	return last.Sub(begin) + min(d.limit.Window/2, 2500*time.Millisecond)
}

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
		p.Count, p.Resolution = simulated.CountSubWindows, l.Resolution
	case ration.GCRA:
		p.Count, p.Burst = simulated.CountGCRA, l.Burst
	default: // the logs are one rule
		p.Count = simulated.CountLog
	}
}

// planDemo starts the simulated provider.
func (a *app) planDemo(o options) (plan, error) {
	size := a.demo
	if len(o.limits) > 0 {
		var err error
		if size, err = size.withLimit(o.limits[0]); err != nil {
			return plan{}, badInput{err}
		}
	}
	p := plan{options: o, margin: size.margin()}
	p.limits = []ration.Limit{size.limit}
	p.follow = follower{"paging", "next"}
	// Two demos on one Redis are two fleets.
	p.budget = "crawler-demo-" + strings.ToLower(rand.Text()[:8])
	for range size.tokens {
		p.secrets = append(p.secrets, "demo-"+rand.Text())
	}
	p.redactor = newRedactor(p.auth, p.secrets)
	p.judge = &simulated.Provider{
		Tokens:       p.secrets,
		Users:        size.users,
		PagesPerUser: manyPages,
		PageSize:     10,
		Latency:      func() time.Duration { return leastLatency + mathrand.N(mostLatency-leastLatency) },
	}
	setCounting(p.judge, size.limit)
	listener, err := a.listen()
	if err != nil {
		return p, fmt.Errorf("the simulated provider does not start: %w", err)
	}
	server := &http.Server{Handler: p.judge, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	p.close = func() { _ = server.Close() }
	base := "http://" + listener.Addr().String()
	p.starts = p.judge.StartURLs(base)
	p.origins = origins(p.starts)
	now := time.Now()
	p.begin = size.begin(now)
	p.lasting = size.lasts(p.begin)
	p.intro = fmt.Sprintf("A simulated provider at %s allows each of %d tokens %s, and judges.\n"+
		"It has pages without end: its quota is spent for %v.", base, size.tokens, size.limit, p.lasting.Round(10*time.Millisecond))
	if wait := p.begin.Sub(now); wait > 0 {
		p.intro += fmt.Sprintf("\nIt begins with the next %v of the clock, in %.1f s.", size.limit.Window, wait.Seconds())
	}
	return p, nil
}

// removeKeys removes the demo's log from Redis, whose keys would expire only after a
// day. They are the demo's alone: it has the budget's name from a random number.
func (p plan) removeKeys() {
	if p.redis == "" || p.judge == nil {
		return
	}
	options, err := redisOptions(p.redis)
	if err != nil {
		return
	}
	client := redis.NewClient(options)
	defer client.Close()
	ctx, stop := context.WithTimeout(context.Background(), checkTimeout)
	defer stop()
	redisstore.Remove(ctx, client, p.budget)
}
