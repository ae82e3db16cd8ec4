package outage_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/internal/outage"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// While a store is down one caller a second asks it, and the others do not.
func TestOneCallerAsksAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outage.Outage
		mine, down := o.Turn()
		require.True(t, mine)
		require.False(t, down)
		require.True(t, o.Failed(), "it begins")
		require.False(t, o.Failed(), "it goes on")
		require.True(t, o.Down.Load())

		var asked atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range 100 {
					if mine, down := o.Turn(); mine && down {
						asked.Add(1)
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 9, asked.Load(), "in 10 s, of which the first second is that after the failure")
		time.Sleep(outage.AskEvery)
		require.True(t, o.IsTime())

		require.True(t, o.Answered(), "it is over")
		require.False(t, o.Answered())
		require.False(t, o.Down.Load())
		require.True(t, o.IsTime())
	})
}

// The logs of the shares are made once for an outage, and anew for the next.
func TestSharesAreMadeOnce(t *testing.T) {
	var o outage.Outage
	o.Failed()
	_, err := o.Shares(func(*memstore.Store, time.Time) error { return errors.New("no") })
	require.ErrorContains(t, err, "no")
	require.Nil(t, o.Known(), "what could not be filled is not used")
	made := 0
	fill := func(_ *memstore.Store, since time.Time) error {
		made++
		require.False(t, since.IsZero())
		return nil
	}
	first, err := o.Shares(fill)
	require.NoError(t, err)
	again, err := o.Shares(fill)
	require.NoError(t, err)
	require.Same(t, first, again)
	require.Same(t, first, o.Known())
	require.Equal(t, 1, made)
	o.Answered()
	require.Nil(t, o.Known())
}

// The shares of all workers are no more than the limit, unless a request costs more than a share: then as much comes less often.
func TestSharesAreNoMoreThanTheLimit(t *testing.T) {
	for _, row := range []struct {
		of            limit.Limit
		workers, cost int
		want          limit.Limit
	}{
		{limit.Limit{Max: 100, Window: time.Minute}, 1, 1, limit.Limit{Max: 100, Window: time.Minute}},
		{limit.Limit{Max: 100, Window: time.Minute}, 3, 1, limit.Limit{Max: 33, Window: time.Minute}},
		{limit.Limit{Max: 100, Window: time.Minute}, 30, 10, limit.Limit{Max: 10, Window: 3 * time.Minute}},
		{limit.Limit{Max: 5, Window: time.Minute}, 30, 10, limit.Limit{Max: 5, Window: 30 * time.Minute}},
		{limit.Limit{Max: 100, Window: time.Minute, Algorithm: limit.GCRA, Burst: 40}, 4, 1, limit.Limit{Max: 25, Window: time.Minute, Algorithm: limit.GCRA, Burst: 10}},
		{limit.Limit{Max: 2, Window: limit.MaxWindow}, 30, 1, limit.Limit{Max: 1, Window: limit.MaxWindow}},
	} {
		accounts, err := store.NewAccounts(store.Account{ID: "a", Limits: []limit.Limit{row.of}})
		require.NoError(t, err)
		list, shared, meters := outage.Divide(accounts, row.workers, row.cost, nil)
		require.Equal(t, []store.Account{{ID: "a", Limits: []limit.Limit{row.want}}}, list)
		require.Empty(t, shared)
		require.Empty(t, meters)
	}
}

// Open grants at once, and charges the accounts in turn.
func TestOpen(t *testing.T) {
	var o outage.Outage
	limits := []limit.Limit{{Max: 1, Window: time.Hour}}
	accounts, err := store.NewAccounts(store.Account{ID: "a", Limits: limits}, store.Account{ID: "b", Limits: limits})
	require.NoError(t, err)
	charged := make(map[string]int)
	for range 10 {
		booked := o.Open(store.BookRequest{ID: store.NewBookingID(), Budget: "x", Accounts: accounts, Cost: 1, Now: time.Unix(1, 0)})
		require.True(t, booked.Booked)
		require.Equal(t, booked.Now, booked.Slot)
		charged[booked.Account]++
	}
	require.Equal(t, map[string]int{"a": 5, "b": 5}, charged)
}
