package ration

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Tokens that come and go, over months, leave nothing behind.
func TestMemoryStoreForgetsWhatIsOutOfUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(MemoryStore)
		most := 0
		for i := range 20_000 {
			first, err := NewAccounts(Account{ID: fmt.Sprint("one", i/10), Limits: []Limit{PerHour(100)}})
			require.NoError(t, err)
			both, err := NewAccounts(Account{ID: fmt.Sprint("one", i/10), Limits: []Limit{PerHour(100)}},
				Account{ID: fmt.Sprint("two", i/10), Limits: []Limit{PerHour(100)}})
			require.NoError(t, err)
			for _, accounts := range []*Accounts{first, both} {
				_, err = store.Book(t.Context(), BookRequest{ID: NewBookingID(), Budget: "x", Accounts: accounts, Cost: 1, MaxWait: Forever})
				require.NoError(t, err)
				// It is kept and handed back again.
				again, err := store.Book(t.Context(), BookRequest{ID: NewBookingID(), Budget: "x", Accounts: accounts, Cost: 1, MaxWait: Forever})
				require.NoError(t, err)
				require.NoError(t, store.Cancel(t.Context(), CancelRequest{Booking: again, Accounts: accounts}))
			}
			time.Sleep(10 * time.Minute)
			b := store.budgets["x"]
			most = max(most, len(b.accounts))
			require.LessOrEqual(t, len(b.done.expires), 4)
			require.LessOrEqual(t, len(b.done.order), 4)
		}
		// Each account is used for 100 minutes and kept for a day and an hour
		// more: 30 at a time are in use, and few are looked at in each booking.
		require.LessOrEqual(t, most, 100)
		require.LessOrEqual(t, len(store.budgets["x"].indexes), 50)
	})
}

// A token that is used all the time keeps its window and little more.
func TestMemoryStoreKeepsAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(MemoryStore)
		accounts, err := NewAccounts(Account{ID: "one", Limits: []Limit{PerMinute(100)}})
		require.NoError(t, err)
		for range 100_000 {
			booking, err := store.Book(t.Context(), BookRequest{ID: NewBookingID(), Budget: "x", Accounts: accounts, Cost: 1, MaxWait: Forever})
			require.NoError(t, err)
			time.Sleep(booking.Slot.Sub(booking.Now))
		}
		log := store.budgets["x"].accounts["one"].runs[0]
		require.LessOrEqual(t, log.entries.len(), 100+2*trimBatch)
		require.LessOrEqual(t, len(log.entries.blocks), 2)
	})
}
