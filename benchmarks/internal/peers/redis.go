package peers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// ping is what a round trip costs.
var ping = Peer{
	Name:      "PING",
	Unlimited: true,
	Start: func(rdb redis.UniversalClient, _ int) (On, error) {
		return keyed(func(ctx context.Context, _ string) error { return rdb.Ping(ctx).Err() })
	},
	Sends: []string{"ping"},
}

// incr is what counting costs that keeps nobody back.
var incr = Peer{
	Name:      "INCR",
	Unlimited: true,
	Start: func(rdb redis.UniversalClient, _ int) (On, error) {
		return keyed(func(ctx context.Context, key string) error { return rdb.Incr(ctx, "incr:"+key).Err() })
	},
	Sends: []string{"incr"},
	Keyed: true,
}

var articleMulti = Peer{
	Name: "article-MULTI",
	Start: func(rdb redis.UniversalClient, limit int) (On, error) {
		return keyed(func(ctx context.Context, key string) error {
			return Multi(ctx, rdb, "multi:"+key, limit, time.Hour)
		})
	},
	Sends: []string{"multi", "zremrangebyscore", "zrange", "zadd", "expire", "exec"},
	Keyed: true,
	Fill: func(ctx context.Context, rdb redis.UniversalClient, key string, n int) error {
		begin := time.Now().Add(-time.Minute)
		return inBatches(ctx, rdb, n, func(p redis.Pipeliner, i int) {
			at := begin.Add(time.Duration(i) * time.Minute / time.Duration(n))
			p.ZAdd(ctx, "multi:"+key, redis.Z{Score: float64(at.UnixMicro()), Member: micros(at)})
		})
	},
}

// Multi is the transaction of "Building a sliding window rate limiter with Redis",
// command by command: old calls are removed, those in the window read, this one is
// added whatever their number, and only then does the caller count. Calls are in
// microseconds on the caller's clock and each is its own member: two in one
// microsecond are one entry.
func Multi(ctx context.Context, rdb redis.UniversalClient, key string, limit int, window time.Duration) error {
	now := time.Now()
	var calls *redis.StringSliceCmd
	_, err := rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.ZRemRangeByScore(ctx, key, "0", micros(now.Add(-window)))
		calls = tx.ZRange(ctx, key, 0, -1)
		tx.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMicro()), Member: micros(now)})
		tx.Expire(ctx, key, max(window, time.Second)) // whole seconds
		return nil
	})
	return admitted(err == nil && len(calls.Val()) < limit, err)
}

func micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// streamSum is the usual limiter on a stream: a script trims what has left the
// window, and sums the costs of all that is left.
var streamSum = Peer{
	Name: "stream-sum",
	Start: func(rdb redis.UniversalClient, limit int) (On, error) {
		return keyed(func(ctx context.Context, key string) error {
			ok, err := sumScript.Run(ctx, rdb, []string{"sum:" + key}, limit).Bool()
			return admitted(ok, err)
		})
	},
	Sends: []string{"evalsha"},
	Keyed: true,
	Fill: func(ctx context.Context, rdb redis.UniversalClient, key string, n int) error {
		begin := time.Now().Add(-time.Minute).UnixMilli()
		return inBatches(ctx, rdb, n, func(p redis.Pipeliner, i int) {
			p.XAdd(ctx, &redis.XAddArgs{Stream: "sum:" + key, ID: fmt.Sprintf("%d-%d", begin+int64(i/100), i%100), Values: []any{"c", 1}})
		})
	},
}

var sumScript = redis.NewScript(`
	local time = redis.call('TIME')
	local now = time[1] * 1000 + math.floor(time[2] / 1000)
	redis.call('XTRIM', KEYS[1], 'MINID', string.format('%.0f', now - 3600000))
	local sum = 0
	for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
		sum = sum + tonumber(entry[2][2])
	end
	if sum + 1 > tonumber(ARGV[1]) then
		return 0
	end
	redis.call('XADD', KEYS[1], '*', 'c', 1)
	redis.call('PEXPIRE', KEYS[1], 3600000)
	return 1`)

// subWindowHash is the article "Sliding Window Counter Rate Limiter": a hash has
// a counter for each sub-window, here of a minute; the caller reads all, sums
// them, and then adds to its own in a transaction. The article has fields expire by
// HEXPIRE, which Redis has since 7.4: here the hash expires, and the caller leaves
// counters that are older out of its sum. Between the two steps others may count,
// so that it lets more through than it should.
var subWindowHash = Peer{
	Name: "sub-window-hash",
	Start: func(rdb redis.UniversalClient, limit int) (On, error) {
		return keyed(func(ctx context.Context, key string) error {
			key = "hash:" + key
			counters, err := rdb.HGetAll(ctx, key).Result()
			if err != nil {
				return err
			}
			minute := time.Now().Unix() / 60
			calls := 0
			for field, value := range counters {
				of, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					return err
				}
				n, err := strconv.Atoi(value)
				if err != nil {
					return err
				}
				if of > minute-60 {
					calls += n
				}
			}
			if calls >= limit {
				return ErrRefused
			}
			_, err = rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
				tx.HIncrBy(ctx, key, strconv.FormatInt(minute, 10), 1)
				tx.Expire(ctx, key, time.Hour)
				return nil
			})
			return err
		})
	},
	Sends: []string{"hgetall", "multi", "hincrby", "expire", "exec"},
	Keyed: true,
	Fill: func(ctx context.Context, rdb redis.UniversalClient, key string, n int) error {
		// The 60 counters of a window through which calls were made evenly.
		minute := time.Now().Unix() / 60
		return inBatches(ctx, rdb, 60, func(p redis.Pipeliner, i int) {
			if calls := n*(i+1)/60 - n*i/60; calls > 0 {
				p.HIncrBy(ctx, "hash:"+key, strconv.FormatInt(minute-int64(i), 10), int64(calls))
			}
		})
	},
}

// inBatches sends commands for 0 to n-1 in pipelines.
func inBatches(ctx context.Context, rdb redis.UniversalClient, n int, add func(p redis.Pipeliner, i int)) error {
	const batch = 1000
	for from := 0; from < n; from += batch {
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := from; i < min(from+batch, n); i++ {
				add(p, i)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Plenty is a limit, in calls an hour, that no measurement reaches.
const Plenty = 1_000_000_000
