package wakes_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// The limits of one account of 200 are changed, while callers wait for all of them and Redis is 10 ms away each way: the calls of the
// others leave as before, and nobody asks for their limits.
func TestAChangeOfOneAccountHoldsUpNoOther(t *testing.T) {
	const tokens, window = 200, 2 * time.Second
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: redistest.StartProxy(t, server.Addr, 10*time.Millisecond).Addr, PoolSize: 100})
	defer client.Close()
	store := &ration.RedisStore{Client: client}
	b := &ration.Budget{Name: "many", Store: store, Limits: []ration.Limit{{Max: 1, Window: window}}}
	var all []ration.Token
	for i := range tokens {
		all = append(all, ration.NewToken(fmt.Sprint("token-", i)))
	}
	pool := ration.NewPool(b, all...)
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var left atomic.Int64
	for range 2 * tokens {
		callers.Go(func() {
			for ctx.Err() == nil {
				if _, err := pool.Take(ctx, 1); err == nil {
					left.Add(1)
				}
			}
		})
	}
	time.Sleep(2 * window)
	one := all[0]
	one.Limits = []ration.Limit{{Max: 1, Window: window + time.Second}}
	before, asked := left.Load(), commandsOf(t, server)
	pool.Add(one)
	time.Sleep(2 * window)
	n, commands := left.Load()-before, commandsOf(t, server)-asked
	stop()
	callers.Wait()
	require.NoError(t, store.Settle(t.Context()))
	require.GreaterOrEqual(t, n, int64(2*tokens*9/10), "in two windows after the change")
	require.Less(t, commands, 3*n, "a question for each account whose limits are as they were")
}

// commandsOf returns how many commands the server was sent.
func commandsOf(t *testing.T, server *redistest.Server) int64 {
	t.Helper()
	return int64(server.Commands(t))
}
