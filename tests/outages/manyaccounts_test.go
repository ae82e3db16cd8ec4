package outages_test

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
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/rationtrace"
)

// 300 tokens have spent what an hour allows of one unit for each route, on a Redis that is 10 ms away each way, when it loses its log:
// 900 logs are recorded again before anybody gets a slot, so nothing is spent twice. The routes have names that no store keeps as they
// are, and a worker that comes without a word of its own hears of none.
func TestALossOfManyAccountsThatAreFarIsHeardBeforeAnybodyBooks(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const tokens = 300
	server := redistest.Start(t)
	var limits []ration.Limit
	for _, text := range []string{"1000/1h", "1/1h:unit=tokens,per=route", "5/1h:per=route"} {
		l, err := ration.ParseLimit(text)
		require.NoError(t, err)
		limits = append(limits, l)
	}
	var all []ration.Token
	for i := range tokens {
		all = append(all, ration.NewToken(fmt.Sprint("token-", i)))
	}
	fleet := func() *ration.Pool {
		client := redis.NewClient(&redis.Options{Addr: redistest.StartProxy(t, server.Addr, 10*time.Millisecond).Addr, PoolSize: 50})
		t.Cleanup(func() { _ = client.Close() })
		failed := func(e ration.Event) {
			if e.Kind == ration.NotRecorded {
				t.Error(e)
			}
		}
		return ration.NewPool(&ration.Budget{Name: "loss", Limits: limits, Store: &ration.RedisStore{Client: client}, OnEvent: failed}, all...)
	}
	with := func(ctx context.Context) context.Context {
		return ration.WithUnits(ration.WithKey(ctx, "route", "GET /a\tb\x00c"), map[string]int{"tokens": 1})
	}
	spender, other := fleet(), fleet()
	var callers sync.WaitGroup
	for range tokens {
		callers.Go(func() {
			_, err := spender.Take(with(t.Context()), 1)
			require.NoError(t, err)
		})
	}
	callers.Wait()

	// Each has a caller that waits, so that each hears of what happens, and the spender's others ask on.
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	var wait []chan struct{}
	for _, pool := range []*ration.Pool{spender, other} {
		waits := make(chan struct{})
		booked := sync.OnceFunc(func() { close(waits) })
		trace := &rationtrace.Trace{Booked: func(context.Context, rationtrace.Booked) { booked() }}
		waiting.Go(func() { _, _ = pool.Take(ration.WithTrace(with(ctx), trace), 1) })
		wait = append(wait, waits)
	}
	for _, waits := range wait {
		<-waits // it has looked at all tokens, which takes a while
	}
	time.Sleep(time.Second) // the watch is in force
	require.NoError(t, server.Client(t).FlushAll(t.Context()).Err())
	waiting.Go(func() {
		for ctx.Err() == nil {
			mine, done := context.WithTimeout(with(ctx), 50*time.Millisecond)
			_, _ = spender.Take(mine, 1)
			done()
		}
	})
	var again atomic.Int64
	for range tokens {
		callers.Go(func() {
			mine, done := context.WithTimeout(with(t.Context()), 6*time.Second)
			defer done()
			if _, err := other.Take(mine, 1); err == nil {
				again.Add(1)
			}
		})
	}
	callers.Wait()
	stop()
	waiting.Wait()
	require.Zero(t, again.Load(), "so many of what was spent was spent again")
}
