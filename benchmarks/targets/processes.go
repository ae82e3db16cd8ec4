package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/store"
)

const processes = 4

// A contenderOfProcesses is made ready by this process and worked at by others.
type contenderOfProcesses struct {
	racer
	work func(addr string) (work peers.Work, end func(), err error)
}

// contendersOfProcesses are those of row 2. Each process has a client and a limiter
// of its own.
func contendersOfProcesses(b *bench) []contenderOfProcesses {
	booking := func(limit int, maxWait time.Duration) func(string) (peers.Work, func(), error) {
		return func(addr string) (peers.Work, func(), error) {
			rdb := newClient(addr)
			return peers.Book(&ration.RedisStore{Client: rdb}, hot, ration.PerHour(limit), maxWait), func() { _ = rdb.Close() }, nil
		}
	}
	peer := func(name string) func(string) (peers.Work, func(), error) {
		return func(addr string) (peers.Work, func(), error) {
			peer, err := peers.Named(name)
			if err != nil {
				return nil, nil, err
			}
			rdb := newClient(addr)
			on, err := peer.Start(rdb, peers.Plenty)
			if err != nil {
				_ = rdb.Close()
				return nil, nil, err
			}
			return on(hot), func() { _ = rdb.Close() }, nil
		}
	}
	return []contenderOfProcesses{
		{b.free("ration,free", 1, account(hot, ration.PerHour(peers.Plenty))), booking(peers.Plenty, 0)},
		{b.spent("ration,spent", 1, account(hot, ration.PerHour(b.before))), booking(b.before, store.Forever)},
		{b.of("redis_rate", 0), peer("redis_rate")},
		{b.of("INCR", 0), peer("INCR")},
	}
}

// done is what a process has made of the order to hammer.
type done struct {
	Calls int
	Took  time.Duration
}

// hammerInChild works from Goroutines for Length beginning At, after it has warmed
// up for a tenth of that.
func hammerInChild(ctx context.Context, o order, _ *[]func()) (any, error) {
	for _, c := range contendersOfProcesses(&bench{config: config{before: o.Limit}}) {
		if c.name != o.Contender {
			continue
		}
		work, end, err := c.work(o.Redis)
		if err != nil {
			return nil, err
		}
		defer end()
		if _, _, err := harness.Hammer(ctx, o.Goroutines, harness.Until{Time: o.Length / 10}, work); err != nil {
			return nil, err
		}
		if err := sleepUntil(ctx, o.At); err != nil {
			return nil, err
		}
		calls, took, err := harness.Hammer(ctx, o.Goroutines, harness.Until{Time: o.Length}, work)
		return done{calls, took}, err
	}
	return nil, fmt.Errorf("there is no contender %q", o.Contender)
}

// fourProcesses is row 2.
func fourProcesses(ctx context.Context, b *bench) ([]check, error) {
	children, end, err := startChildren(ctx, b.progress, processes)
	if err != nil {
		return nil, err
	}
	defer end()
	r := make(results)
	contenders := contendersOfProcesses(b)
	for range b.rounds {
		for _, c := range contenders {
			if err := b.rdb.FlushAll(ctx).Err(); err != nil {
				return nil, err
			}
			if _, err := c.ready(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			// Time to start, and to warm up together.
			at := time.Now().Add(100*time.Millisecond + b.each/5)
			for _, p := range children {
				o := order{Do: "hammer", Redis: b.addr, Contender: c.name, Limit: b.before, Goroutines: goroutines / processes, At: at, Length: b.each}
				if err := p.tell(o); err != nil {
					return nil, err
				}
			}
			speed, calls := 0.0, 0
			for _, p := range children {
				var d done
				if err := p.hear(&d); err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
				}
				speed += float64(d.Calls) / d.Took.Seconds()
				calls += d.Calls
			}
			r[c.name] = append(r[c.name], speed)
			b.record(c.name, calls, speed, "calls/s")
		}
	}
	for _, c := range contenders {
		b.figures = append(b.figures, figure{b.row, c.name, "calls/s", r[c.name]})
	}
	return []check{{
		what: "against redis_rate", measured: worse(r.over("ration,free", "redis_rate"), r.over("ration,spent", "redis_rate")), target: atLeast(2, "x"),
		figures: fmt.Sprintf("%s/s with quota left, %s/s with it spent; redis_rate %s/s",
			number(median(r["ration,free"])), number(median(r["ration,spent"])), number(median(r["redis_rate"]))),
	}}, nil
}
