package outages_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A budget may be moved to another node while it is booked on, as docs/explanation/capacity.md
// says: some bookings fail meanwhile, and all that were granted are counted after.
func TestABudgetMovesToAnotherNode(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), PoolSize: 8})
	defer client.Close()
	var nodes []*redis.Client
	for _, addr := range cluster.Addrs() {
		node := redis.NewClient(&redis.Options{Addr: addr})
		defer node.Close()
		nodes = append(nodes, node)
	}
	const slots = 16384 // of every Redis Cluster
	const name, workers, tokens = "moved", 8, 20
	var lost atomic.Int64
	budget := &ration.Budget{
		Name: name, Limits: []ration.Limit{ration.PerHour(100_000)}, Store: &ration.RedisStore{Client: client},
		OnEvent: func(n ration.Event) {
			if n.Kind == ration.LogLost {
				lost.Add(1)
			}
		},
	}
	var all []ration.Token
	for i := range tokens {
		all = append(all, ration.NewToken("token "+strconv.Itoa(i)))
	}
	pool := ration.NewPool(budget, all...)
	var over atomic.Bool
	var granted, failed atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for !over.Load() {
				_, err := pool.Take(t.Context(), 1)
				if errors.Is(err, ration.ErrStoreUnavailable) {
					failed.Add(1)
					continue
				}
				if err != nil {
					t.Errorf("after %d: %v", granted.Load(), err)
					return
				}
				granted.Add(1)
			}
		})
	}
	at := func(n int64) {
		require.Eventually(t, func() bool { return granted.Load() >= n }, 20*time.Second, time.Millisecond)
	}
	at(2000)
	slot, err := nodes[0].ClusterKeySlot(t.Context(), "ration:v2:{"+name+"}").Result()
	require.NoError(t, err)
	from := int(slot) * len(nodes) / slots
	to := (from + 1) % len(nodes)
	begun := time.Now()
	moved := move(t, nodes, cluster.Addrs(), int(slot), from, to)
	t.Logf("%d keys in %v, after %d", moved, time.Since(begun), granted.Load())
	at(granted.Load() + 2000)
	t.Logf("on after %v", time.Since(begun))
	over.Store(true)
	group.Wait()

	require.Zero(t, lost.Load(), "a log was taken to be lost")
	require.Zero(t, nodes[from].ClusterCountKeysInSlot(t.Context(), int(slot)).Val())
	left, err := pool.Remaining(t.Context())
	require.NoError(t, err)
	used := tokens*100_000 - left
	t.Logf("%d granted, %d used, %d failed", granted.Load(), used, failed.Load())
	require.GreaterOrEqual(t, used, int(granted.Load()))
}

// move moves a slot with its keys, one after the other, and returns how many there were.
func move(t *testing.T, nodes []*redis.Client, addrs []string, slot, from, to int) (keys int) {
	ctx := context.Background()
	id := func(i int) string {
		text, err := nodes[i].Do(ctx, "cluster", "myid").Text()
		require.NoError(t, err)
		return text
	}
	host, port, err := net.SplitHostPort(addrs[to])
	require.NoError(t, err)
	require.NoError(t, nodes[to].Do(ctx, "cluster", "setslot", slot, "importing", id(from)).Err())
	require.NoError(t, nodes[from].Do(ctx, "cluster", "setslot", slot, "migrating", id(to)).Err())
	for {
		some, err := nodes[from].ClusterGetKeysInSlot(ctx, slot, 10).Result()
		require.NoError(t, err)
		if len(some) == 0 {
			break
		}
		for _, key := range some {
			require.NoError(t, nodes[from].Migrate(ctx, host, port, key, 0, 10*time.Second).Err())
			keys++
		}
	}
	owner := id(to)
	for _, i := range []int{to, from, 3 - to - from} {
		require.NoError(t, nodes[i].Do(ctx, "cluster", "setslot", slot, "node", owner).Err())
	}
	return keys
}
