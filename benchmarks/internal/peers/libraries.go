package peers

import (
	"context"
	"math"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
	"golang.org/x/time/rate"
)

// redisRate is GCRA with a burst of the whole quota, as its own constructors have
// it.
var redisRate = Peer{
	Name: "redis_rate",
	Start: func(rdb redis.UniversalClient, limit int) (On, error) {
		limiter, quota := redis_rate.NewLimiter(rdb), redis_rate.PerHour(limit)
		return keyed(func(ctx context.Context, key string) error {
			answer, err := limiter.Allow(ctx, key, quota)
			return admitted(err == nil && answer.Allowed > 0, err)
		})
	},
	Sends: []string{"evalsha"},
	Keyed: true,
}

// throttledRedis reads, computes in the client, and compares and swaps. It gives
// up when it has lost ten times to others; here it goes on, as every other peer
// does its work in the end.
var throttledRedis = Peer{
	Name: "throttled",
	Start: func(rdb redis.UniversalClient, limit int) (On, error) {
		store, err := goredisstore.NewCtx(rdb, "throttled:")
		if err != nil {
			return nil, err
		}
		limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(limit), MaxBurst: limit - 1})
		if err != nil {
			return nil, err
		}
		limiter.SetMaxCASAttemptsLimit(math.MaxInt32)
		return keyed(func(ctx context.Context, key string) error {
			over, _, err := limiter.RateLimitCtx(ctx, key, 1)
			return admitted(!over, err)
		})
	},
	Sends: []string{"time", "get", "eval"},
	Keyed: true,
}

// ulule is a fixed window of an hour from the first call on.
func ulule(store limiter.Store, err error, limit int) (On, error) {
	if err != nil {
		return nil, err
	}
	l := limiter.New(store, limiter.Rate{Period: time.Hour, Limit: int64(limit)})
	return keyed(func(ctx context.Context, key string) error {
		answer, err := l.Get(ctx, key)
		return admitted(!answer.Reached, err)
	})
}

var ululeRedis = Peer{
	Name: "ulule",
	Start: func(rdb redis.UniversalClient, limit int) (On, error) {
		store, err := ululeredis.NewStore(rdb)
		return ulule(store, err, limit)
	},
	Sends: []string{"evalsha"},
	Keyed: true,
}

var ululeMemory = Peer{
	Name: "ulule-memory",
	Start: func(_ redis.UniversalClient, limit int) (On, error) {
		return ulule(memory.NewStore(), nil, limit)
	},
}

// goLimiter is a fixed window of an hour. Its store in Redis is a module of its
// own, on another client than go-redis.
var goLimiter = Peer{
	Name: "go-limiter-memory",
	Start: func(_ redis.UniversalClient, limit int) (On, error) {
		store, err := memorystore.New(&memorystore.Config{Tokens: uint64(limit), Interval: time.Hour})
		if err != nil {
			return nil, err
		}
		return keyed(func(ctx context.Context, key string) error {
			_, _, _, ok, err := store.Take(ctx, key)
			return admitted(ok, err)
		})
	},
}

// timeRate is a bucket that holds the whole quota. It knows no keys: each has a
// limiter.
var timeRate = Peer{
	Name: "x-time-rate",
	Start: func(_ redis.UniversalClient, limit int) (On, error) {
		return func(string) Work {
			l := rate.NewLimiter(rate.Limit(float64(limit)/time.Hour.Seconds()), limit)
			return func(context.Context) error { return admitted(l.Allow(), nil) }
		}, nil
	},
}

// failsafe is its bursty limiter: the whole quota at the beginning of each hour.
// It knows no keys: each has a limiter.
var failsafe = Peer{
	Name: "failsafe-go",
	Start: func(_ redis.UniversalClient, limit int) (On, error) {
		return func(string) Work {
			l := ratelimiter.NewBursty[any](uint(limit), time.Hour)
			return func(context.Context) error { return admitted(l.TryAcquirePermit(), nil) }
		}, nil
	},
}
