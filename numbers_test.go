package ration_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
	"github.com/ration-go/ration/store"
)

// What only a real Redis shows: how numbers are stored, and what expires.

// numbersBegin has 16 digits of microseconds, of which Lua's tostring keeps 14.
var numbersBegin = time.UnixMicro(1_795_000_000_123_457)

// A redisDesk is one budget on a Redis of the tests.
type redisDesk struct {
	client *redis.Client
	store  *ration.RedisStore
	budget string
	now    time.Time
}

func newRedisDesk(t *testing.T) *redisDesk {
	client := redistest.Shared(t).Client(t)
	return &redisDesk{
		client: client,
		store:  &ration.RedisStore{Client: client, Timeout: time.Minute},
		budget: redistest.Name(t),
		now:    numbersBegin,
	}
}

// key names a key of the budget.
func (d *redisDesk) key(rest string) string { return "ration:v1:{" + d.budget + "}" + rest }

// keys returns all keys of the budget, with the time until each expires.
func (d *redisDesk) keys(t *testing.T) map[string]time.Duration {
	t.Helper()
	all := make(map[string]time.Duration)
	scan := d.client.Scan(t.Context(), 0, d.key("*"), 1000).Iterator()
	for scan.Next(t.Context()) {
		ttl, err := d.client.PTTL(t.Context(), scan.Val()).Result()
		require.NoError(t, err)
		all[strings.TrimPrefix(scan.Val(), d.key(""))] = ttl
	}
	require.NoError(t, scan.Err())
	return all
}

func (d *redisDesk) request(a *store.Accounts, cost int) store.BookRequest {
	return store.BookRequest{
		ID: store.NewBookingID(), Budget: d.budget, Accounts: a, Cost: cost, MaxWait: store.Forever, Now: d.now,
	}
}

func (d *redisDesk) book(t *testing.T, a *store.Accounts, cost int) store.Booking {
	t.Helper()
	b, err := d.store.Book(t.Context(), d.request(a, cost))
	require.NoError(t, err)
	require.True(t, b.Booked)
	return b
}

// listOf lists accounts a, b, c... with the same limits.
func listOf(t *testing.T, count int, limits ...ration.Limit) *store.Accounts {
	t.Helper()
	var list []ration.Account
	for i := range count {
		list = append(list, ration.Account{ID: string(rune('a' + i)), Limits: limits})
	}
	a, err := store.NewAccounts(list...)
	require.NoError(t, err)
	return a
}

func TestSlotsInRedisEqualThoseInGo(t *testing.T) {
	t.Parallel()
	const many = 10_000
	d := newRedisDesk(t)
	a := listOf(t, 1, ration.Limit{Max: 3, Window: 1_234_567 * time.Microsecond})
	var want []float64
	for range many {
		slot := d.book(t, a, 1).Slot.UnixMicro()
		require.Len(t, fmt.Sprint(slot), 16)
		want = append(want, float64(slot))
	}
	require.Equal(t, numbersBegin.Add((many-1)/3*1_234_567*time.Microsecond).UnixMicro(), int64(want[many-1]))
	slots := slices.Compact(want) // bookings of one slot may be one entry
	for protocol := 2; protocol <= 3; protocol++ {
		client := redis.NewClient(&redis.Options{Addr: d.client.Options().Addr, Protocol: protocol})
		defer client.Close()
		entries, err := client.ZRangeWithScores(t.Context(), d.key(":log:a"), 0, -1).Result()
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
			d := newRedisDesk(t)
			a := listOf(t, 1, ration.PerHour(5).Using(algorithm))
			first, second := d.book(t, a, 1), d.book(t, a, 1)
			for _, b := range []store.Booking{first, second} {
				require.NoError(t, d.store.Cancel(t.Context(), store.CancelRequest{Booking: b, Accounts: a, Now: d.now}))
				for key, ttl := range d.keys(t) {
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
	d := newRedisDesk(t)
	single := listOf(t, 1, ration.Limit{Max: 1, Window: time.Second}, ration.PerHour(5000))
	pool := listOf(t, 3, ration.PerSecond(1))

	var all []store.Booking
	for range 4 {
		all = append(all, d.book(t, single, 1))
	}
	const needed = 3*time.Second + time.Hour + day
	d.expire(t, map[string]time.Duration{
		"": needed, ":log:a": needed, ":acct:a": needed, ":sessions": day,
	})
	require.NoError(t, d.store.Cancel(ctx, store.CancelRequest{Booking: all[1], Accounts: single}))
	d.expire(t, map[string]time.Duration{
		"": needed, ":log:a": needed, ":acct:a": needed, ":free:a": needed, ":sessions": day, ":id:": time.Minute,
	})
	// What is needed for longer by less than an hour need not be said anew.
	for range 3000 {
		d.book(t, single, 1)
	}
	d.expire(t, map[string]time.Duration{
		"": needed + 50*time.Minute, ":log:a": needed + 50*time.Minute, ":acct:a": needed + 50*time.Minute,
		":sessions": day, ":id:": time.Minute,
	})
	// A part of the only slot that was handed back is taken.
	wide := ration.Account{ID: "wide", Limits: []ration.Limit{ration.PerHour(5)}}
	wides, err := store.NewAccounts(wide)
	require.NoError(t, err)
	d.book(t, wides, 5)
	second := d.book(t, wides, 5)
	d.book(t, wides, 5)
	require.NoError(t, d.store.Cancel(ctx, store.CancelRequest{Booking: second}))
	require.Equal(t, second.Slot, d.book(t, wides, 2).Slot)
	d.book(t, pool, 1)
	_, err = d.store.Pause(ctx, store.PauseRequest{Budget: d.budget, Account: "c", For: 30 * day, Now: d.now})
	require.NoError(t, err)
	_, err = d.store.Status(ctx, store.StatusRequest{Budget: d.budget, Worker: "w", Now: d.now})
	require.NoError(t, err)
	_, err = d.store.Usage(ctx, store.UsageRequest{Budget: d.budget, Accounts: pool, Now: d.now})
	require.NoError(t, err)
	require.NoError(t, d.store.Record(ctx, store.RecordRequest{
		ID: store.NewBookingID(), Budget: d.budget, Account: pool.At(1), Now: d.now, Spent: []store.Spending{{Slot: d.now, Cost: 2}},
	}))
	ttls := d.keys(t)
	for _, key := range []string{"", ":log:a", ":free:wide", ":log:b", ":pool:" + pool.Digest(), ":pauses", ":workers"} {
		require.Contains(t, ttls, key)
	}
	for key, ttl := range ttls {
		require.Positive(t, ttl, "key %q", key)
	}
	require.InDelta(t, 31*day, ttls[":pauses"], float64(time.Minute))
	require.InDelta(t, 31*day, ttls[""], float64(time.Minute), "the version is kept for as long as the pause")
}

// expire demands that the keys expire neither before they are no longer needed nor
// much more than an hour later. The name of a booking's ID is left out.
func (d *redisDesk) expire(t *testing.T, want map[string]time.Duration) {
	t.Helper()
	ttls := d.keys(t)
	for key := range want {
		require.True(t, key == ":id:" || ttls[key] != 0, "there is no key %q", key)
	}
	for key, ttl := range ttls {
		if strings.HasPrefix(key, ":id:") {
			key = ":id:"
		}
		require.Contains(t, want, key)
		require.LessOrEqual(t, ttl, want[key]+65*time.Minute, "key %q", key)
		require.Greater(t, ttl, want[key]-30*time.Second, "key %q", key)
	}
}

// A log expires by itself when nobody has booked for long. Its account must not
// be held back as if it had been lost.
func TestALogThatExpiredIsNotALostOne(t *testing.T) {
	t.Parallel()
	d := newRedisDesk(t)
	a, b := listOf(t, 1, ration.PerHour(5)), listOf(t, 2, ration.PerHour(5))
	d.book(t, a, 1)
	before, err := d.store.Status(t.Context(), store.StatusRequest{Budget: d.budget, Now: d.now})
	require.NoError(t, err)
	// The server's clock stands still here, so the log is removed as it would
	// have been by then. Other accounts have kept the budget alive.
	d.now = d.now.Add(3 * 24 * time.Hour)
	require.NoError(t, d.client.Del(t.Context(), d.key(":log:a")).Err())
	require.Equal(t, d.now, d.book(t, a, 1).Slot)
	require.Equal(t, d.now, d.book(t, b, 1).Slot)
	after, err := d.store.Status(t.Context(), store.StatusRequest{Budget: d.budget, Now: d.now})
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
			d := newRedisDesk(t)
			a := listOf(t, 2, ration.PerHour(5))
			for range 3 {
				d.book(t, a, 1)
			}
			// A hole in a's log, which it is then to be asked for.
			b := d.book(t, listOf(t, 1, ration.PerHour(5)), 1)
			d.book(t, listOf(t, 1, ration.PerHour(5)), 1)
			require.NoError(t, d.store.Cancel(ctx, store.CancelRequest{Booking: b, Accounts: a}))
			r := d.request(a, 1)
			key := d.key(name)
			switch name {
			case ":sessions":
				d.store = &ration.RedisStore{Client: d.client} // begins a session
			case ":pool:":
				key += a.Digest()
			}
			require.NoError(t, d.client.Del(ctx, key).Err())
			require.NoError(t, d.client.Set(ctx, key, "x", 0).Err())
			before := d.entries(t)
			_, err := d.store.Book(ctx, r)
			require.ErrorIs(t, err, ration.ErrStoreUnavailable)
			var failed *ration.StoreError
			require.ErrorAs(t, err, &failed)
			require.True(t, failed.Permanent)
			require.ErrorContains(t, err, "WRONGTYPE")
			require.Equal(t, before, d.entries(t))
			for other, ttl := range d.keys(t) {
				require.True(t, ttl > 0 || d.key(other) == key, "key %q never expires", other)
			}
		})
	}
}

// A script that fails in its middle leaves nothing that never expires.
func TestAnIndexExpiresThoughItsFirstBookingFailed(t *testing.T) {
	t.Parallel()
	d := newRedisDesk(t)
	require.NoError(t, d.client.Set(t.Context(), d.key(":log:a"), "x", time.Hour).Err())
	_, err := d.store.Book(t.Context(), d.request(listOf(t, 2, ration.PerHour(5)), 1))
	require.Error(t, err)
	for key, ttl := range d.keys(t) {
		require.Positive(t, ttl, "key %q never expires", key)
	}
}

// entries counts what is in the logs.
func (d *redisDesk) entries(t *testing.T) int {
	t.Helper()
	sum := 0
	for _, log := range []string{":log:a", ":log:b"} {
		if n, err := d.client.ZCard(t.Context(), d.key(log)).Result(); err == nil {
			sum += int(n)
		}
	}
	return sum
}

// What is older than the window is removed, a batch at a time.
func TestALogDoesNotGrowWithTime(t *testing.T) {
	t.Parallel()
	d := newRedisDesk(t)
	a := listOf(t, 1, ration.PerSecond(5))
	for range 1_000 {
		d.now = d.now.Add(200 * time.Millisecond)
		require.Equal(t, d.now, d.book(t, a, 1).Slot)
		require.LessOrEqual(t, d.entries(t), 5+2*64)
	}
}

// Beyond 2^53 microseconds an instant is no longer exact.
func TestASlotBeyondExactNumbersIsNotBooked(t *testing.T) {
	t.Parallel()
	d := newRedisDesk(t)
	a := listOf(t, 1, ration.Limit{Max: 1, Window: 366 * 24 * time.Hour})
	var err error
	var b store.Booking
	booked := 0
	for ; err == nil; booked++ {
		require.Less(t, booked, 300)
		b, err = d.store.Book(t.Context(), d.request(a, 1))
		require.LessOrEqual(t, b.Slot.Year(), 2255)
	}
	require.ErrorContains(t, err, "beyond the year 2255")
	require.Equal(t, booked-1, d.entries(t))
}

// The members of a log carry the units booked before them modulo 2^52. Here they
// begin close to it, so that they wrap while the log is in use.
func TestRunningTotalsWrap(t *testing.T) {
	t.Parallel()
	const modulus = 1 << 52
	for before := modulus - 40; before < modulus; before++ {
		d := newRedisDesk(t)
		l := ration.Limit{Max: 3, Window: time.Second}
		a := listOf(t, 1, l)
		member := make([]byte, 12)
		binary.BigEndian.PutUint64(member[:8], uint64(before)<<8)
		member[11] = 1 // its cost
		require.NoError(t, d.client.ZAdd(t.Context(), d.key(":log:a"), redis.Z{Score: float64(d.now.UnixMicro()), Member: member}).Err())

		spent := []store.Booking{{Slot: d.now, Cost: 1}}
		var handedBack []store.Booking
		for i := range 30 {
			b := d.book(t, a, 1+i%2)
			require.False(t, b.Slot.Before(spent[len(spent)-1].Slot), "order is kept")
			spent = append(spent, b)
			if i%5 == 2 {
				handedBack = append(handedBack, b)
			}
		}
		units := 0
		for _, b := range handedBack {
			require.NoError(t, d.store.Cancel(t.Context(), store.CancelRequest{Booking: b}))
			spent = slices.DeleteFunc(spent, func(o store.Booking) bool { return o.ID == b.ID })
			again := d.book(t, a, b.Cost)
			if !again.Slot.Equal(b.Slot) {
				// A slot of several units that the wrap goes through is not
				// given away. It counts until it has passed.
				require.True(t, b.Cost == 2 && units == 0, "the slot at %v was not taken", b.Slot.Sub(d.now))
				units = b.Cost
			}
			spent = append(spent, again)
		}
		for _, b := range spent {
			units += b.Cost
		}
		usage, err := d.store.Usage(t.Context(), store.UsageRequest{Budget: d.budget, Accounts: a, Now: d.now})
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
