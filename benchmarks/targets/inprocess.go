package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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

// serveInChild answers requests with a few bytes.
func serveInChild(_ context.Context, _ order, ends *[]func()) (any, error) {
	return serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}), ends)
}

// serve serves on a free loopback port and returns its URL.
func serve(handler http.Handler, ends *[]func()) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with ErrServerClosed
	}()
	*ends = append(*ends, func() {
		_ = server.Close()
		<-done
	})
	return "http://" + listener.Addr().String(), nil
}

// transport is row 10.
func transport(ctx context.Context, b *bench) ([]check, error) {
	server, err := startChild(ctx, b.progress)
	if err != nil {
		return nil, err
	}
	defer server.end()
	var url string
	if err := server.ask(order{Do: "serve"}, &url); err != nil {
		return nil, err
	}
	base := &http.Transport{MaxIdleConnsPerHost: 1}
	defer base.CloseIdleConnections()
	budget := &ration.Budget{Name: peers.Budget, Limits: []ration.Limit{ration.PerHour(peers.Plenty)}, Store: new(ration.MemoryStore)}
	ours := &ration.Transport{Base: base, Pool: ration.NewPool(budget, ration.NewToken(hot))}
	get := func(through http.RoundTripper) peers.Work {
		return func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			response, err := through.RoundTrip(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				return err
			}
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("the server answered %s", response.Status)
			}
			return nil
		}
	}
	bare, throttled := get(base), get(ours)
	if _, _, err := harness.Hammer(ctx, 1, harness.Until{Time: b.each / 10}, throttled); err != nil {
		return nil, err
	}
	if _, _, err := harness.Hammer(ctx, 1, harness.Until{Time: b.each / 10}, bare); err != nil {
		return nil, err
	}
	var more, moreAllocations, bares, throttleds []float64
	for range b.rounds {
		a, c, err := alternately(ctx, bare, throttled, 2*b.each)
		if err != nil {
			return nil, err
		}
		bares, throttleds, more = append(bares, a), append(throttleds, c), append(more, c-a)
		without, err := allocated(ctx, bare, 500)
		if err != nil {
			return nil, err
		}
		with, err := allocated(ctx, throttled, 500)
		if err != nil {
			return nil, err
		}
		moreAllocations = append(moreAllocations, with-without)
	}
	b.note("bare", "p50-µs", bares...)
	b.note("ration,Transport", "p50-µs", throttleds...)
	b.note("ration,Transport,allocations-more", "allocs/call", moreAllocations...)
	return []check{{
		what: "time more for each request, p50", measured: more, target: atMost(2, "µs"),
		figures: fmt.Sprintf("%s µs against %s µs", number(median(throttleds)), number(median(bares))),
	}, {
		what: "allocations more for each request", measured: moreAllocations, target: atMost(10, ""),
	}}, nil
}

// alternately does two kinds of work in turn, call by call, and returns the median
// time of each in microseconds.
func alternately(ctx context.Context, a, c peers.Work, length time.Duration) (p50a, p50c float64, err error) {
	var times [2][]time.Duration
	for begun := time.Now(); time.Since(begun) < length; {
		for i, work := range []peers.Work{a, c} {
			at := time.Now()
			if err := work(ctx); err != nil {
				return 0, 0, err
			}
			times[i] = append(times[i], time.Since(at))
		}
	}
	return micros(quantile(times[0], 0.5)), micros(quantile(times[1], 0.5)), nil
}
