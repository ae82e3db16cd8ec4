package queue_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// gain is how much earlier a slot must be for a caller to move.
const gain = 10 * time.Millisecond

// A waiting is a caller of a history that waits.
type waiting struct {
	cost   int
	giveUp context.CancelFunc
	since  time.Time

	mu   sync.Mutex // protects slot
	slot time.Time  // zero: it waits no longer
}

func (w *waiting) set(slot time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slot = slot
}

func (w *waiting) get() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slot
}

var most = flag.Int("histories", 200, "how many random histories each algorithm has")

// In random histories of callers that come and give up, in two processes, no slot is free for long that is
// earlier than that of a caller who waits for as many units.
func TestNoSlotIsFreeForLongThatACallerCouldHave(t *testing.T) {
	histories := *most
	if testing.Short() {
		histories = 10
	}
	for _, algorithm := range limit.Algorithms() {
		t.Run(algorithm.String(), func(t *testing.T) {
			for range histories {
				seed := rand.Uint64()
				ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
					rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
						b.Limits = []ration.Limit{{Max: 4, Window: 8 * time.Second, Algorithm: algorithm}}
						history(t, rand.New(rand.NewPCG(seed, 1)), b)
					})
				})
				if !ok {
					return
				}
			}
		})
	}
}

func history(t *testing.T, r *rand.Rand, b *ration.Budget) {
	var callers sync.WaitGroup
	var all []*waiting
	token := ration.NewToken("a")
	processes := []*ration.Budget{b, rationtest.Peer(b)}
	for range 25 {
		switch n := r.IntN(10); {
		case n < 5:
			w := &waiting{cost: 1 + r.IntN(2), since: time.Now()}
			ctx, giveUp := context.WithCancel(t.Context())
			w.giveUp = giveUp
			trace := &rationtrace.Trace{Booked: func(_ context.Context, booked rationtrace.Booked) { w.set(booked.Slot) }}
			process := processes[r.IntN(2)]
			callers.Go(func() {
				_, _ = process.Wait(ration.WithTrace(ctx, trace), token, w.cost)
				w.set(time.Time{})
			})
			all = append(all, w)
		case n < 8 && len(all) > 0:
			all[r.IntN(len(all))].giveUp()
		default:
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		checkFree(t, b, token, all)
	}
	for _, w := range all {
		w.giveUp()
	}
	callers.Wait()
}

// checkFree demands that no caller of those that have waited for half a second could have an earlier slot.
func checkFree(t *testing.T, b *ration.Budget, token ration.Token, all []*waiting) {
	t.Helper()
	accounts, err := store.NewAccounts(store.Account{ID: token.AccountID(), Limits: b.Limits})
	require.NoError(t, err)
	for cost := 1; cost <= 2; cost++ {
		last := time.Time{}
		for _, w := range all {
			if slot := w.get(); w.cost == cost && slot.After(last) && time.Since(w.since) >= 500*time.Millisecond {
				last = slot
			}
		}
		if last.IsZero() {
			continue
		}
		next, err := b.Store.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: b.Name, Accounts: accounts, Cost: cost, MaxWait: store.Never})
		require.NoError(t, err)
		require.False(t, next.Slot.Before(last.Add(-gain)), "%d units are free at %v, and a caller waits until %v", cost, next.Slot.Sub(next.Now), last.Sub(next.Now))
	}
}
