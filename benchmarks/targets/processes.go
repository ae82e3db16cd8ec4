package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
)

const processes = 4

// contendersOfProcesses are those of row 2. Each process has a client and a limiter
// of its own.
func (b *bench) contendersOfProcesses() []racer {
	return []racer{
		b.free("ration,free", 1, account(hot, ration.PerHour(peers.Plenty))),
		b.spent("ration,spent", 1, account(hot, ration.PerHour(b.before))),
		b.of("redis_rate", 0),
		b.of("INCR", 0),
	}
}

// Done is what Hammer has done.
type Done struct {
	Calls int
	Took  time.Duration
}

// Hammer works from Goroutines for Length beginning At, after it has warmed
// up for a tenth of that.
func (j *jobs) Hammer(o Order, all *Done) error {
	b := &bench{config: config{before: o.Limit}, rdb: newClient(o.Redis), filled: true}
	defer b.rdb.Close()
	for _, c := range b.contendersOfProcesses() {
		if c.name != o.Contender {
			continue
		}
		work, err := c.ready(j.ctx)
		if err != nil {
			return err
		}
		if _, _, err := harness.Hammer(j.ctx, o.Goroutines, harness.Until{Time: o.Length / 10}, work); err != nil {
			return err
		}
		if err := harness.Sleep(j.ctx, time.Until(o.At)); err != nil {
			return err
		}
		all.Calls, all.Took, err = harness.Hammer(j.ctx, o.Goroutines, harness.Until{Time: o.Length}, work)
		return err
	}
	return fmt.Errorf("there is no contender %q", o.Contender)
}

// fourProcesses is row 2.
func fourProcesses(ctx context.Context, b *bench) ([]check, error) {
	children, end, err := startChildren(ctx, b.progress, processes)
	if err != nil {
		return nil, err
	}
	defer end()
	r, err := b.race(ctx, b.contendersOfProcesses(), "calls/s", func(_ context.Context, c racer, _ peers.Work) (speed float64, calls int, err error) {
		// Time to start, and to warm up together.
		at := time.Now().Add(100*time.Millisecond + b.each/5)
		all, err := askAll[Done](children, "Hammer", func(int) Order {
			return Order{Redis: b.addr, Contender: c.name, Limit: b.before, Goroutines: goroutines / processes, At: at, Length: b.each}
		})
		for _, d := range all {
			speed += float64(d.Calls) / d.Took.Seconds()
			calls += d.Calls
		}
		return speed, calls, err
	})
	if err != nil {
		return nil, err
	}
	return []check{{
		what: "against redis_rate", measured: worse(r.over("ration,free", "redis_rate"), r.over("ration,spent", "redis_rate")), target: atLeast(2, "x"),
		figures: r.figures("%s/s with quota left, %s/s with it spent; redis_rate %s/s", "ration,free", "ration,spent", "redis_rate"),
	}}, nil
}
