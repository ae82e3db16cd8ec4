package benchmarks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// The benchmarks rest on this: each contender, which is one limiter for all
// keys, counts on the key that it is given and on no other, as often as it is
// called, and stops at its limit.
func TestContendersSeeTheirKeysAndRefuse(t *testing.T) {
	const keys, limit = 7, 5
	for _, peer := range peers.All() {
		t.Run(peer.Name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t)
			on, err := peer.Start(rdb, limit)
			require.NoError(t, err)
			var work []peers.Work
			for i := range keys {
				work = append(work, on(fmt.Sprintf("key-%d", i)))
			}
			// In turn, and key 0 first all alone: of one count for all keys the
			// others would find nothing left.
			for range limit {
				require.NoError(t, work[0](t.Context()))
			}
			for range limit {
				for i := 1; i < keys; i++ {
					require.NoError(t, work[i](t.Context()))
				}
			}
			for i := range keys {
				for range 2 {
					if peer.Unlimited {
						require.NoError(t, work[i](t.Context()))
					} else {
						require.ErrorIs(t, work[i](t.Context()), peers.ErrRefused)
					}
				}
			}
			requireKeys(t, rdb, peer, keys)
		})
	}
}

// What a contender counts stands in Redis under each of the keys, or not at all.
func requireKeys(t *testing.T, rdb *redis.Client, peer peers.Peer, keys int) {
	all, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	if !peer.Keyed {
		require.Empty(t, all)
		return
	}
	for i := range keys {
		name := fmt.Sprintf("key-%d", i)
		require.True(t, slices.ContainsFunc(all, func(key string) bool { return strings.HasSuffix(key, name) }), "%s in %q", name, all)
	}
}

// PING must be sent, and each call must be the requests that its row tells of.
func TestContendersSendWhatTheySay(t *testing.T) {
	for _, peer := range peers.All() {
		t.Run(peer.Name, func(t *testing.T) {
			server := redistest.Start(t)
			on, err := peer.Start(server.Client(t), 100)
			require.NoError(t, err)
			work := on("key")
			require.NoError(t, work(t.Context())) // loads the script
			recording := server.Record(t)
			for range 20 {
				require.NoError(t, work(t.Context()))
			}
			var want []string
			for range 20 {
				want = append(want, peer.Sends...)
			}
			require.Equal(t, want, recording.Commands(t))
		})
	}
}

// A key that was filled is as one on which so many calls were made: what is left
// of the quota is let through, and no more.
func TestFilledKeysHaveSoMuchLeft(t *testing.T) {
	const limit, filled = 130, 127
	for _, peer := range peers.All() {
		if peer.Fill == nil {
			continue
		}
		t.Run(peer.Name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t)
			require.NoError(t, peer.Fill(t.Context(), rdb, "key", filled))
			on, err := peer.Start(rdb, limit)
			require.NoError(t, err)
			work := on("key")
			for range limit - filled {
				require.NoError(t, work(t.Context()))
			}
			require.ErrorIs(t, work(t.Context()), peers.ErrRefused)
			require.NoError(t, on("other")(t.Context()))
		})
	}
}

func TestPeersHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, peer := range peers.All() {
		require.Regexp(t, `^[\w.-]+$`, peer.Name)
		require.False(t, seen[peer.Name], peer.Name)
		seen[peer.Name] = true
		found, err := peers.Named(peer.Name)
		require.NoError(t, err)
		require.Equal(t, peer.Name, found.Name)
	}
	_, err := peers.Named("nobody")
	require.ErrorContains(t, err, "redis_rate")
}
