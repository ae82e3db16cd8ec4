package redisstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
	"github.com/ration-go/ration/store/storetest"
)

// All rules share one store. On a single server tests/contract runs the suite, as the user that
// docs/howto/run-redis.md makes.
func TestStoreOnAClusterKeepsTheContract(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	kept := &redisstore.Store{Client: redistest.StartCluster(t, 3).Client(t), Timeout: time.Minute}
	storetest.Run(t, func(*testing.T) store.Store { return kept })
}

// A Sentinel's client waits for the network all the time, so this runs on the
// servers' own clock; the logs are the same as on a single server.
func TestStoreBooksBehindASentinel(t *testing.T) {
	t.Parallel()
	kept := &redisstore.Store{Client: redistest.StartSentinel(t).FailoverClient(t), Timeout: time.Minute}
	accounts, err := store.NewAccounts(
		store.Account{ID: "a", Limits: []limit.Limit{limit.PerHour(2)}},
		store.Account{ID: "b", Limits: []limit.Limit{limit.PerHour(2)}},
	)
	require.NoError(t, err)
	budget := redistest.Name(t)
	var last store.Booking
	for i := range 6 {
		last, err = kept.Book(t.Context(), store.BookRequest{
			ID: store.NewBookingID(), Budget: budget, Accounts: accounts, Cost: 1, MaxWait: store.Forever,
		})
		require.NoError(t, err)
		require.True(t, last.Booked)
		require.Equal(t, i >= 4, last.Slot.After(last.Now), "two of each account leave at once")
	}
	require.NoError(t, kept.Cancel(t.Context(), store.CancelRequest{Booking: last}))
	usage, err := kept.Usage(t.Context(), store.UsageRequest{Budget: budget, Accounts: accounts})
	require.NoError(t, err)
	units := 0
	for _, u := range usage {
		units += u.Limits[0].Used + u.Limits[0].Ahead
	}
	require.Equal(t, 5, units)
	paused, err := kept.Pause(t.Context(), store.PauseRequest{Budget: budget, Account: "a", For: time.Minute})
	require.NoError(t, err)
	status, err := kept.Status(t.Context(), store.StatusRequest{Budget: budget})
	require.NoError(t, err)
	require.Equal(t, []store.Pause{{Account: "a", Until: paused.Until}}, status.Pauses)
}
