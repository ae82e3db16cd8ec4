package ration_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
)

// Callers that keep less and less, each with too many units for what those before
// it left, overtake all of them: each needs a run of its own, and of those there
// are eight. The ninth leaves behind the first that ends.
func TestMoreThanEightOvertakers(t *testing.T) {
	t.Parallel()
	const most, window = 1_000, 10 * time.Millisecond
	for name, store := range map[string]ration.Store{
		"memory": new(ration.MemoryStore),
		"redis":  &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			accounts, err := ration.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{{Max: most, Window: window}}})
			require.NoError(t, err)
			now, budget := time.UnixMicro(1_795_000_000_000_000), redistest.Name(t)
			var booked []ration.Booking
			book := func(cost, keep int) ration.Booking {
				b, err := store.Book(t.Context(), ration.BookRequest{
					ID: ration.NewBookingID(), Budget: budget, Accounts: accounts, Cost: cost, Keep: keep, MaxWait: ration.Forever, Now: now,
				})
				require.NoError(t, err)
				booked = append(booked, b)
				return b
			}
			// Of lane i there are 20 - i bookings, a window apart: none of it ends
			// behind one of a lane before it.
			var ends []time.Duration
			for i := range 12 {
				for range 20 - i {
					book(30, 970-30*i)
				}
				ends = append(ends, booked[len(booked)-1].Slot.Sub(now))
			}
			for i, end := range ends[:8] {
				require.Equal(t, time.Duration(19-i)*window, end)
			}
			for _, b := range booked {
				units := 0
				for _, o := range booked {
					if since := o.Slot.Sub(b.Slot); since >= 0 && since < window {
						units += o.Cost
					}
				}
				require.LessOrEqual(t, units, most)
			}
			// Each is still found by its entry.
			for _, b := range booked {
				require.NoError(t, store.Cancel(t.Context(), ration.CancelRequest{Booking: b}))
			}
			now = booked[0].Slot.Add(time.Second)
			usage, err := store.Usage(t.Context(), ration.UsageRequest{Budget: budget, Accounts: accounts, Now: now})
			require.NoError(t, err)
			require.Zero(t, usage[0].Limits[0].Used)
		})
	}
}

// Callers that keep different shares overtake each other. Each gets the very first
// slot at which no window holds more than its share, found by looking at them all.
func TestOvertakersLeaveAsSoonAsTheyMay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := ration.Limit{
			Algorithm: rapid.SampledFrom([]ration.Algorithm{ration.SlidingLog, ration.StreamLog, ration.PackedLog}).Draw(rt, "algorithm"),
			Max:       rapid.SampledFrom([]int{3, 10, 50}).Draw(rt, "Max"),
			Window:    rapid.SampledFrom([]time.Duration{time.Millisecond, 64 * time.Millisecond, time.Hour}).Draw(rt, "window"),
		}
		window, store := limit.Window.Microseconds(), new(ration.MemoryStore)
		accounts := accountsOf(rt, []ration.Account{{ID: "a", Limits: []ration.Limit{limit}}})
		type call struct {
			slot int64
			cost int
		}
		var calls []call // in the order of slots
		last := map[int]int64{}
		now := int64(1_795_000_000_000_000)
		// held is what the fullest window holds that an instant is in.
		held := func(at int64) (most int) {
			ends := []int64{at}
			for _, c := range calls {
				if c.slot > at && c.slot < at+window {
					ends = append(ends, c.slot)
				}
			}
			for _, end := range ends {
				units := 0
				for _, c := range calls {
					if c.slot > end-window && c.slot <= end {
						units += c.cost
					}
				}
				most = max(most, units)
			}
			return most
		}
		for range rapid.IntRange(5, 120).Draw(rt, "bookings") {
			now += rapid.SampledFrom([]int64{0, 0, 0, 1, window / 97, window / 7, window}).Draw(rt, "step")
			keep := rapid.SampledFrom([]int{0, 200, 500, 800}).Draw(rt, "keep")
			cost := rapid.IntRange(1, max(1, limit.Max/rapid.SampledFrom([]int{1, 5, 10}).Draw(rt, "part"))).Draw(rt, "cost")
			most := limit.Max
			if keep > 0 {
				most = max(cost, limit.Max*(1000-keep)/1000)
			}
			from := max(now, last[keep])
			instants := []int64{from}
			for _, c := range calls {
				instants = append(instants, max(from, c.slot+window))
			}
			slices.Sort(instants)
			first := instants[slices.IndexFunc(instants, func(at int64) bool { return held(at)+cost <= most })]
			b, err := store.Book(rt.Context(), ration.BookRequest{
				ID: ration.NewBookingID(), Budget: "overtakers", Accounts: accounts, Cost: cost, Keep: keep, MaxWait: ration.Forever, Now: time.UnixMicro(now),
			})
			require.NoError(rt, err)
			slot := b.Slot.UnixMicro()
			require.Equal(rt, first-now, slot-now)
			last[keep] = slot
			at, _ := slices.BinarySearchFunc(calls, slot+1, func(c call, slot int64) int { return int(c.slot - slot) })
			calls = slices.Insert(calls, at, call{slot, cost})
		}
	})
}

// Slots of one instant that lanes handed back are kept in the order of the lanes'
// names, and in a log's run in the order of booking.
func TestSlotsOfOneInstantThatSeveralLanesHandedBack(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]ration.Store{
		"memory": new(ration.MemoryStore),
		"redis":  &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			accounts, err := ration.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{{Max: 4, Window: 2 * time.Millisecond}}})
			require.NoError(t, err)
			now, budget := time.UnixMicro(1_795_000_000_000_000), redistest.Name(t)
			book := func(cost, keep int) ration.Booking {
				b, err := store.Book(t.Context(), ration.BookRequest{
					ID: ration.NewBookingID(), Budget: budget, Accounts: accounts, Cost: cost, Keep: keep, MaxWait: ration.Forever, Now: now,
				})
				require.NoError(t, err)
				return b
			}
			handedBack := []ration.Booking{book(2, 1), book(1, 0), book(1, 0)}
			for _, b := range handedBack {
				require.NoError(t, store.Cancel(t.Context(), ration.CancelRequest{Booking: b}))
			}
			began := now
			now = now.Add(time.Millisecond)
			var slots []time.Duration
			for range 5 {
				slots = append(slots, book(2, 0).Slot.Sub(began))
			}
			ms := time.Millisecond
			require.Equal(t, []time.Duration{ms, ms, 3 * ms, 3 * ms, 5 * ms}, slots)
		})
	}
}
