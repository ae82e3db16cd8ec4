package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// The fleet of the table: so many workers spend one token's quota.
const fleetWorkers = 64

var fleetLimit = ration.Limit{Max: 500, Window: 5 * time.Second}

// A method is how the workers of a fleet are held back.
type method struct {
	title string
	// start returns how a worker waits for its turn, and what ends that. A worker whose turn does not come before the
	// end gets errOver, or an error once ctx has ended.
	start func(s setup) (wait, func(), error)
}

type wait func(ctx context.Context, worker int) error

// errOver says that the run will be over before the worker's turn.
var errOver = errors.New("no turn before the end")

var methods = []method{
	{"a sorted set in MULTI (log first, count after), polling every 100 ms", polling(multi)},
	{"go-redis/redis_rate v10 (GCRA), sleeping RetryAfter", polling(redisRate)},
	{"the same through rueidis", polling(rueidisOne)},
	{"golang.org/x/time/rate, an equal share each", equalShares},
	{"no throttling", func(setup) (wait, func(), error) {
		return func(context.Context, int) error { return nil }, func() {}, nil
	}},
	{"**ration: booking ahead**", bookingAhead},
}

// polling asks until the answer is yes.
func polling(p peer) func(setup) (wait, func(), error) {
	return func(s setup) (wait, func(), error) {
		asking, stop, err := p.start(s)
		return func(ctx context.Context, _ int) error {
			for {
				again, err := asking(ctx, 0)
				if err != nil || again == 0 {
					return err
				}
				if err := harness.Sleep(ctx, again); err != nil {
					return err
				}
			}
		}, stop, err
	}
}

// equalShares gives each worker an equal part of the quota, as workers that share
// nothing must. The burst is the part of one window, in whole calls.
func equalShares(s setup) (wait, func(), error) {
	all := make([]*rate.Limiter, fleetWorkers)
	perSecond := float64(s.limit.Max) / s.limit.Window.Seconds() / fleetWorkers
	for i := range all {
		all[i] = rate.NewLimiter(rate.Limit(perSecond), s.limit.Max/fleetWorkers)
	}
	return func(ctx context.Context, worker int) error {
		if err := all[worker].Wait(ctx); err != nil {
			return errOver // the context's end, or a turn that comes after it
		}
		return nil
	}, func() {}, nil
}

// bookingAhead books once and sleeps until its slot. Margin is the default.
func bookingAhead(s setup) (wait, func(), error) {
	client := s.client()
	budget := &ration.Budget{Name: "fleet", Limits: []ration.Limit{s.limit}, Store: &ration.RedisStore{Client: client}}
	token := ration.NewToken(fleetToken)
	return func(ctx context.Context, _ int) error {
		_, err := budget.Wait(ctx, token, 1)
		if errors.Is(err, ration.ErrExhausted) {
			return errOver
		}
		return err
	}, closing(client), nil
}

// fleetToken is the one that all workers call with.
const fleetToken = "the-one-token-of-the-fleet"

// A fleetRow is what was measured of a method.
type fleetRow struct {
	title             string
	accepted, refused int
	used              float64 // of the quota
	requests          int64
	fairness          float64
	most              int // calls that were let through in any window
}

func fleetTable(ctx context.Context, cfg config, addr string, progress io.Writer) (string, error) {
	var rows []fleetRow
	for _, m := range methods {
		fmt.Fprintf(progress, "  %s\n", m.title)
		r, err := runFleet(ctx, m, cfg, addr)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.title, err)
		}
		rows = append(rows, r)
	}
	head := fmt.Sprintf("| method | use of quota | accepted | refused in %v | most in a window, of %d | Redis commands a call | fairness (Jain) |", cfg.fleet, fleetLimit.Max)
	return harness.Table(head, rows, func(r fleetRow) string {
		return fmt.Sprintf("| %s | %.1f %% | %s | %s | %s | %s | %.3f |", r.title, 100*r.used, harness.Group(r.accepted), harness.Group(r.refused),
			harness.Group(r.most), perCall(r.requests, r.accepted), r.fairness)
	}), nil
}

// perCall is n a call, with as many decimals as tell something.
func perCall(n int64, calls int) string {
	switch v := float64(n) / float64(max(calls, 1)); {
	case n == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// runFleet measures one method. The Redis at addr is emptied first.
func runFleet(ctx context.Context, m method, cfg config, addr string) (fleetRow, error) {
	r := fleetRow{title: m.title}
	sent := new(harness.Sent)
	if err := empty(ctx, addr); err != nil {
		return r, err
	}
	waiting, stop, err := m.start(setup{addr, sent, fleetLimit, 1})
	if err != nil {
		return r, err
	}
	defer stop()
	judge := &simulated.Provider{
		Limit: fleetLimit.Max, Window: fleetLimit.Window, Tokens: []string{fleetToken}, PageSize: 1,
		Latency: func() time.Duration { return 40*time.Millisecond + rand.N(80*time.Millisecond) },
	}
	server := httptest.NewServer(judge)
	defer server.Close()
	urls := judge.StartURLs(server.URL)
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = fleetWorkers
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: harness.Bearer{Transport: base, Token: fleetToken}}

	var mu sync.Mutex
	var let []time.Time
	shares := make([]int, fleetWorkers)
	end := time.Now().Add(cfg.fleet - fleetLimit.Window/50) // not the first moment of another window
	group, calls := errgroup.WithContext(ctx)
	turns, over := context.WithDeadline(calls, end)
	defer over()
	for worker := range fleetWorkers {
		group.Go(func() error {
			for turns.Err() == nil {
				if err := waiting(turns, worker); err != nil {
					if errors.Is(err, errOver) || turns.Err() != nil {
						break
					}
					return err
				}
				mu.Lock()
				let = append(let, time.Now())
				mu.Unlock()
				status, err := harness.Get(calls, urls[worker%len(urls)], client.Do) // the end does not cut it off
				if err != nil {
					return err
				}
				mu.Lock()
				switch status {
				case http.StatusOK:
					shares[worker]++
					r.accepted++
				case http.StatusTooManyRequests:
					r.refused++
				}
				mu.Unlock()
			}
			return calls.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return r, err
	}
	report := judge.Report()
	if report.Accepted != r.accepted || report.Refused != r.refused || report.Unauthorised > 0 {
		return r, fmt.Errorf("the judge counted %+v, the workers %d accepted and %d refused", report, r.accepted, r.refused)
	}
	r.most = simulated.MostIn(let, fleetLimit.Window) // sorts them
	r.used = float64(r.accepted) / float64(harness.Allowed(fleetLimit.Max, fleetLimit.Window, end.Sub(let[0])))
	r.requests, r.fairness = sent.Read(), harness.Jain(shares)
	return r, nil
}

// empty deletes all that a Redis has.
func empty(ctx context.Context, addr string) error {
	client := harness.NewClient(addr, nil)
	defer client.Close()
	return client.FlushAll(ctx).Err()
}
