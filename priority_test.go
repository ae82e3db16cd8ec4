package ration_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

func TestWhoReservesLessOvertakesWhoReservesMore(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 10, Window: 10 * time.Second}}
		backfill := rationtest.Peer(b)
		backfill.Reserve = 0.2
		token, begun := ration.NewToken("a"), time.Now()
		var wait sync.WaitGroup
		var last atomic.Int64
		for range 40 {
			wait.Go(func() {
				_, err := backfill.Wait(context.WithoutCancel(t.Context()), token, 1)
				assert.NoError(t, err)
				last.Store(max(last.Load(), int64(time.Since(begun))))
			})
		}
		const later = 200 * time.Millisecond // all have booked
		time.Sleep(later)
		for _, due := range []time.Duration{later, later, 10*time.Second + later} {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			require.Equal(t, due, time.Since(begun), "two of ten are kept back")
		}
		wait.Wait()
		require.Equal(t, 40*time.Second, time.Duration(last.Load()), "eight at a time, at 0, 10, 20, 30 and 40 s, and nobody is put off")
		// All of it is there for who keeps nothing back.
		time.Sleep(10 * time.Second)
		for range 10 {
			_, err := b.Try(ration.WithReserve(t.Context(), 0), token, 1)
			require.NoError(t, err)
		}
		_, err := backfill.Try(ration.WithReserve(t.Context(), 0), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
	})
}

func TestReserveMustBeAShare(t *testing.T) {
	b := rationtest.NewBudget(ration.PerHour(5))
	for _, share := range []float64{-0.1, 1, 7, nan()} {
		_, err := b.Try(ration.WithReserve(t.Context(), share), ration.NewToken("a"), 1)
		require.ErrorContains(t, err, "it must be from 0 to 0.999")
	}
	b.Reserve = 2
	_, err := ration.NewPool(b, ration.NewToken("a")).Take(t.Context(), 1)
	require.ErrorContains(t, err, "the reserve is 2: it must be from 0 to 0.999")
	_, err = b.Try(ration.WithScopes(t.Context(), "a scope"), ration.NewToken("a"), 1)
	require.ErrorContains(t, err, `scope "a scope"`)
}

func nan() float64 { zero := 0.0; return zero / zero }

// A request that costs more than the reserve leaves is booked where nothing else counts.
func TestARequestBeyondTheReserveWaitsUntilNothingElseCounts(t *testing.T) {
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog, ration.FixedWindow, ration.SubWindows} {
		t.Run(algorithm.String(), func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{ration.PerHour(100).Using(algorithm)}
				token, reserving := ration.NewToken("a"), ration.WithReserve(t.Context(), 0.3)
				_, err := b.Try(t.Context(), token, 1)
				require.NoError(t, err)
				_, err = b.Try(reserving, token, 80)
				require.ErrorIs(t, err, ration.ErrExhausted, "something else counts")
				begun := time.Now()
				_, err = b.Wait(reserving, token, 80)
				require.NoError(t, err)
				require.Greater(t, time.Since(begun), 59*time.Minute)
				_, err = b.Try(reserving, token, 1)
				require.ErrorIs(t, err, ration.ErrExhausted)
				rationtest.RequireRemaining(t, b, token, 20)
				_, err = b.Try(t.Context(), token, 20)
				require.NoError(t, err)
			})
		})
	}
}
