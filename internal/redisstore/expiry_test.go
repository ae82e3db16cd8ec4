package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// What only a real Redis shows: what expires.

// A partly cancelled entry is written again, and its log still expires.
func TestALogOfWhichHalfIsCancelledExpires(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		t.Run(fmt.Sprint(algorithm), func(t *testing.T) {
			t.Parallel()
			d := rationtest.NewRedisBudget(t)
			a := rationtest.Accounts(t, 1, ration.PerHour(5).Using(algorithm))
			first, second := d.Book(t, a, 1), d.Book(t, a, 1)
			for _, b := range []store.Booking{first, second} {
				require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: b, Now: d.Now}))
				for key, ttl := range d.Keys(t) {
					require.Positive(t, ttl, "key %q never expires", key)
				}
			}
		})
	}
}

func TestEveryKeyExpires(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	ctx := t.Context()
	d := rationtest.NewRedisBudget(t)
	single := rationtest.Accounts(t, 1, ration.Limit{Max: 1, Window: time.Second}, ration.PerHour(5000))
	pool := rationtest.Accounts(t, 3, ration.PerSecond(1))

	var all []store.Booking
	for range 4 {
		all = append(all, d.Book(t, single, 1))
	}
	const needed = 3*time.Second + time.Hour + day
	d.RequireExpiry(t, map[string]time.Duration{
		"": needed, ":log:a": needed, ":acct:a": needed, ":fields": needed,
	})
	require.NoError(t, d.Store.Cancel(ctx, store.CancelRequest{Booking: all[1], Now: d.Now}))
	d.RequireExpiry(t, map[string]time.Duration{
		"": needed, ":log:a": needed, ":acct:a": needed, ":fields": needed, ":id:": time.Minute,
	})
	// A key that is needed for less than an hour longer keeps its expiry.
	for range 3000 {
		d.Book(t, single, 1)
	}
	d.RequireExpiry(t, map[string]time.Duration{
		"": needed + 50*time.Minute, ":log:a": needed + 50*time.Minute, ":acct:a": needed + 50*time.Minute,
		":fields": needed + 50*time.Minute, ":id:": time.Minute,
	})
	// A booking takes a part of the place of the only one that was cancelled.
	wide := ration.Account{ID: "wide", Limits: []ration.Limit{ration.PerHour(5)}}
	wides, err := store.NewAccounts(wide)
	require.NoError(t, err)
	d.Book(t, wides, 5)
	second := d.Book(t, wides, 5)
	d.Book(t, wides, 5)
	require.NoError(t, d.Store.Cancel(ctx, store.CancelRequest{Booking: second, Now: d.Now}))
	require.Equal(t, second.Slot, d.Book(t, wides, 2).Slot)
	d.Book(t, pool, 1)
	_, err = d.Store.Pause(ctx, store.PauseRequest{Budget: d.Name, Account: "c", For: 30 * day, Now: d.Now})
	require.NoError(t, err)
	_, err = d.Store.Status(ctx, store.StatusRequest{Budget: d.Name, Worker: "w", Now: d.Now})
	require.NoError(t, err)
	_, err = d.Store.Usage(ctx, store.UsageRequest{Budget: d.Name, Accounts: pool, Now: d.Now})
	require.NoError(t, err)
	require.NoError(t, d.Store.Record(ctx, store.RecordRequest{
		ID: store.NewBookingID(), Budget: d.Name, Account: pool.At(1), Now: d.Now, Spent: []store.Spending{{Slot: d.Now, Cost: 2}},
	}))
	ttls := d.Keys(t)
	for _, key := range []string{"", ":log:a", ":log:wide", ":log:wide:2", ":log:b", ":pool:" + pool.Digest() + "*1", ":pauses", ":workers", ":loads"} {
		require.Contains(t, ttls, key)
	}
	for key, ttl := range ttls {
		require.Positive(t, ttl, "key %q", key)
	}
	require.InDelta(t, 31*day, ttls[":pauses"], float64(time.Minute))
	require.InDelta(t, 31*day, ttls[""], float64(time.Minute), "the version is kept for as long as the pause")
}

// A log expires by itself when nobody has booked for long. The store must not treat it as
// lost.
func TestALogThatExpiredIsNotALostOne(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	a, b := rationtest.Accounts(t, 1, ration.PerHour(5)), rationtest.Accounts(t, 2, ration.PerHour(5))
	d.Book(t, a, 1)
	before, err := d.Store.Status(t.Context(), store.StatusRequest{Budget: d.Name, Now: d.Now})
	require.NoError(t, err)
	// The server's clock stands still here, so the log is removed as it would
	// have been by then. Other accounts have kept the budget alive.
	d.Now = d.Now.Add(3 * 24 * time.Hour)
	require.NoError(t, d.Client.Del(t.Context(), d.Key(":log:a")).Err())
	require.Equal(t, d.Now, d.Book(t, a, 1).Slot)
	require.Equal(t, d.Now, d.Book(t, b, 1).Slot)
	after, err := d.Store.Status(t.Context(), store.StatusRequest{Budget: d.Name, Now: d.Now})
	require.NoError(t, err)
	require.Equal(t, before.Lost, after.Lost)
	require.Equal(t, before.Version, after.Version)
}

func TestAKeyThatHoldsSomethingElseBooksNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, name := range []string{"", ":log:a", ":pauses", ":fields", ":pool:"} {
		t.Run("key"+name, func(t *testing.T) {
			t.Parallel()
			d := rationtest.NewRedisBudget(t)
			a := rationtest.Accounts(t, 2, ration.PerHour(5))
			for range 4 { // the next is a's turn
				d.Book(t, a, 1)
			}
			// A hole in a's log, which it is then to be asked for.
			b := d.Book(t, rationtest.Accounts(t, 1, ration.PerHour(5)), 1)
			d.Book(t, rationtest.Accounts(t, 1, ration.PerHour(5)), 1)
			require.NoError(t, d.Store.Cancel(ctx, store.CancelRequest{Booking: b}))
			r := d.Request(a, 1)
			key := d.Key(name)
			switch name {
			case ":fields":
				d.Store = &ration.RedisStore{Client: d.Client} // begins a session
			case ":pauses": // is looked at while any lasts
				_, err := d.Store.Pause(ctx, store.PauseRequest{Budget: d.Name, Account: "other", For: time.Hour, Now: d.Now})
				require.NoError(t, err)
			case ":pool:":
				key += a.Digest() + "*1"
			}
			require.NoError(t, d.Client.Del(ctx, key).Err())
			require.NoError(t, d.Client.Set(ctx, key, "x", 0).Err())
			before := d.Entries(t)
			_, err := d.Store.Book(ctx, r)
			require.ErrorIs(t, err, ration.ErrStoreUnavailable)
			var failed *ration.StoreError
			require.ErrorAs(t, err, &failed)
			require.True(t, failed.Permanent)
			require.ErrorContains(t, err, "WRONGTYPE")
			require.Equal(t, before, d.Entries(t))
			for other, ttl := range d.Keys(t) {
				require.True(t, ttl > 0 || d.Key(other) == key, "key %q never expires", other)
			}
		})
	}
}

// What is kept of an account in the budget's own hash ends with its keys, though the budget
// lives on.
func TestTheBudgetForgetsAccountsThatAreGone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := rationtest.NewRedisBudget(t)
	hour := ration.PerHour(100)
	steady := ration.Account{ID: "steady", Limits: []ration.Limit{hour}}
	most := int64(0)
	for i := range 24 * 7 {
		token := ration.Account{ID: fmt.Sprint("token", i), Limits: []ration.Limit{hour}}
		list := rationtest.AccountsOf(t, []ration.Account{steady, token})
		for range 4 {
			d.Book(t, list, 1)
		}
		fields, err := d.Client.HLen(ctx, d.Key("")).Result()
		require.NoError(t, err)
		ending, err := d.Client.ZCard(ctx, d.Key(":fields")).Result()
		require.NoError(t, err)
		most = max(most, fields, ending)
		d.Now = d.Now.Add(time.Hour)
	}
	// An account is kept for its window, up to an hour and a day, 26 at a time, and what is known
	// of a list of accounts for a day: beside steady, and the budget's own fields.
	require.LessOrEqual(t, most, int64(26+25+8))
}

// So it does if no account is new any more.
func TestTheBudgetForgetsAccountsThatAreGoneWhileOneBooksOn(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	hour := []ration.Limit{ration.PerHour(100)}
	for i := range 2000 {
		d.Book(t, rationtest.AccountsOf(t, []ration.Account{{ID: fmt.Sprint("token", i), Limits: hour}}), 1)
	}
	d.Now = d.Now.Add(26 * time.Hour)
	steady := rationtest.AccountsOf(t, []ration.Account{{ID: "steady", Limits: hour}})
	for range 6 { // ten minutes apart
		d.Book(t, steady, 1)
		d.Now = d.Now.Add(10 * time.Minute)
	}
	fields, err := d.Client.HLen(t.Context(), d.Key("")).Result()
	require.NoError(t, err)
	require.LessOrEqual(t, fields, int64(5), "the budget's own fields, a session and steady")
}

// A script that fails in its middle leaves nothing that never expires.
func TestAnIndexExpiresThoughItsFirstBookingFailed(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	require.NoError(t, d.Client.Set(t.Context(), d.Key(":log:a"), "x", time.Hour).Err())
	_, err := d.Store.Book(t.Context(), d.Request(rationtest.Accounts(t, 2, ration.PerHour(5)), 1))
	require.Error(t, err)
	for key, ttl := range d.Keys(t) {
		require.Positive(t, ttl, "key %q never expires", key)
	}
}

// What is older than the window is removed, a batch at a time.
func TestALogDoesNotGrowWithTime(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		t.Run(fmt.Sprint(algorithm), func(t *testing.T) {
			t.Parallel()
			d := rationtest.NewRedisBudget(t)
			a := rationtest.Accounts(t, 1, ration.PerSecond(5).Using(algorithm))
			for range 1_000 {
				d.Now = d.Now.Add(200 * time.Millisecond)
				require.Equal(t, d.Now, d.Book(t, a, 1).Slot)
				// A set keeps fewer than two batches of them, and a stream fewer than a node's 100.
				require.LessOrEqual(t, d.Entries(t), 2*5+3*64)
			}
		})
	}
}
