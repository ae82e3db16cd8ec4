package main

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// A demoSize is the demo's quota and what it is spent on.
type demoSize struct {
	tokens      int
	limit       ration.Limit
	spends      time.Duration // about how long: it spends what the limit admits by then, with the margin
	spendsOther time.Duration // likewise of another limit, which may allow few calls in less; zero: as long
	users       int           // more than there are workers, so that each always has a page to fetch
	dialect     string
}

// fullDemo spends a quota of 2,400 calls: 1,200 at once and the rest after 5 seconds. It ends
// by time: there are always more pages, so that a slot that was lost is one
// call less, and not one that waits for the next 5 seconds.
var fullDemo = demoSize{tokens: 3, limit: ration.Limit{Max: 400, Window: 5 * time.Second}, spends: 5 * time.Second, spendsOther: 15 * time.Second, users: 132}

// manyPages are more than any demo fetches of a user.
const manyPages = 1 << 20

// demoMargin is what the demo adds to the window in place of the budget's half a
// percent. The provider, the fleet and often Redis share one small machine here,
// and for some of a second all want it at once: a call then arrives as much as a
// quarter of a second later behind its slot than another. Of an hour that would
// be nothing.
const demoMargin = 250 * time.Millisecond

// The provider answers as fast as a far one does. If it answered at once the
// workers would keep the machine busy to the last, and measure only that.
const (
	leastLatency = 25 * time.Millisecond
	mostLatency  = 55 * time.Millisecond
)

// planDemo starts the simulated provider.
func (a *app) planDemo(o options) (plan, error) {
	size := a.demo
	size.dialect = o.dialect()
	if o.simulate != "" && len(o.limits) == 0 {
		o.limits, o.limitsBy = []ration.Limit{simulations[o.simulate]}, "-simulate "+o.simulate+","
	}
	if len(o.limits) > 0 {
		var err error
		if size, err = size.withLimit(o.limits[0]); err != nil {
			return plan{}, badf("%s %w", o.limitsBy, err)
		}
	}
	size.limit = o.withMargin(size.limit)
	p := plan{options: o, margin: demoMarginOf(size.limit), arrivals: new(arrivals)}
	p.limits = []ration.Limit{size.limit}
	p.follow = follower{Kind: "json", Path: []string{"paging", "next"}}
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
	if size.dialect != "" {
		p.judge.Dialect, _ = simulated.DialectNamed(size.dialect) // was looked up with the flags
	}
	listener, err := a.listen()
	if err != nil {
		return p, fmt.Errorf("the simulated provider does not start: %w", err)
	}
	server := &http.Server{Handler: p.arrivals.before(p.judge), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	p.close = func() { _ = server.Close() }
	base := "http://" + listener.Addr().String()
	p.starts = p.judge.StartURLs(base)
	p.origins = origins(p.starts)
	now := time.Now()
	p.begin = now.Add(size.startDelay(now))
	p.lasting, p.fromBegin = size.duration(p.begin)+size.slack(), size.hasEdges()
	p.expected = size.calls(p.begin)
	p.intro = size.intro(base, p.begin)
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
