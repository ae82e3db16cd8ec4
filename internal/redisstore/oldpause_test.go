package redisstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A worker of the version before writes the end of a pause and a spacing of slots only. Its pause is kept, and what it reads beside one of
// ours is a spacing of at most a second.
func TestPausesOfTheVersionBeforeAreKept(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	s := &redisstore.Store{Client: client}
	budget := store.NewBookingID().String()
	one := []limit.Limit{{Max: 100, Window: time.Minute}}
	accounts, err := store.NewAccounts(store.Account{ID: "a", Limits: one}, store.Account{ID: "b", Limits: one})
	require.NoError(t, err)
	single, err := store.NewAccounts(store.Account{ID: "a", Limits: one})
	require.NoError(t, err)
	now := time.UnixMicro(1795000000123457)
	book := func(a *store.Accounts) store.Booking {
		now = now.Add(time.Millisecond)
		booked, err := s.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: budget, Accounts: a, Cost: 1, MaxWait: store.Forever, Now: now})
		require.NoError(t, err)
		return booked
	}
	for _, account := range []string{"a", ""} {
		for range 4 { // the front script answers by now
			book(single)
			book(accounts)
		}
		reply, err := s.Pause(t.Context(), store.PauseRequest{Budget: budget, Account: account, For: time.Minute, SlowStart: 20 * time.Second, Row: 7, Now: now})
		require.NoError(t, err)
		name := account
		if name == "" {
			name = "*"
		}
		apart := redisstore.BaseKey(budget) + ":apart"
		spacing, err := client.HGet(t.Context(), apart, name).Int64()
		require.NoError(t, err)
		require.Equal(t, int64(1_000_000), spacing)
		status, err := s.Status(t.Context(), store.StatusRequest{Budget: budget, Now: now})
		require.NoError(t, err)
		require.Equal(t, 7, status.Pauses[0].Row)
		require.Equal(t, 20*time.Second, status.Pauses[0].SlowStart)

		require.NoError(t, client.HDel(t.Context(), apart, name+"*over", name+"*how").Err())
		require.False(t, book(single).Slot.Before(reply.Until))
		both := book(accounts)
		require.True(t, both.Account == "b" && account == "a" || !both.Slot.Before(reply.Until), "%+v", both)
		now = reply.Until.Add(time.Hour)
	}
}
