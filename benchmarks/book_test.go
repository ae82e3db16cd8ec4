package benchmarks

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// goroutines share one key, and the client's connections.
const goroutines = 64

// BenchmarkBook makes calls on one hot key from 64 goroutines: each contender with
// a quota that never runs out and 5,000 calls made on it before, then ration with
// a quota of 5,000 that is spent. Contenders whose calls cost the more, the more
// were made are best compared with a -benchtime of a few hundred calls, such as
// 500x.
func BenchmarkBook(b *testing.B) {
	const before = 5000
	server := redistest.Start(b)
	rdb := server.Client(b)
	for _, peer := range peers.All() {
		name := peer.Name
		if peer.Name == "ration.RedisStore" || peer.Name == "ration.MemoryStore" {
			name += "/spent=0"
		}
		b.Run(name, func(b *testing.B) {
			require.NoError(b, rdb.FlushAll(b.Context()).Err())
			on, err := peer.Start(rdb, peers.Plenty)
			require.NoError(b, err)
			work := on("hot")
			if peer.Fill != nil {
				require.NoError(b, peer.Fill(b.Context(), rdb, "hot", before))
			} else {
				fill(b, work, before)
			}
			hammer(b, work)
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
			kept, limit := s.make(), ration.PerHour(before)
			fill(b, peers.Book(kept, "hot", limit, 0), before)
			require.ErrorIs(b, peers.Book(kept, "hot", limit, 0)(b.Context()), peers.ErrRefused)
			hammer(b, peers.Book(kept, "hot", limit, store.Forever))
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
