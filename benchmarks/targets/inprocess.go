package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"time"

	"golang.org/x/time/rate"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
)

// memoryWait is row 9. A log that lets 100,000 calls through in 10 ms keeps about
// so many entries however fast the machine is, and keeps nobody waiting.
func memoryWait(ctx context.Context, b *bench) ([]check, error) {
	const ours, theirs = "ration,Wait", "x-time-rate,Wait"
	limit := ration.Limit{Max: 100_000, Window: 10 * time.Millisecond}
	token := ration.NewToken(hot)
	wait := func() peers.Work {
		budget := &ration.Budget{Name: peers.Budget, Limits: []ration.Limit{limit}, Store: new(ration.MemoryStore), Margin: -1}
		return func(ctx context.Context) error {
			_, err := budget.Wait(ctx, token, 1)
			return err
		}
	}
	bucket := func() peers.Work {
		limiter := rate.NewLimiter(rate.Limit(float64(limit.Max)/limit.Window.Seconds()), limit.Max)
		return limiter.Wait
	}
	nanoseconds := func(goroutines int, suffix string) (results, error) {
		racers := []racer{
			{name: ours + suffix, ready: func(context.Context) (peers.Work, error) { return wait(), nil }},
			{name: theirs + suffix, ready: func(context.Context) (peers.Work, error) { return bucket(), nil }},
		}
		return b.race(ctx, racers, "ns/call", func(ctx context.Context, _ racer, work peers.Work) (float64, int, error) {
			if _, _, err := harness.Hammer(ctx, goroutines, harness.Until{Time: b.each / 10}, work); err != nil {
				return 0, 0, err
			}
			calls, took, err := harness.Hammer(ctx, goroutines, harness.Until{Time: b.each}, work)
			return float64(took) / float64(max(1, calls)), calls, err
		})
	}
	lone, err := nanoseconds(1, "")
	if err != nil {
		return nil, err
	}
	many, err := nanoseconds(goroutines, ",goroutines=64")
	if err != nil {
		return nil, err
	}
	var allocations []float64
	for range b.rounds {
		n, err := allocated(ctx, wait(), 20_000)
		if err != nil {
			return nil, err
		}
		allocations = append(allocations, n)
	}
	b.note("ration,Wait,allocations", "allocs/call", allocations...)
	return []check{{
		what: "against golang.org/x/time/rate, one goroutine", measured: lone.over(ours, theirs), target: atMost(2, "x"),
		figures: fmt.Sprintf("%s ns against %s ns; 64 goroutines: %s ns against %s ns", number(median(lone[ours])), number(median(lone[theirs])),
			number(median(many[ours+",goroutines=64"])), number(median(many[theirs+",goroutines=64"]))),
	}, {
		// What grows now and then is no allocation of a call: a hundredth of one is 0.
		what: "allocations", measured: allocations, target: atMost(0.01, "a call"),
		figures: fmt.Sprintf("%s in 20,000 calls", number(20_000*median(allocations))),
	}}, nil
}

// allocated returns the allocations for each call, of all goroutines, after as many
// calls that are not counted.
func allocated(ctx context.Context, work peers.Work, calls int) (float64, error) {
	var before, after runtime.MemStats
	for i := range 2 * calls {
		if i == calls {
			runtime.ReadMemStats(&before)
		}
		if err := work(ctx); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(calls), nil
}

// Serve answers requests with a few bytes.
func (j *jobs) Serve(_ Order, url *string) error {
	*url = j.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	return nil
}

// serve serves HTTP on loopback until the process ends.
func (j *jobs) serve(handler http.Handler) (url string) {
	server := httptest.NewServer(handler)
	j.ends = append(j.ends, server.Close)
	return server.URL
}

// transport is row 10.
func transport(ctx context.Context, b *bench) ([]check, error) {
	server, err := startChild(ctx, b.progress)
	if err != nil {
		return nil, err
	}
	defer server.end()
	var url string
	if err := server.do("Serve", Order{}, &url); err != nil {
		return nil, err
	}
	base := &http.Transport{MaxIdleConnsPerHost: 1}
	defer base.CloseIdleConnections()
	budget := &ration.Budget{Name: peers.Budget, Limits: []ration.Limit{ration.PerHour(peers.Plenty)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(budget, ration.NewToken(hot))
	attaching := harness.Bearer{Transport: base, Token: "any"}
	ours := func(base http.RoundTripper) http.RoundTripper { return &ration.Transport{Base: base, Pool: pool} }
	bare, attached, throttled := getting(base, url), getting(attaching, url), getting(ours(base), url)
	limited := getting(limited{attaching, rate.NewLimiter(peers.Plenty, peers.Plenty)}, url)
	var with, without, cost, costOfToken, costOfLimit, costAtOnce, allocations []float64
	for range b.rounds {
		took, err := inTurns(ctx, 8*b.each, workInTurns{do: bare}, workInTurns{do: attached}, workInTurns{do: throttled}, workInTurns{do: limited})
		if err != nil {
			return nil, err
		}
		cost, costOfToken = append(cost, more(took[2], took[0])), append(costOfToken, more(took[1], took[0]))
		costOfLimit = append(costOfLimit, more(took[3], took[0]))
		without, with = append(without, p50(took[0])), append(with, p50(took[2]))
		took, err = inTurns(ctx, b.each/2, workInTurns{do: getting(atOnce{}, url)}, workInTurns{do: getting(ours(atOnce{}), url)})
		if err != nil {
			return nil, err
		}
		costAtOnce = append(costAtOnce, more(took[1], took[0]))
		before, err := allocated(ctx, bare, 500)
		if err != nil {
			return nil, err
		}
		after, err := allocated(ctx, throttled, 500)
		if err != nil {
			return nil, err
		}
		allocations = append(allocations, after-before)
	}
	b.note("bare", p50Unit, without...)
	b.note("ration,Transport", p50Unit, with...)
	b.note("ration,Transport,more", "µs", cost...)
	b.note("ration,Transport,more,base=at-once", "µs", costAtOnce...)
	b.note("clone-and-header,more", "µs", costOfToken...)
	b.note("clone-and-header-and-x-time-rate,more", "µs", costOfLimit...)
	b.note("ration,Transport,allocations-more", "allocs/call", allocations...)
	const bound = 2
	return []check{{
		what: "time more for each request, p50", measured: cost, target: atMost(bound, "µs"),
		figures: fmt.Sprintf("%s µs against %s µs; over a RoundTripper that answers at once %s µs more; %s %s µs more",
			number(median(with)), number(median(without)), number(median(costAtOnce)), ofToken, number(median(costOfToken))),
		hindrance: cmp.Or(dear(ofToken, costOfToken, bound), dear(ofLimit, costOfLimit, bound)),
	}, {
		what: "allocations more for each request", measured: allocations, target: atMost(10, ""),
	}}, nil
}

// getting is a request, and all of its response, through a RoundTripper.
func getting(through http.RoundTripper, url string) peers.Work {
	return func(ctx context.Context) error {
		status, err := harness.Get(ctx, url, through.RoundTrip)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the server answered with status %d", status)
		}
		return err
	}
}

// limited is the least that holds requests back: a limiter of one process, that keeps
// no log and of which nobody learns what is left, and nothing that tells when the
// request left.
type limited struct {
	base    http.RoundTripper
	limiter *rate.Limiter
}

func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := l.limiter.Wait(request.Context()); err != nil {
		return nil, err
	}
	return l.base.RoundTrip(request)
}

// atOnce answers without a server.
type atOnce struct{}

func (atOnce) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
}
