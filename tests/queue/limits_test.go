package queue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/rationtrace"
)

// Limits of one account change, in this process or another. Callers that wait for another account keep their
// slots, and those of the account book again.
func TestLimitsOfOneAccountConcernItsCallersOnly(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		const callers = 20
		b.Limits = []ration.Limit{{Max: 1, Window: 10 * time.Second}}
		peer := rationtest.Peer(b)
		changed, other := ration.NewToken("changed"), ration.NewToken("other")
		var rebooked [2]atomic.Int32
		var all sync.WaitGroup
		pools := [2]*ration.Pool{ration.NewPool(b, changed), ration.NewPool(b, other)}
		for i, pool := range pools {
			trace := &rationtrace.Trace{Rebooking: func(context.Context, rationtrace.Rebooking) { rebooked[i].Add(1) }}
			for range callers {
				all.Go(func() {
					_, err := pool.Take(ration.WithTrace(t.Context(), trace), 1)
					require.NoError(t, err)
				})
			}
		}
		began := time.Now()
		time.Sleep(time.Second)
		for i, pool := range []*ration.Pool{pools[0], ration.NewPool(peer, changed)} {
			rebooked[0].Store(0)
			wider := changed
			wider.Limits = []ration.Limit{{Max: 2 + i, Window: 10 * time.Second}}
			for _, who := range []*ration.Budget{b, peer} { // so both know the revision
				_, err := who.Try(t.Context(), ration.NewToken("third"), 1)
				require.True(t, err == nil || errors.Is(err, ration.ErrExhausted))
			}
			pool.Add(wider)
			if pool != pools[0] {
				_, err := b.Try(t.Context(), ration.NewToken("fourth"), 1) // hears of it
				require.NoError(t, err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			require.Positive(t, rebooked[0].Load(), "callers of the account, change %d", i)
		}
		all.Wait()
		require.Zero(t, rebooked[1].Load(), "callers of the other account")
		require.InDelta(t, float64(callers*10), time.Since(began).Seconds(), 15)
	})
}
