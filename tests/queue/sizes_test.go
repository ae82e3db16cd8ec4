package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// A countingStore counts its bookings.
type countingStore struct {
	ration.Store
	booked atomic.Int64
}

func (s *countingStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	s.booked.Add(1)
	return s.Store.Book(ctx, r)
}

// Callers whose requests all differ move up in their order where others give up, as if all were alike, and few slots are booked for that.
func TestCallersThatDifferMoveUpInTheirOrder(t *testing.T) {
	const callers, leave = 240, 80
	tokens := ration.Limit{Max: 1_000_000, Window: 10 * time.Second, Unit: "tokens"}
	for _, row := range []struct {
		name   string
		limits []ration.Limit
		with   func(ctx context.Context, i int) (context.Context, int)
		most   int64
		behind time.Duration // how long somebody leaves at most after one that came later
	}{
		{"equal estimates", []ration.Limit{{Max: 10, Window: 10 * time.Second}, tokens}, func(ctx context.Context, _ int) (context.Context, int) {
			return ration.WithUnits(ctx, map[string]int{"tokens": 100}), 1
		}, 400, time.Second},
		{"estimates", []ration.Limit{{Max: 10, Window: 10 * time.Second}, tokens}, func(ctx context.Context, i int) (context.Context, int) {
			return ration.WithUnits(ctx, map[string]int{"tokens": 100 + i}), 1
		}, 600, time.Second},
		{"costs", []ration.Limit{{Max: 2200, Window: 10 * time.Second}}, func(ctx context.Context, i int) (context.Context, int) {
			return ctx, 100 + i
		}, 600, time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				kept := &countingStore{Store: b.Store}
				b.Store, b.Limits = kept, row.limits
				var all sync.WaitGroup
				left := make([]time.Time, callers)
				var stops []context.CancelFunc
				for i := range callers {
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					ctx, cost := row.with(ctx, i)
					stops = append(stops, stop)
					all.Go(func() {
						if _, err := b.Wait(ctx, ration.NewToken("a"), cost); err == nil {
							left[i] = time.Now()
						}
					})
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Second)
				for i := range leave { // every second one of those behind the first twenty
					stops[20+2*i]()
					time.Sleep(250 * time.Millisecond)
				}
				all.Wait()
				var went []time.Time
				for _, at := range left {
					if !at.IsZero() {
						went = append(went, at)
					}
				}
				require.GreaterOrEqual(t, len(went), callers-leave)
				latest := time.Time{}
				var most time.Duration
				for i, at := range went {
					most = max(most, latest.Sub(at))
					require.Less(t, latest.Sub(at), row.behind, "caller %d was overtaken", i)
					latest = slices.MaxFunc([]time.Time{latest, at}, time.Time.Compare)
				}
				lasted := latest.Sub(went[0])
				t.Logf("%d left in %v, %d bookings, overtaken by %v at most", len(went), lasted, kept.booked.Load(), most)
				require.LessOrEqual(t, kept.booked.Load(), row.most)
			})
		})
	}
}

// A token that comes to a pool is used at once by callers whose requests all differ, as if all were alike.
func TestCallersThatDifferGoOverToANewToken(t *testing.T) {
	const callers = 200
	for _, sizes := range []int{1, 3, callers} {
		t.Run(fmt.Sprint(sizes, " sizes"), func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				kept := &countingStore{Store: b.Store}
				b.Store, b.Limits = kept, []ration.Limit{{Max: 10, Window: 10 * time.Second}, {Max: 1_000_000, Window: 10 * time.Second, Unit: "tokens"}}
				pool := ration.NewPool(b, ration.NewToken("a"))
				begun := time.Now()
				var all sync.WaitGroup
				for i := range callers {
					ctx := ration.WithUnits(t.Context(), map[string]int{"tokens": 100 + i%sizes})
					all.Go(func() {
						_, err := pool.Take(ctx, 1)
						assert.NoError(t, err)
					})
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Second)
				pool.Add(ration.NewToken("b"))
				all.Wait()
				lasted := time.Since(begun)
				t.Logf("%v, %d bookings", lasted, kept.booked.Load())
				require.Less(t, lasted, 95*time.Second, "two tokens take nine windows more, and one has begun alone")
				require.LessOrEqual(t, kept.booked.Load(), int64(4*callers))
			})
		})
	}
}
