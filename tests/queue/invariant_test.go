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
	"github.com/ration-go/ration/store"
)

// gain is how much earlier a slot must be for a caller to move.
const gain = 10 * time.Millisecond

// A ledger is a store that remembers the slots which were booked and not given back.
type ledger struct {
	store.Store

	mu    sync.Mutex // protects slots
	slots map[store.BookingID]store.Booking
}

// Book implements [store.Store].
func (l *ledger) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	booked, err := l.Store.Book(ctx, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && r.Instead != nil {
		delete(l.slots, r.Instead.Booking.ID)
	}
	if err == nil && booked.Booked {
		l.slots[booked.ID] = booked
	}
	return booked, err
}

// Cancel implements [store.Store].
func (l *ledger) Cancel(ctx context.Context, all ...store.CancelRequest) error {
	l.mu.Lock()
	for _, r := range all {
		delete(l.slots, r.Booking.ID)
	}
	l.mu.Unlock()
	return l.Store.Cancel(ctx, all...)
}

// last returns the last slot to come of those for so many units; zero: there is none.
func (l *ledger) last(cost int) (last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.slots {
		if one.Cost == cost && one.Slot.After(last) {
			last = one.Slot
		}
	}
	return last
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
	var all []context.CancelFunc
	token, kept := ration.NewToken("a"), &ledger{Store: b.Store, slots: make(map[store.BookingID]store.Booking)}
	b.Store = kept
	processes := []*ration.Budget{b, rationtest.Peer(b)}
	for range 25 {
		switch n := r.IntN(10); {
		case n < 5:
			ctx, giveUp := context.WithCancel(t.Context())
			process, cost := processes[r.IntN(2)], 1+r.IntN(2)
			callers.Go(func() { _, _ = process.Wait(ctx, token, cost) })
			all = append(all, giveUp)
		case n < 8 && len(all) > 0:
			all[r.IntN(len(all))]()
		default:
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		checkFree(t, kept, b, token)
	}
	for _, giveUp := range all {
		giveUp()
	}
	callers.Wait()
}

// checkFree demands that there is no earlier slot than the last that the processes have.
func checkFree(t *testing.T, kept *ledger, b *ration.Budget, token ration.Token) {
	t.Helper()
	accounts, err := store.NewAccounts(store.Account{ID: token.AccountID(), Limits: b.Limits})
	require.NoError(t, err)
	for cost := 1; cost <= 2; cost++ {
		last := kept.last(cost)
		if last.IsZero() {
			continue
		}
		next, err := kept.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: b.Name, Accounts: accounts, Cost: cost, MaxWait: store.Never})
		require.NoError(t, err)
		if !last.After(next.Now) {
			continue
		}
		require.False(t, next.Slot.Before(last.Add(-gain)), "%d units are free at %v, and a process has a slot at %v", cost, next.Slot.Sub(next.Now), last.Sub(next.Now))
	}
}
