package queue_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// A slowStore takes a while to tell its status.
type slowStore struct {
	ration.Store
	delay time.Duration
}

// At implements [store.Store]: it is in no process.
func (s *slowStore) At(time.Time) time.Time { return time.Time{} }

func (s *slowStore) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	time.Sleep(s.delay)
	return s.Store.Status(ctx, r)
}

// A caller whose slot has come when it is booked may have to tell the store first that its worker is there. The
// store is slow to answer, and meanwhile another worker books the slot a window later.
func TestWhoWaitsForTheStoreAfterItsSlotHasComeDoesNotLeaveLate(t *testing.T) {
	limit := ration.Limit{Max: 1, Window: 2 * time.Second}
	for _, delay := range []time.Duration{0, 15 * time.Millisecond, 300 * time.Millisecond, 1900 * time.Millisecond, 5 * time.Second} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept, slow := new(ration.MemoryStore), &slowStore{delay: delay}
				slow.Store = kept
				slowed := &ration.Budget{Name: "b", Limits: []ration.Limit{limit}, Store: slow}
				quick := &ration.Budget{Name: "b", Limits: []ration.Limit{limit}, Store: kept}
				var mu sync.Mutex
				var left []time.Time
				call := func(b *ration.Budget) {
					g, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
					require.NoError(t, err)
					require.LessOrEqual(t, g.Late, limit.DefaultMargin()/2)
					mu.Lock()
					defer mu.Unlock()
					left = append(left, time.Now())
				}
				call(slowed)
				for range 3 {
					time.Sleep(11 * time.Second) // the next booking tells the store that the worker is there
					var both sync.WaitGroup
					both.Go(func() { call(slowed) })
					time.Sleep(50 * time.Millisecond)
					both.Go(func() { call(quick) })
					both.Wait()
				}
				slices.SortFunc(left, time.Time.Compare)
				for i := range left[1:] {
					require.GreaterOrEqual(t, left[i+1].Sub(left[i]), limit.Window, "calls %d and %d", i, i+1)
				}
			})
		})
	}
}
