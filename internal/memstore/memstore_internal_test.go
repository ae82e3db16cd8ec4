package memstore

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-go/ration/store"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
)

// Tokens that come and go, over months, leave nothing behind.
func TestMemoryStoreForgetsWhatIsOutOfUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := new(Store)
		most := 0
		bookings := 20_000
		if testing.Short() {
			bookings = 4_000 // four weeks
		}
		for i := range bookings {
			first, err := store.NewAccounts(store.Account{ID: fmt.Sprint("one", i/10), Limits: []limit.Limit{limit.PerHour(100)}})
			require.NoError(t, err)
			both, err := store.NewAccounts(store.Account{ID: fmt.Sprint("one", i/10), Limits: []limit.Limit{limit.PerHour(100)}},
				store.Account{ID: fmt.Sprint("two", i/10), Limits: []limit.Limit{limit.PerHour(100)}})
			require.NoError(t, err)
			for _, accounts := range []*store.Accounts{first, both} {
				_, err = memory.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: "x", Accounts: accounts, Cost: 1, MaxWait: store.Forever})
				require.NoError(t, err)
				// It is kept and handed back again.
				again, err := memory.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: "x", Accounts: accounts, Cost: 1, MaxWait: store.Forever})
				require.NoError(t, err)
				require.NoError(t, memory.Cancel(t.Context(), store.CancelRequest{Booking: again}))
			}
			time.Sleep(10 * time.Minute)
			b := memory.budgets["x"]
			most = max(most, len(b.accounts))
			require.LessOrEqual(t, len(b.done.known), 4)
			require.LessOrEqual(t, len(b.done.order), 4)
		}
		// Each account is used for 100 minutes and kept for a day and an hour
		// more: 30 at a time are in use, and few are looked at in each booking.
		require.LessOrEqual(t, most, 100)
		require.LessOrEqual(t, len(memory.budgets["x"].indexes), 50)
	})
}

// A token that is used all the time keeps its window and little more.
func TestMemoryStoreKeepsAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := new(Store)
		accounts, err := store.NewAccounts(store.Account{ID: "one", Limits: []limit.Limit{limit.PerMinute(100)}})
		require.NoError(t, err)
		bookings := 100_000
		if testing.Short() {
			bookings = 20_000
		}
		for range bookings {
			booking, err := memory.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: "x", Accounts: accounts, Cost: 1, MaxWait: store.Forever})
			require.NoError(t, err)
			time.Sleep(booking.Slot.Sub(booking.Now))
		}
		log := memory.budgets["x"].accounts["one"].logs[0]
		require.LessOrEqual(t, len(log.chunks), 2)
	})
}
