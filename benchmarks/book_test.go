package benchmarks

import (
	"context"
	"testing"

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
	b.ReportAllocs()
	b.ResetTimer()
	fill(b, work, int64(b.N))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
