package benchmarks

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
)

// goroutines share one key, and the client's connections.
const goroutines = 64

// plenty is a limit, in calls an hour, that no benchmark reaches.
const plenty = 1_000_000_000

// BenchmarkBook books on one hot account from 64 goroutines: each contender with
// a quota that never runs out, then ration with one that is spent.
func BenchmarkBook(b *testing.B) {
	server := redistest.Start(b)
	rdb := server.Client(b)
	for _, c := range contenders {
		name := c.name
		if c.name == "ration.RedisStore" || c.name == "ration.MemoryStore" {
			name += "/spent=0"
		}
		b.Run(name, func(b *testing.B) {
			require.NoError(b, rdb.FlushAll(b.Context()).Err())
			hammer(b, c.start(rdb, "hot", plenty))
		})
	}
	for _, s := range []struct {
		name string
		make func() ration.Store
	}{
		{"ration.RedisStore", func() ration.Store { return &ration.RedisStore{Client: rdb} }},
		{"ration.MemoryStore", func() ration.Store { return new(ration.MemoryStore) }},
	} {
		b.Run(s.name+"/spent=5000", func(b *testing.B) {
			require.NoError(b, rdb.FlushAll(b.Context()).Err())
			const limit = 5000
			store := s.make()
			now := book(store, "hot", limit, 0)
			for range limit {
				require.NoError(b, now(b.Context()))
			}
			require.ErrorIs(b, now(b.Context()), errRefused)
			hammer(b, book(store, "hot", limit, ration.Forever))
		})
	}
}

// hammer does the work b.N times from all goroutines.
func hammer(b *testing.B, work func(context.Context) error) {
	b.Helper()
	require.NoError(b, work(b.Context())) // connects, and loads the script
	var (
		wg     sync.WaitGroup
		left   atomic.Int64
		failed atomic.Pointer[error]
	)
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := work(b.Context()); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkMemory measures what 5,000 bookings made one after another cost in
// Redis.
func BenchmarkMemory(b *testing.B) {
	const bookings = 5000
	server := redistest.Start(b)
	rdb := server.Client(b)
	var log, answers, all int64
	for b.Loop() {
		require.NoError(b, rdb.FlushAll(b.Context()).Err())
		work := book(&ration.RedisStore{Client: rdb}, "one", bookings, 0)
		before := usedMemory(b, server)
		for range bookings {
			require.NoError(b, work(b.Context()))
		}
		all = usedMemory(b, server) - before
		entries, err := rdb.ZCard(b.Context(), logKey("one")).Result()
		require.NoError(b, err)
		require.Equal(b, int64(bookings), entries)
		log, err = rdb.MemoryUsage(b.Context(), logKey("one"), 0).Result()
		require.NoError(b, err)
		answers = 0
		keys := rdb.Scan(b.Context(), 0, "ration:v1:{"+budgetName+"}:id:*", 1000).Iterator()
		for keys.Next(b.Context()) {
			size, err := rdb.MemoryUsage(b.Context(), keys.Val(), 0).Result()
			require.NoError(b, err)
			ttl, err := rdb.PTTL(b.Context(), keys.Val()).Result()
			require.NoError(b, err)
			require.LessOrEqual(b, ttl, time.Minute)
			answers += size
		}
		require.NoError(b, keys.Err())
	}
	b.ReportMetric(float64(log)/bookings, "B/booking")
	b.ReportMetric(float64(answers)/bookings, "B/answer")
	b.ReportMetric(float64(all)/bookings, "B-in-all/booking")
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
