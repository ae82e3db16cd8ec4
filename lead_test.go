package ration_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// A busyStore answers to bookings late, by least to most, and counts them. It is in no process.
type busyStore struct {
	ration.Store
	least  time.Duration
	most   atomic.Int64 // a time.Duration
	booked atomic.Int64
}

// At implements [store.Store]: it is in no process.
func (s *busyStore) At(time.Time) time.Time { return time.Time{} }

func (s *busyStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	s.booked.Add(1)
	answer, err := s.Store.Book(ctx, r)
	time.Sleep(s.least + time.Duration(rand.Int64N(s.most.Load()-int64(s.least))))
	return answer, err
}

// A process whose answers come late asks for slots that come later: few answers come after their slot, though no two take as long.
func TestFewSlotsAreMissedWhereAnswersAreLate(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		kept := &busyStore{Store: b.Store}
		kept.most.Store(int64(200 * time.Millisecond))
		b.Store, b.Margin, b.Limits = kept, 0, []ration.Limit{{Max: 10_000, Window: 2 * time.Second}}
		token := ration.NewToken("a")
		call := func(times int) {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for range times {
						_, err := b.Wait(t.Context(), token, 1)
						require.NoError(t, err)
					}
				})
			}
			all.Wait()
		}
		call(5) // of which it learns how late answers are
		kept.booked.Store(0)
		call(50)
		require.Less(t, kept.booked.Load(), int64(1000*115/100), "bookings for 1,000 calls")

		time.Sleep(10 * time.Second)
		kept.most.Store(int64(time.Millisecond))
		call(5)
		begun := time.Now()
		call(50)
		require.Less(t, time.Since(begun), 500*time.Millisecond, "it does not wait for what is over")
	})
}

// A store whose answers take longer than a caller may be late has a slot for Try too: one that has come when the answer has.
func TestTryWorksWhereAnswersAreLate(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		kept := &busyStore{Store: b.Store, least: 80 * time.Millisecond}
		kept.most.Store(int64(100 * time.Millisecond))
		b.Store, b.Margin, b.Limits = kept, 0, []ration.Limit{{Max: 5, Window: 2 * time.Second}}
		token := ration.NewToken("a")
		for range 5 {
			begun := time.Now()
			_, err := b.Try(t.Context(), token, 1)
			require.NoError(t, err)
			require.Less(t, time.Since(begun), 500*time.Millisecond)
		}
		_, err := b.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
	})
}

// Callers are woken a little before their slots. What is heard until these come counts all the same.
func TestAPauseBetweenTheWakeAndTheSlotCounts(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Margin, b.Limits = 0, []ration.Limit{{Max: 1, Window: time.Second}}
		token := ration.NewToken("a")
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		begun := time.Now()
		time.AfterFunc(time.Second+b.Limits[0].DefaultMargin()-3*time.Millisecond, func() { _, _ = b.Pause(t.Context(), token, 5*time.Second) })
		_, err = b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.Greater(t, time.Since(begun), 5*time.Second)
	})
}
