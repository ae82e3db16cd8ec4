package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// token is the one that all workers of all methods call with.
const token = "the-one-token-of-the-fleet"

// A result is one row of the table.
type result struct {
	method   method
	accepted int
	refused  int
	allowed  int // calls that an exact sliding window allows in the run
	requests int64
	commands int64 // as requests, but a transaction counts with all its commands
	fairness float64
	most     int // accepted calls in the fullest window, which the judge keeps at Max
}

// used is the share of the quota that was used.
func (r result) used() float64 { return float64(r.accepted) / float64(r.allowed) }

// run measures one method. The Redis at addr is emptied first.
func run(ctx context.Context, m method, cfg config, addr string, client *http.Client) (result, error) {
	rdb, sent := harness.NewClient(addr)
	defer rdb.Close()
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return result{}, fmt.Errorf("empty Redis: %w", err)
	}
	sent.Reset()

	provider := &simulated.Provider{
		Limit:    cfg.limit.Max,
		Window:   cfg.limit.Window,
		Tokens:   []string{token},
		PageSize: 1,
		Latency:  func() time.Duration { return cfg.latency/2 + rand.N(cfg.latency) },
	}
	server := httptest.NewServer(provider)
	defer server.Close()

	t := m.start(setup{redis: rdb, limit: cfg.limit, workers: cfg.workers})
	urls := provider.StartURLs(server.URL)
	counts := make([]tally, cfg.workers)
	end := time.Now().Add(cfg.length - cfg.limit.Window/50)
	group, groupCtx := errgroup.WithContext(ctx)
	turns, stop := context.WithDeadline(groupCtx, end)
	defer stop()
	for worker := range counts {
		group.Go(func() error {
			// The call itself is not cut off by the end of the run.
			return work(turns, groupCtx, t, worker, client, urls[worker%len(urls)], &counts[worker])
		})
	}
	if err := group.Wait(); err != nil {
		return result{}, err
	}
	requests, commands := sent.Read()
	return sum(m, cfg, provider.Report(), counts, end, requests, commands)
}

// A tally is what one worker's calls came to.
type tally struct{ accepted, refused int }

// work is one worker: it asks for its turn and calls, until turns ends.
func work(turns, calls context.Context, t throttle, worker int, client *http.Client, url string, count *tally) error {
	for turns.Err() == nil {
		if err := t(turns, worker); err != nil {
			if errors.Is(err, errOver) || turns.Err() != nil {
				break
			}
			return err
		}
		status, err := harness.Get(calls, url, client.Do)
		switch {
		case err != nil:
			return err
		case status == http.StatusOK:
			count.accepted++
		case status == http.StatusTooManyRequests:
			count.refused++
		default:
			return fmt.Errorf("the provider answered with status %d", status)
		}
	}
	return calls.Err() // a signal, or another worker's error; not the end of the run
}

// sum makes a row of what the judge and the workers counted, which must agree.
func sum(m method, cfg config, report simulated.Report, counts []tally, end time.Time, requests, commands int64) (result, error) {
	r := result{method: m, requests: requests, commands: commands, most: report.MaxInWindow}
	shares := make([]int, len(counts))
	for i, c := range counts {
		r.accepted += c.accepted
		r.refused += c.refused
		shares[i] = c.accepted
	}
	r.fairness = harness.Jain(shares)
	switch {
	case report.Accepted != r.accepted || report.Refused != r.refused:
		return result{}, fmt.Errorf("the workers count %d accepted and %d refused calls, the provider %d and %d",
			r.accepted, r.refused, report.Accepted, report.Refused)
	case report.Unauthorised != 0 || report.NotFound != 0 || len(report.Tokens) != 1:
		return result{}, fmt.Errorf("the provider saw %d calls without the token and %d for no page", report.Unauthorised, report.NotFound)
	case r.accepted == 0:
		return result{}, errors.New("no call was accepted")
	}
	first, last := report.Tokens[0].First, report.Tokens[0].Last
	if end.After(last) {
		last = end
	}
	r.allowed = harness.Allowed(cfg.limit.Max, cfg.limit.Window, last.Sub(first))
	return r, nil
}

// newHTTPClient returns the client of all workers, which sends the token. It keeps a
// connection for each and knows no proxy: all traffic stays on loopback.
func newHTTPClient(workers int) *http.Client {
	return &http.Client{
		Timeout:   30 * time.Second,
		Transport: harness.Bearer{Transport: &http.Transport{MaxIdleConns: workers, MaxIdleConnsPerHost: workers}, Token: token},
	}
}
