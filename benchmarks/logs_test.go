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
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

var exactLogs = []ration.Algorithm{ration.SlidingLog, ration.StreamLog}

// BenchmarkLogs makes decisions on one account whose quota of 5,000 an hour is
// spent, one after another, with each log, and by the script that sums a stream.
func BenchmarkLogs(b *testing.B) {
	const spent = 5000
	server := redistest.Start(b)
	rdb := server.Client(b)
	for _, log := range exactLogs {
		b.Run(log.String(), func(b *testing.B) {
			require.NoError(b, rdb.FlushAll(b.Context()).Err())
			kept := &ration.RedisStore{Client: rdb}
			fill(b, peers.Book(kept, "hot", ration.PerHour(spent).Using(log), 0), spent)
			repeat(b, peers.Book(kept, "hot", ration.PerHour(spent).Using(log), store.Forever))
		})
	}
	b.Run("SumOfXRANGE", func(b *testing.B) {
		require.NoError(b, rdb.FlushAll(b.Context()).Err())
		sum, err := peers.Named("stream-sum")
		require.NoError(b, err)
		require.NoError(b, sum.Fill(b.Context(), rdb, "hot", spent))
		on, err := sum.Start(rdb, spent)
		require.NoError(b, err)
		work := on("hot")
		repeat(b, func(ctx context.Context) error {
			if err := work(ctx); err != peers.ErrRefused {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		})
	})
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
// 5,000 in each log.
func BenchmarkMemory(b *testing.B) {
	server := redistest.Start(b)
	for _, log := range exactLogs {
		b.Run(fmt.Sprintf("%v/bookings=5000", log), func(b *testing.B) {
			for b.Loop() {
				measure(b, server, log, 5000)
			}
		})
	}
}

// measure books in an empty Redis, and reports what it cost.
func measure(b *testing.B, server *redistest.Server, log ration.Algorithm, bookings int) {
	rdb := server.Client(b)
	require.NoError(b, rdb.FlushAll(b.Context()).Err())
	kept, limit := &ration.RedisStore{Client: rdb}, ration.PerHour(bookings).Using(log)
	before := usedMemory(b, server)
	fill(b, peers.Book(kept, "one", limit, 0), int64(bookings))
	all := usedMemory(b, server) - before
	require.ErrorIs(b, peers.Book(kept, "one", limit, 0)(b.Context()), peers.ErrRefused)

	b.ReportMetric(float64(sizeOf(b, rdb, "log:*", "stream:*"))/float64(bookings), "B/booking")
	b.ReportMetric(float64(all)/float64(bookings), "B-in-all/booking")
}

// sizeOf sums the sizes of the budget's keys that match.
func sizeOf(b *testing.B, rdb *redis.Client, patterns ...string) (size int64) {
	b.Helper()
	for _, pattern := range patterns {
		keys := rdb.Scan(b.Context(), 0, "ration:v2:{"+peers.Budget+"}:"+pattern, 10_000).Iterator()
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
