package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// A report is all that was measured.
type report struct {
	incr  float64 // a second
	rows  []row
	large []row // of which only redis is known
}

// A row is what was measured of one contestant.
type row struct {
	contestant
	redis, memory  int64 // bytes in all
	trips          float64
	free, spent    speed // on Redis
	memFree, mem   float64
	most           int // units in any window
	worst          string
	queue, slower  float64 // without the margin, and with it
	incrs          []float64
	frees, spents  []float64
	memFrees, mems []float64
}

// A speed is in bookings a second, and over the INCRs before it.
type speed struct{ perSecond, ofINCR float64 }

func measure(ctx context.Context, cfg config, which []contestant, addr string, progress io.Writer) (report, error) {
	sent := new(harness.Sent)
	rdb := harness.NewClient(addr, sent)
	defer rdb.Close()
	r := report{}
	for _, c := range which {
		fmt.Fprintf(progress, "%s: bytes and the worst demand\n", c.title)
		one := row{contestant: c}
		var err error
		if one.redis, err = redisBytes(ctx, rdb, c.limit, cfg.max, 1); err != nil {
			return r, fmt.Errorf("%s: in Redis: %w", c.title, err)
		}
		if one.memory, err = memoryBytes(ctx, c.limit, cfg.max); err != nil {
			return r, fmt.Errorf("%s: in memory: %w", c.title, err)
		}
		if one.most, one.worst, err = worst(ctx, c.limit, cfg.demands); err != nil {
			return r, fmt.Errorf("%s: at worst: %w", c.title, err)
		}
		if over := one.most - cfg.max; over > c.promised {
			return r, fmt.Errorf("%s: %d units over Max in one window, by the demand %q: at most %d are promised", c.title, over, one.worst, c.promised)
		}
		if one.queue, err = queue(ctx, c.limit); err != nil {
			return r, fmt.Errorf("%s: a queue: %w", c.title, err)
		}
		c.limit.Margin = cfg.margin
		if one.slower, err = queue(ctx, c.limit); err != nil {
			return r, fmt.Errorf("%s: a queue with a margin: %w", c.title, err)
		}
		r.rows = append(r.rows, one)
	}
	if err := r.speeds(ctx, cfg, rdb, sent, progress); err != nil {
		return r, err
	}
	if cfg.large > 0 {
		for _, c := range which {
			if !c.isLog() {
				continue
			}
			fmt.Fprintf(progress, "%s: %d bookings\n", c.title, cfg.large)
			c.limit = ration.Limit{Max: cfg.large, Window: 24 * time.Hour, Algorithm: c.limit.Algorithm}
			bytes, err := redisBytes(ctx, rdb, c.limit, cfg.large, cfg.workers)
			if err != nil {
				return r, fmt.Errorf("%s: %d bookings: %w", c.title, cfg.large, err)
			}
			r.large = append(r.large, row{contestant: c, redis: bytes})
		}
	}
	return r, rdb.FlushAll(ctx).Err()
}

// speeds measures all contestants in turn, and so again in every round.
func (r *report) speeds(ctx context.Context, cfg config, rdb *redis.Client, sent *harness.Sent, progress io.Writer) error {
	onRedis := func() ration.Store { return &ration.RedisStore{Client: rdb, Timeout: time.Minute} }
	var incrs []float64
	for round := range cfg.rounds {
		fmt.Fprintf(progress, "bookings a second, round %d of %d\n", round+1, cfg.rounds)
		for i := range r.rows {
			one := &r.rows[i]
			incr, _, err := cfg.speed(ctx, func(ctx context.Context) error { return rdb.Incr(ctx, "incr").Err() })
			if err != nil {
				return err
			}
			incrs, one.incrs = append(incrs, incr), append(one.incrs, incr)
			for _, m := range []struct {
				store ration.Store
				spent bool
				to    *[]float64
			}{
				{onRedis(), false, &one.frees}, {onRedis(), true, &one.spents},
				{new(ration.MemoryStore), false, &one.memFrees}, {new(ration.MemoryStore), true, &one.mems},
			} {
				if err := rdb.FlushAll(ctx).Err(); err != nil {
					return err
				}
				work, err := booker(ctx, m.store, one.limit, m.spent)
				if err != nil {
					return fmt.Errorf("%s: %w", one.title, err)
				}
				sent.Reset()
				perSecond, bookings, err := cfg.speed(ctx, work)
				if err != nil {
					return fmt.Errorf("%s: %w", one.title, err)
				}
				*m.to = append(*m.to, perSecond)
				if requests := sent.Read(); requests > 0 {
					one.trips = max(one.trips, float64(requests)/float64(bookings))
				}
			}
		}
	}
	r.incr = harness.Median(incrs)
	for i := range r.rows {
		one := &r.rows[i]
		one.free = speed{harness.Median(one.frees), harness.Median(harness.Over(one.frees, one.incrs))}
		one.spent = speed{harness.Median(one.spents), harness.Median(harness.Over(one.spents, one.incrs))}
		one.memFree, one.mem = harness.Median(one.memFrees), harness.Median(one.mems)
	}
	return nil
}

// speed has all workers do the work for a while.
func (c config) speed(ctx context.Context, work func(context.Context) error) (perSecond float64, done int, err error) {
	done, took, err := harness.Hammer(ctx, c.workers, harness.Until{Time: c.length}, work)
	return float64(done) / took.Seconds(), done, err
}
