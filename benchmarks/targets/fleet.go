package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// The fleet of row 12.
const (
	crews       = 8
	workers     = 16
	fleetTokens = 3
	fleetLimit  = 400 // of each token, in any fleetWindow
	fleetWindow = 15 * time.Second
	// fleetStart is how long it takes until all workers have begun: those of a fleet do
	// not begin in one instant, and on a few cores all would wait for all others.
	fleetStart = 600 * time.Millisecond
)

// fleetLatency is what the provider takes to answer: as an API does that is called
// over the Internet.
func fleetLatency() time.Duration { return 50*time.Millisecond + rand.N(100*time.Millisecond) }

// Provide is the provider that judges.
func (j *jobs) Provide(o Order, url *string) error {
	j.provider = &simulated.Provider{Limit: o.Limit, Window: o.Window, Tokens: o.Tokens, PageSize: 1, Latency: fleetLatency}
	*url = j.provider.StartURLs(j.serve(j.provider))[0]
	return nil
}

// Judge tells what the provider saw.
func (j *jobs) Judge(_ Order, seen *simulated.Report) error {
	*seen = j.provider.Report()
	return nil
}

// Crawled is what one process of the fleet did.
type Crawled struct {
	Calls    []int           // of each worker
	Slots    []time.Time     // of each call
	Came     []bool          // whether it had come when it was booked, of each call
	Late     []time.Duration // of each call, when it was sent
	Refused  int             // by the provider, also of calls that were sent again
	Requests int64           // to Redis
}

// Crawl calls the URL from so many workers, from At on and for Length.
func (j *jobs) Crawl(o Order, c *Crawled) error {
	rdb, sent := newClient(o.Redis), new(harness.Sent)
	defer rdb.Close()
	rdb.AddHook(sent)
	budget := &ration.Budget{Name: "fleet", Limits: []ration.Limit{{Max: o.Limit, Window: o.Window}}, Store: &ration.RedisStore{Client: rdb}}
	pool := ration.NewPool(budget)
	for _, secret := range o.Tokens {
		pool.Add(ration.NewToken(secret))
	}
	c.Calls = make([]int, o.Goroutines)
	var mu sync.Mutex // protects c's Slots, Late and Refused
	base := &http.Transport{MaxIdleConnsPerHost: o.Goroutines}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &ration.Transport{
		Base: base,
		Pool: pool,
		OnGrant: func(_ *http.Request, g ration.Grant) {
			late := time.Since(g.Slot)
			mu.Lock()
			c.Slots, c.Came, c.Late = append(c.Slots, g.Slot), append(c.Came, g.Late == 0), append(c.Late, late)
			mu.Unlock()
		},
		OnRefusal: func(*http.Response, ration.Grant) {
			mu.Lock()
			c.Refused++
			mu.Unlock()
		},
	}}
	if err := connect(j.ctx, rdb, o.Goroutines); err != nil {
		return err
	}
	sent.Reset()
	var group errgroup.Group
	for i := range o.Goroutines {
		group.Go(func() error {
			if err := harness.Sleep(j.ctx, time.Until(o.At.Add(rand.N(fleetStart)))); err != nil {
				return err
			}
			for {
				made, err := callBefore(j.ctx, client, o.URL, o.At.Add(o.Length))
				if !made {
					return err
				}
				c.Calls[i]++
			}
		})
	}
	err := group.Wait()
	c.Requests, _ = sent.Read()
	return err
}

// connect has connections to Redis be there when they are needed.
func connect(ctx context.Context, rdb *redis.Client, goroutines int) error {
	ping := func(ctx context.Context) error { return rdb.Ping(ctx).Err() }
	_, _, err := harness.Hammer(ctx, goroutines, harness.Until{Time: 100 * time.Millisecond}, ping)
	return err
}

// A slotBefore is a context whose deadline bounds the slot, which is not booked
// behind it, but cuts nothing off that is under way.
type slotBefore struct {
	context.Context
	end time.Time
}

func (c slotBefore) Deadline() (time.Time, bool) { return c.end, true }

// callBefore makes one call if its slot comes before the end.
func callBefore(ctx context.Context, client *http.Client, url string, end time.Time) (made bool, err error) {
	if !time.Now().Before(end) {
		return false, nil
	}
	status, err := harness.Get(slotBefore{ctx, end}, url, client.Do)
	if errors.Is(err, ration.ErrExhausted) {
		return false, nil
	}
	return err == nil && status == http.StatusOK, err
}

// Replay makes calls at the given instants and knows no limiter, and returns
// how late each was. Where the slot had come when it was booked Redis is asked what
// time it is: to learn that a call may leave takes an answer, and less no answer can
// be. Each call has a goroutine of its own, so that none is late because another takes
// long.
func (j *jobs) Replay(o Order, late *[]time.Duration) error {
	rdb := newClient(o.Redis)
	defer rdb.Close()
	if err := connect(j.ctx, rdb, o.Goroutines); err != nil {
		return err
	}
	base := &http.Transport{MaxIdleConnsPerHost: o.Goroutines}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: harness.Bearer{Transport: base, Token: "any"}}
	*late = make([]time.Duration, len(o.Slots))
	var group errgroup.Group
	for i, slot := range o.Slots {
		group.Go(func() error {
			if err := harness.Sleep(j.ctx, time.Until(slot)); err != nil {
				return err
			}
			told := slot
			if o.Came[i] {
				var err error
				if told, err = rdb.Time(j.ctx).Result(); err != nil {
					return err
				}
			}
			(*late)[i] = time.Since(told)
			made, err := callBefore(j.ctx, client, o.URL, slot.Add(time.Hour))
			if err == nil && !made {
				err = errors.New("a call was not accepted")
			}
			return err
		})
	}
	return group.Wait()
}

// replay has the fleet make all calls again, at the same instants and without a
// limiter, and returns how late they were: that is the machine's doing. The provider
// refuses nothing.
func replay(crawlers []*child, provider *child, o Order, made []Crawled) ([]time.Duration, error) {
	o.Limit, o.Tokens = mostCalls, nil
	if err := provider.do("Provide", o, &o.URL); err != nil {
		return nil, err
	}
	shift := time.Since(o.At) + time.Second
	all, err := askAll[[]time.Duration](crawlers, "Replay", func(i int) Order {
		o.Slots, o.Came = nil, made[i].Came
		for _, slot := range made[i].Slots {
			o.Slots = append(o.Slots, slot.Add(shift))
		}
		return o
	})
	return slices.Concat(all...), err
}

// mostCalls is a limit that the fleet does not reach.
const mostCalls = 100_000

// fleet is row 12.
func fleet(ctx context.Context, b *bench) ([]check, error) {
	if err := b.rdb.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	children, end, err := startChildren(ctx, b.progress, crews+1)
	if err != nil {
		return nil, err
	}
	defer end()
	o := Order{Redis: b.addr, Goroutines: workers, Length: b.fleet, Limit: fleetLimit, Window: fleetWindow}
	for i := range fleetTokens {
		o.Tokens = append(o.Tokens, fmt.Sprintf("token-%d", i))
	}
	provider, crawlers := children[0], children[1:]
	if err := provider.do("Provide", o, &o.URL); err != nil {
		return nil, err
	}
	o.At = time.Now().Add(time.Second)
	made, err := askAll[Crawled](crawlers, "Crawl", func(int) Order { return o })
	if err != nil {
		return nil, err
	}
	var all Crawled
	for _, one := range made {
		all.Calls, all.Late = append(all.Calls, one.Calls...), append(all.Late, one.Late...)
		all.Refused += one.Refused
		all.Requests += one.Requests
	}
	var seen simulated.Report
	if err := provider.do("Judge", o, &seen); err != nil {
		return nil, err
	}
	checks, err := b.judge(o, all, seen)
	if err != nil {
		return nil, err
	}
	if last := &checks[len(checks)-1]; !last.met() {
		late, err := replay(crawlers, provider, o, made)
		if err != nil {
			return nil, fmt.Errorf("the same calls without a limiter: %w", err)
		}
		p99 := float64(quantile(late, 0.99)) / 1e6
		b.note("late,p99,without-a-limiter", "ms", p99)
		if p99 > last.target.bound {
			last.hindrance = fmt.Sprintf("the same calls at the same instants, by goroutines that sleep until then, or ask Redis for the time where a slot had come, and know no limiter, are late by %s ms", number(p99))
		}
	}
	return checks, nil
}

// judge makes the row of what the fleet did and what the provider saw.
func (b *bench) judge(o Order, all Crawled, seen simulated.Report) ([]check, error) {
	made := 0
	for _, n := range all.Calls {
		made += n
	}
	if made != seen.Accepted || all.Refused != seen.Refused || made == 0 || seen.Unauthorised != 0 || seen.NotFound != 0 {
		return nil, fmt.Errorf("the fleet counts %d accepted and %d refused calls, the provider %d and %d",
			made, all.Refused, seen.Accepted, seen.Refused)
	}
	allowed, end := 0, o.At.Add(o.Length)
	for _, t := range seen.Tokens {
		last := t.Last
		if end.After(last) {
			last = end
		}
		allowed += harness.Allowed(o.Limit, o.Window, last.Sub(t.First))
	}
	used, commands, fair := 100*float64(made)/float64(allowed), float64(all.Requests)/float64(made), harness.Jain(all.Calls)
	p50, p99 := float64(quantile(all.Late, 0.5))/1e6, float64(quantile(all.Late, 0.99))/1e6
	b.note("refused", "calls", float64(seen.Refused))
	b.note("quota-used", "%", used)
	b.note("Redis-commands", "commands/call", commands)
	b.note("fairness", "Jain", fair)
	b.note("late,p50", "ms", p50)
	b.note("late,p99", "ms", p99)
	length := number(o.Length.Seconds()) + " s: "
	return []check{
		{what: length + "refused", measured: []float64{float64(seen.Refused)}, target: atMost(0, "calls"), figures: fmt.Sprintf("of %s calls", number(float64(made)))},
		{what: length + "quota used", measured: []float64{used}, target: atLeast(99, "%"), figures: fmt.Sprintf("%s calls of %s", number(float64(made)), number(float64(allowed)))},
		{what: length + "Redis commands", measured: []float64{commands}, target: atMost(1.1, "a call")},
		{what: length + "fairness (Jain)", measured: []float64{fair}, target: atLeast(0.99, "")},
		{what: length + "lateness, p99", measured: []float64{p99}, target: atMost(5, "ms"), figures: fmt.Sprintf("p50 %s ms", number(p50))},
	}, nil
}
