package benchmarks

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
)

var exactLogs = []ration.Algorithm{ration.SlidingLog, ration.StreamLog, ration.PackedLog}

// BenchmarkLogs makes decisions on one account whose quota of 5,000 an hour is
// spent, one after another, with each log, and by the script that sums a stream.
func BenchmarkLogs(b *testing.B) {
	const spent = 5000
	server := redistest.Start(b)
	rdb := server.Client(b)
	for _, log := range exactLogs {
		b.Run(log.String(), func(b *testing.B) {
			require.NoError(b, rdb.FlushAll(b.Context()).Err())
			store := &ration.RedisStore{Client: rdb}
			fill(b, bookWithin(store, "hot", ration.PerHour(spent).Using(log), 0), spent)
			repeat(b, bookWithin(store, "hot", ration.PerHour(spent).Using(log), ration.Forever))
		})
	}
	b.Run("SumOfXRANGE", func(b *testing.B) {
		require.NoError(b, rdb.FlushAll(b.Context()).Err())
		work := sumOfXRANGE(rdb, "hot", spent)
		fill(b, work, spent)
		require.ErrorIs(b, work(b.Context()), errRefused)
		repeat(b, func(ctx context.Context) error {
			if err := work(ctx); err != errRefused {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		})
	})
}

// sumOfXRANGE is the usual limiter on a stream: it trims what has left the
// window, and sums the costs of all that is left.
func sumOfXRANGE(rdb *redis.Client, key string, limit int) func(context.Context) error {
	script := redis.NewScript(`
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
		return 1`)
	return func(ctx context.Context) error {
		admitted, err := script.Run(ctx, rdb, []string{"sum:" + key}, limit).Int()
		if err == nil && admitted == 0 {
			err = errRefused
		}
		return err
	}
}

// fill does the work n times, from all goroutines.
func fill(b *testing.B, work func(context.Context) error, n int64) {
	b.Helper()
	var (
		wg   sync.WaitGroup
		left atomic.Int64
	)
	left.Store(n)
	failed := make(chan error, goroutines)
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := work(b.Context()); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
}

// repeat does the work again and again, one after another.
func repeat(b *testing.B, work func(context.Context) error) {
	b.Helper()
	for b.Loop() {
		if err := work(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkMemory measures what bookings made one after another cost in Redis:
// 5,000 in each log, and 1,000,000 in the one for that.
func BenchmarkMemory(b *testing.B) {
	server := redistest.Start(b)
	for _, log := range exactLogs {
		b.Run(fmt.Sprintf("%v/bookings=5000", log), func(b *testing.B) {
			for b.Loop() {
				measure(b, server, log, 5000)
			}
		})
	}
	b.Run("PackedLog/bookings=1000000", func(b *testing.B) {
		if testing.Short() {
			b.Skip("takes minutes")
		}
		for b.Loop() {
			measure(b, server, ration.PackedLog, 1_000_000)
		}
	})
}

// measure books in an empty Redis, and reports what it cost.
func measure(b *testing.B, server *redistest.Server, log ration.Algorithm, bookings int) {
	rdb := server.Client(b)
	require.NoError(b, rdb.FlushAll(b.Context()).Err())
	store, limit := &ration.RedisStore{Client: rdb}, ration.PerHour(bookings).Using(log)
	before := usedMemory(b, server)
	fill(b, bookWithin(store, "one", limit, 0), int64(bookings))
	all := usedMemory(b, server) - before
	require.ErrorIs(b, bookWithin(store, "one", limit, 0)(b.Context()), errRefused)

	b.ReportMetric(float64(sizeOf(b, rdb, "log:*", "stream:*", "packed:*"))/float64(bookings), "B/booking")
	if bookings <= 5000 { // of more the first answers have been forgotten
		b.ReportMetric(float64(sizeOf(b, rdb, "id:*"))/float64(bookings), "B/answer")
		b.ReportMetric(float64(all)/float64(bookings), "B-in-all/booking")
	}
}

// sizeOf sums the sizes of the budget's keys that match.
func sizeOf(b *testing.B, rdb *redis.Client, patterns ...string) (size int64) {
	b.Helper()
	for _, pattern := range patterns {
		keys := rdb.Scan(b.Context(), 0, "ration:v1:{"+budgetName+"}:"+pattern, 10_000).Iterator()
		for keys.Next(b.Context()) {
			ttl, err := rdb.PTTL(b.Context(), keys.Val()).Result()
			require.NoError(b, err)
			require.Positive(b, ttl, "every key expires")
			used, err := rdb.MemoryUsage(b.Context(), keys.Val(), 0).Result()
			require.NoError(b, err)
			size += used
		}
		require.NoError(b, keys.Err())
	}
	return size
}

// usedMemory is what Redis has allocated, buffers of connections included.
func usedMemory(b *testing.B, server *redistest.Server) int64 {
	b.Helper()
	info, err := server.Client(b).InfoMap(b.Context(), "memory").Result()
	require.NoError(b, err)
	used, err := strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
	require.NoError(b, err)
	return used
}
