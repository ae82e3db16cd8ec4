package ration_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/rationtest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// What only a real Redis shows: how numbers are stored, and what expires.

func TestSlotsInRedisEqualThoseInGo(t *testing.T) {
	t.Parallel()
	const many = 10_000
	d := rationtest.NewRedisBudget(t)
	a := rationtest.Accounts(t, 1, ration.Limit{Max: 3, Window: 1_234_567 * time.Microsecond})
	var want []float64
	for range many {
		slot := d.Book(t, a, 1).Slot.UnixMicro()
		require.Len(t, fmt.Sprint(slot), 16)
		want = append(want, float64(slot))
	}
	require.Equal(t, rationtest.Begin.Add((many-1)/3*1_234_567*time.Microsecond).UnixMicro(), int64(want[many-1]))
	slots := slices.Compact(want) // bookings of one slot may be one entry
	for protocol := 2; protocol <= 3; protocol++ {
		client := redis.NewClient(&redis.Options{Addr: d.Client.Options().Addr, Protocol: protocol})
		defer client.Close()
		entries, err := client.ZRangeWithScores(t.Context(), d.Key(":log:a"), 0, -1).Result()
		require.NoError(t, err)
		var got []float64
		for _, e := range entries {
			got = append(got, e.Score)
		}
		require.Equal(t, slots, slices.Compact(got), "by RESP%d", protocol)
	}
}

// An entry that is cut shorter is made anew, and its log still expires.
func TestALogOfWhichHalfIsHandedBackExpires(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		t.Run(fmt.Sprint(algorithm), func(t *testing.T) {
			t.Parallel()
			d := rationtest.NewRedisBudget(t)
			a := rationtest.Accounts(t, 1, ration.PerHour(5).Using(algorithm))
			first, second := d.Book(t, a, 1), d.Book(t, a, 1)
			for _, b := range []store.Booking{first, second} {
				require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: b, Accounts: a, Now: d.Now}))
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
		"": needed, ":log:a": needed, ":acct:a": needed, ":sessions": day,
	})
	require.NoError(t, d.Store.Cancel(ctx, store.CancelRequest{Booking: all[1], Accounts: single}))
	d.RequireExpiry(t, map[string]time.Duration{
		"": needed, ":log:a": needed, ":acct:a": needed, ":free:a": needed, ":sessions": day, ":id:": time.Minute,
	})
	// What is needed for longer by less than an hour need not be said anew.
	for range 3000 {
		d.Book(t, single, 1)
	}
	d.RequireExpiry(t, map[string]time.Duration{
		"": needed + 50*time.Minute, ":log:a": needed + 50*time.Minute, ":acct:a": needed + 50*time.Minute,
		":sessions": day, ":id:": time.Minute,
	})
	// A part of the only slot that was handed back is taken.
	wide := ration.Account{ID: "wide", Limits: []ration.Limit{ration.PerHour(5)}}
	wides, err := store.NewAccounts(wide)
	require.NoError(t, err)
	d.Book(t, wides, 5)
	second := d.Book(t, wides, 5)
	d.Book(t, wides, 5)
	require.NoError(t, d.Store.Cancel(ctx, store.CancelRequest{Booking: second}))
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
	for _, key := range []string{"", ":log:a", ":free:wide", ":log:b", ":pool:" + pool.Digest(), ":pauses", ":workers"} {
		require.Contains(t, ttls, key)
	}
	for key, ttl := range ttls {
		require.Positive(t, ttl, "key %q", key)
	}
	require.InDelta(t, 31*day, ttls[":pauses"], float64(time.Minute))
	require.InDelta(t, 31*day, ttls[""], float64(time.Minute), "the version is kept for as long as the pause")
}

// A log expires by itself when nobody has booked for long. Its account must not
// be held back as if it had been lost.
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
	for _, name := range []string{"", ":log:a", ":free:a", ":pauses", ":sessions", ":pool:"} {
		t.Run("key"+name, func(t *testing.T) {
			t.Parallel()
			d := rationtest.NewRedisBudget(t)
			a := rationtest.Accounts(t, 2, ration.PerHour(5))
			for range 3 {
				d.Book(t, a, 1)
			}
			// A hole in a's log, which it is then to be asked for.
			b := d.Book(t, rationtest.Accounts(t, 1, ration.PerHour(5)), 1)
			d.Book(t, rationtest.Accounts(t, 1, ration.PerHour(5)), 1)
			require.NoError(t, d.Store.Cancel(ctx, store.CancelRequest{Booking: b, Accounts: a}))
			r := d.Request(a, 1)
			key := d.Key(name)
			switch name {
			case ":sessions":
				d.Store = &ration.RedisStore{Client: d.Client} // begins a session
			case ":pool:":
				key += a.Digest()
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
	d := rationtest.NewRedisBudget(t)
	a := rationtest.Accounts(t, 1, ration.PerSecond(5))
	for range 1_000 {
		d.Now = d.Now.Add(200 * time.Millisecond)
		require.Equal(t, d.Now, d.Book(t, a, 1).Slot)
		require.LessOrEqual(t, d.Entries(t), 5+2*64)
	}
}

// Beyond 2^53 microseconds an instant is no longer exact.
func TestASlotBeyondExactNumbersIsNotBooked(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	a := rationtest.Accounts(t, 1, ration.Limit{Max: 1, Window: 366 * 24 * time.Hour})
	var err error
	var b store.Booking
	booked := 0
	for ; err == nil; booked++ {
		require.Less(t, booked, 300)
		b, err = d.Store.Book(t.Context(), d.Request(a, 1))
		require.LessOrEqual(t, b.Slot.Year(), 2255)
	}
	require.ErrorContains(t, err, "beyond the year 2255")
	require.Equal(t, booked-1, d.Entries(t))
}

// The members of a log carry the units booked before them modulo 2^52. Here they
// begin close to it, so that they wrap while the log is in use.
func TestRunningTotalsWrap(t *testing.T) {
	t.Parallel()
	const modulus = 1 << 52
	for before := modulus - 40; before < modulus; before++ {
		d := rationtest.NewRedisBudget(t)
		l := ration.Limit{Max: 3, Window: time.Second}
		a := rationtest.Accounts(t, 1, l)
		member := make([]byte, 12)
		binary.BigEndian.PutUint64(member[:8], uint64(before)<<8)
		member[11] = 1 // its cost
		require.NoError(t, d.Client.ZAdd(t.Context(), d.Key(":log:a"), redis.Z{Score: float64(d.Now.UnixMicro()), Member: member}).Err())

		spent := []store.Booking{{Slot: d.Now, Cost: 1}}
		var handedBack []store.Booking
		for i := range 30 {
			b := d.Book(t, a, 1+i%2)
			require.False(t, b.Slot.Before(spent[len(spent)-1].Slot), "order is kept")
			spent = append(spent, b)
			if i%5 == 2 {
				handedBack = append(handedBack, b)
			}
		}
		units := 0
		for _, b := range handedBack {
			require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: b}))
			spent = slices.DeleteFunc(spent, func(o store.Booking) bool { return o.ID == b.ID })
			again := d.Book(t, a, b.Cost)
			if !again.Slot.Equal(b.Slot) {
				// A slot of several units that the wrap goes through is not
				// given away. It counts until it has passed.
				require.True(t, b.Cost == 2 && units == 0, "the slot at %v was not taken", b.Slot.Sub(d.Now))
				units = b.Cost
			}
			spent = append(spent, again)
		}
		for _, b := range spent {
			units += b.Cost
		}
		usage, err := d.Store.Usage(t.Context(), store.UsageRequest{Budget: d.Name, Accounts: a, Now: d.Now})
		require.NoError(t, err)
		require.Equal(t, units, usage[0].Limits[0].Used)
		slices.SortStableFunc(spent, func(a, b store.Booking) int { return a.Slot.Compare(b.Slot) })
		for i, first := range spent {
			sum := 0
			for _, b := range spent[i:] {
				if b.Slot.Before(first.Slot.Add(l.Window)) {
					sum += b.Cost
				}
			}
			require.LessOrEqual(t, sum, l.Max)
		}
	}
}
