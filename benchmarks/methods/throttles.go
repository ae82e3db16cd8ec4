package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/ration-go/ration"
)

// A method is one row of the table.
type method struct {
	name  string // for -methods
	title string // in the table
	start func(setup) (throttle, error)
}

// A setup is what a throttle is made of. A method uses what it needs.
type setup struct {
	redis   redis.UniversalClient
	limit   ration.Limit
	workers int
	token   string
}

// A throttle holds the workers of one run back. It is used by all of them at
// once.
type throttle interface {
	// wait returns nil when that worker, counted from 0, may make one call. It
	// returns errOver, or an error once ctx has ended, if the worker's turn
	// does not come before the run is over; any other error ends the run.
	wait(ctx context.Context, worker int) error
}

// errOver says that the run will be over before the worker's turn.
var errOver = errors.New("no turn before the end")

var methods = []method{
	{"multi", "a sorted set in MULTI (log first, count after), polling every 100 ms", startMulti},
	{"redis_rate", "go-redis/redis_rate v10 (GCRA), sleeping RetryAfter", startRedisRate},
	{"rate", "golang.org/x/time/rate, an equal share each", startRate},
	{"none", "no throttling", startNone},
	{"ration", "**ration: booking ahead**", startRation},
}

func names() []string {
	var all []string
	for _, m := range methods {
		all = append(all, m.name)
	}
	return all
}

// choose returns the methods that a list with commas names, in its order.
func choose(list string) ([]method, error) {
	var chosen []method
next:
	for name := range strings.SplitSeq(list, ",") {
		for _, m := range methods {
			if m.name == strings.TrimSpace(name) {
				chosen = append(chosen, m)
				continue next
			}
		}
		return nil, fmt.Errorf("-methods has %q: there are %s", name, strings.Join(names(), ", "))
	}
	return chosen, nil
}

// ration books once and sleeps until its slot. Margin is the default.
type booking struct {
	budget *ration.Budget
	token  ration.Token
}

func startRation(s setup) (throttle, error) {
	return &booking{
		budget: &ration.Budget{
			Name:   "methods",
			Limits: []ration.Limit{s.limit},
			Store:  &ration.RedisStore{Client: s.redis},
		},
		token: ration.NewToken(s.token),
	}, nil
}

func (b *booking) wait(ctx context.Context, _ int) error {
	_, err := b.budget.Wait(ctx, b.token, 1)
	if errors.Is(err, ration.ErrExhausted) {
		return errOver // the next slot is behind the deadline
	}
	return err
}

// multi is the transaction of the article "Building a sliding window rate
// limiter with Redis", command by command: old calls are removed, those in the
// window read, this one is added whatever their number, and only then does the
// caller count. Timestamps are in microseconds, on the worker's clock, and each
// is its own member: two workers in one microsecond are one entry, so that a run
// with a few such pairs in its first burst shows as many refusals at most. The
// article does not say what a worker does that is not allowed to call; here it
// asks again every 100 ms.
type multi struct {
	setup
	key string
}

const pollEvery = 100 * time.Millisecond

func startMulti(s setup) (throttle, error) {
	return &multi{setup: s, key: ration.NewToken(s.token).ID()}, nil
}

func (m *multi) wait(ctx context.Context, _ int) error {
	for {
		now := time.Now()
		var timestamps *redis.StringSliceCmd
		_, err := m.redis.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			tx.ZRemRangeByScore(ctx, m.key, "0", micros(now.Add(-m.limit.Window)))
			timestamps = tx.ZRange(ctx, m.key, 0, -1)
			tx.ZAdd(ctx, m.key, redis.Z{Score: float64(now.UnixMicro()), Member: micros(now)})
			tx.Expire(ctx, m.key, max(m.limit.Window, time.Second)) // whole seconds
			return nil
		})
		if err != nil {
			return err
		}
		if len(timestamps.Val()) < m.limit.Max {
			return nil
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

func micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// gcra is redis_rate with the burst of its own constructors, which is the rate.
type gcra struct {
	limiter *redis_rate.Limiter
	limit   redis_rate.Limit
	key     string
}

func startRedisRate(s setup) (throttle, error) {
	return &gcra{
		limiter: redis_rate.NewLimiter(s.redis),
		limit:   redis_rate.Limit{Rate: s.limit.Max, Burst: s.limit.Max, Period: s.limit.Window},
		key:     ration.NewToken(s.token).ID(),
	}, nil
}

func (g *gcra) wait(ctx context.Context, _ int) error {
	for {
		answer, err := g.limiter.Allow(ctx, g.key, g.limit)
		if err != nil {
			return err
		}
		if answer.Allowed > 0 {
			return nil
		}
		if err := sleep(ctx, answer.RetryAfter); err != nil {
			return err
		}
	}
}

// shares gives each worker an equal part of the quota, as workers that share
// nothing must. The burst is the part of one window, in whole calls.
type shares []*rate.Limiter

func startRate(s setup) (throttle, error) {
	all := make(shares, s.workers)
	perSecond := float64(s.limit.Max) / s.limit.Window.Seconds() / float64(s.workers)
	for i := range all {
		all[i] = rate.NewLimiter(rate.Limit(perSecond), s.limit.Max/s.workers)
	}
	return all, nil
}

func (s shares) wait(ctx context.Context, worker int) error {
	if err := s[worker].Wait(ctx); err != nil {
		// One call is never more than the burst, so this is the context's end,
		// or a turn that comes after it: an error that cannot be matched.
		return errOver
	}
	return nil
}

// none lets everybody call at once.
type none struct{}

func startNone(setup) (throttle, error) { return none{}, nil }

func (none) wait(context.Context, int) error { return nil }

// sleep returns the context's error if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
