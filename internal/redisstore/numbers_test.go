package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// What only a real Redis shows: how numbers are stored.

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

// The units of an account are numbered modulo 2^52. Here they begin close to it, so that
// they wrap while the log is in use.
func TestNumbersWrap(t *testing.T) {
	t.Parallel()
	const modulus = 1 << 52
	for next := uint64(modulus - 40); next < modulus; next++ {
		d := rationtest.NewRedisBudget(t)
		l := ration.Limit{Max: 3, Window: time.Second}
		a := rationtest.Accounts(t, 1, l)
		spent := []store.Booking{d.Book(t, a, 1)}
		// The second number of the summary is that of the next unit.
		summary, err := d.Client.HGet(t.Context(), d.Key(""), "a:a").Bytes()
		require.NoError(t, err)
		binary.BigEndian.PutUint64(summary[8:], math.Float64bits(float64(next)))
		require.NoError(t, d.Client.HSet(t.Context(), d.Key(""), "a:a", summary).Err())

		var cancelled []store.Booking
		for i := range 30 {
			b := d.Book(t, a, 1+i%2)
			require.False(t, b.Slot.Before(spent[len(spent)-1].Slot), "order is kept")
			spent = append(spent, b)
			if i%5 == 2 {
				cancelled = append(cancelled, b)
			}
		}
		for _, b := range cancelled {
			require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: b, Now: d.Now}))
			spent = slices.DeleteFunc(spent, func(o store.Booking) bool { return o.ID == b.ID })
			again := d.Book(t, a, b.Cost)
			require.False(t, again.Slot.After(b.Slot), "the slot at %v was not taken", b.Slot.Sub(d.Now))
			spent = append(spent, again)
		}
		units := 0
		for _, b := range spent {
			units += b.Cost
		}
		usage, err := d.Store.Usage(t.Context(), store.UsageRequest{Budget: d.Name, Accounts: a, Now: d.Now})
		require.NoError(t, err)
		require.Equal(t, units, usage[0].Limits[0].Used+usage[0].Limits[0].Ahead)
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

// docs/redis.md has this as its example.
func TestTheExampleOfThePage(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	a := rationtest.Accounts(t, 1, ration.Limit{Max: 3, Window: 10 * time.Second})
	begin := d.Book(t, a, 1).Slot
	var booked []store.Booking
	for _, row := range []struct {
		at   time.Duration
		cost int
		slot time.Duration
	}{
		{time.Second, 2, time.Second},
		{1500 * time.Millisecond, 1, 10 * time.Second},
		{2 * time.Second, 1, 11 * time.Second},
		{2100 * time.Millisecond, 1, 11 * time.Second},
		{3200 * time.Millisecond, 1, 11 * time.Second},
	} {
		d.Now = begin.Add(row.at)
		if row.at > 3*time.Second {
			require.NoError(t, d.Store.Cancel(t.Context(), store.CancelRequest{Booking: booked[2], Now: begin.Add(3 * time.Second)}))
		}
		booked = append(booked, d.Book(t, a, row.cost))
		require.Equal(t, row.slot, booked[len(booked)-1].Slot.Sub(begin), "the call at %v", row.at)
	}
	first := uint64(0)
	units := func(key string) map[uint64]time.Duration {
		log, err := d.Client.ZRangeWithScores(t.Context(), d.Key(key), 0, -1).Result()
		require.NoError(t, err)
		slots := make(map[uint64]time.Duration)
		for _, z := range log {
			number := binary.BigEndian.Uint64(append([]byte{0}, z.Member.(string)...))
			if first == 0 {
				first = number
			}
			slots[number-first] = time.UnixMicro(int64(z.Score)).Sub(begin)
		}
		return slots
	}
	require.Equal(t, map[uint64]time.Duration{0: 0, 3: 10 * time.Second, 5: 11 * time.Second, 6: 11 * time.Second}, units(":log:a"))
	require.Equal(t, map[uint64]time.Duration{1: time.Second}, units(":log:a:1"))
	require.EqualValues(t, 1, first%2)
}
