package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/peers"
)

// A method is one row of the table.
type method struct {
	name  string // for -methods
	title string // in the table
	start func(setup) throttle
}

// A setup is what a throttle is made of. A method uses what it needs.
type setup struct {
	redis   redis.UniversalClient
	limit   ration.Limit
	workers int
}

// A throttle holds the workers of one run back. All of them call it at once. It
// returns nil when that worker, counted from 0, may make one call. It returns
// errOver, or an error once ctx has ended, if the worker's turn does not come before
// the run is over; any other error ends the run.
type throttle func(ctx context.Context, worker int) error

// errOver says that the run will be over before the worker's turn.
var errOver = errors.New("no turn before the end")

var methods = []method{
	{"multi", "a sorted set in MULTI (log first, count after), polling every 100 ms", startMulti},
	{"redis_rate", "go-redis/redis_rate v10 (GCRA), sleeping RetryAfter", startRedisRate},
	{"rate", "golang.org/x/time/rate, an equal share each", startRate},
	{"none", "no throttling", startNone},
	{"ration", "**ration: booking ahead**", startRation},
}

func (m method) id() string { return m.name }

// startRation books once and sleeps until its slot. Margin is the default.
func startRation(s setup) throttle {
	budget := &ration.Budget{Name: "methods", Limits: []ration.Limit{s.limit}, Store: &ration.RedisStore{Client: s.redis}}
	account := ration.NewToken(token)
	return func(ctx context.Context, _ int) error {
		_, err := budget.Wait(ctx, account, 1)
		if errors.Is(err, ration.ErrExhausted) {
			return errOver // the next slot is behind the deadline
		}
		return err
	}
}

// startMulti is the transaction of peers.Multi. The article does not say what a
// worker does that is not allowed to call; here it asks again every 100 ms.
func startMulti(s setup) throttle {
	key := ration.NewToken(token).ID()
	return func(ctx context.Context, _ int) error {
		for {
			err := peers.Multi(ctx, s.redis, key, s.limit.Max, s.limit.Window)
			if !errors.Is(err, peers.ErrRefused) {
				return err
			}
			if err := harness.Sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
	}
}

// startRedisRate is redis_rate with the burst of its own constructors, which is the
// rate.
func startRedisRate(s setup) throttle {
	limiter, key := redis_rate.NewLimiter(s.redis), ration.NewToken(token).ID()
	limit := redis_rate.Limit{Rate: s.limit.Max, Burst: s.limit.Max, Period: s.limit.Window}
	return func(ctx context.Context, _ int) error {
		for {
			answer, err := limiter.Allow(ctx, key, limit)
			if err != nil || answer.Allowed > 0 {
				return err
			}
			if err := harness.Sleep(ctx, answer.RetryAfter); err != nil {
				return err
			}
		}
	}
}

// startRate gives each worker an equal part of the quota, as workers that share
// nothing must. The burst is the part of one window, in whole calls.
func startRate(s setup) throttle {
	all := make([]*rate.Limiter, s.workers)
	perSecond := float64(s.limit.Max) / s.limit.Window.Seconds() / float64(s.workers)
	for i := range all {
		all[i] = rate.NewLimiter(rate.Limit(perSecond), s.limit.Max/s.workers)
	}
	return func(ctx context.Context, worker int) error {
		if err := all[worker].Wait(ctx); err != nil {
			// One call is never more than the burst, so this is the context's end,
			// or a turn that comes after it: an error that cannot be matched.
			return errOver
		}
		return nil
	}
}

// startNone lets everybody call at once.
func startNone(setup) throttle {
	return func(context.Context, int) error { return nil }
}
