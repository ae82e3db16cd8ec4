package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// scattered is a store in which one account is booked, at one instant.
type scattered struct {
	t    *testing.T
	kept store.Store
	one  *store.Accounts
	name string
	now  time.Time
}

// inBothStores runs a check on an account with that limit, in memory and in Redis.
func inBothStores(t *testing.T, l ration.Limit, check func(t *testing.T, s scattered)) {
	a, err := store.NewAccounts(store.Account{ID: "a", Limits: []ration.Limit{l}})
	require.NoError(t, err)
	for name, kept := range map[string]store.Store{"memory": new(ration.MemoryStore), "redis": rationtest.NewRedisBudget(t).Store} {
		t.Run(name, func(t *testing.T) {
			check(t, scattered{t, kept, a, store.NewBookingID().String(), time.UnixMicro(1_795_000_000_000_000)})
		})
	}
}

func (s scattered) book(cost int) store.Booking {
	b, err := s.kept.Book(s.t.Context(), store.BookRequest{
		ID: store.NewBookingID(), Budget: s.name, Accounts: s.one, Cost: cost, MaxWait: store.Forever, Now: s.now,
	})
	require.NoError(s.t, err)
	require.True(s.t, b.Booked)
	return b
}

func (s scattered) cancel(b store.Booking) {
	require.NoError(s.t, s.kept.Cancel(s.t.Context(), store.CancelRequest{Booking: b, Now: s.now}))
}

// Time that is free behind 200 stretches that are too short is found.
func TestACallOfTwoUnitsFindsTimeBehindManyShortStretches(t *testing.T) {
	inBothStores(t, ration.Limit{Max: 2, Window: 2 * time.Second, Algorithm: ration.GCRA, Burst: 2}, func(t *testing.T, s scattered) {
		var all []store.Booking
		for range 500 {
			all = append(all, s.book(1))
		}
		for i := 2; i <= 400; i += 2 {
			s.cancel(all[i])
		}
		for i := 420; i < 430; i++ {
			s.cancel(all[i])
		}
		for i := range 5 {
			got := s.book(2).Slot
			require.False(t, got.After(all[421+2*i].Slot), "%v after the first that is free", got.Sub(all[421+2*i].Slot))
		}
	})
}
