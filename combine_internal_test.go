package ration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration/internal/redistest"
)

// A group is bookings that one script carries out.
type group struct {
	store    *RedisStore
	accounts *Accounts
	budget   string
	now      time.Time
}

// book carries out requests by one script after the other, as many as it takes.
func (b group) book(t require.TestingT, requests []BookRequest) (answers []Booking) {
	left := make([]*seat, len(requests))
	all := make([]*seat, len(requests))
	for i, r := range requests {
		all[i] = &seat{ctx: context.Background(), r: r}
		left[i] = all[i]
	}
	key := queueKey{accounts: b.accounts, budget: b.budget}
	for len(left) > 0 {
		// What the script does not come to goes back to the queue.
		b.store.combiner.queues = map[queueKey]*queue{key: {key: key}}
		require.True(t, newBookCall(b.store, b.store.combiner.queues[key], newBatch(left...)).carryOut())
		left = nil
		for _, in := range b.store.combiner.queues[key].waiting {
			left = append(left, in.seats...)
		}
	}
	b.store.combiner.queues = nil
	for _, of := range all {
		require.Equal(t, seatAnswered, of.state.Load())
		answer, err := of.answer()
		require.NoError(t, err)
		answers = append(answers, answer)
	}
	return answers
}

// A pair is one booking in both stores.
type pair struct{ redis, memory Booking }

// bookBoth books up to most requests of those costs at once, and the same one after
// the other in memory. It demands the same slots, and returns what was booked.
func (b group) bookBoth(t *rapid.T, memory *MemoryStore, most int, costs ...int) (booked []pair) {
	var requests []BookRequest
	for range rapid.IntRange(1, most).Draw(t, "bookings") {
		r := BookRequest{ID: NewBookingID(), Budget: b.budget, Accounts: b.accounts, Now: b.now, MaxWait: Forever,
			Cost: rapid.SampledFrom(costs).Draw(t, "cost")}
		if rapid.IntRange(0, 3).Draw(t, "impatient") == 0 {
			r.MaxWait = time.Duration(rapid.IntRange(0, 15).Draw(t, "wait")) * time.Second
		}
		requests = append(requests, r)
	}
	answers := b.book(t, requests)
	for i, r := range requests {
		want, err := memory.Book(context.Background(), r)
		require.NoError(t, err)
		got := answers[i]
		require.Equal(t, want.Booked, got.Booked, "booking %d", i)
		require.Equal(t, want.Slot.Sub(b.now), got.Slot.Sub(b.now), "booking %d", i)
		if got.Booked {
			booked = append(booked, pair{got, want})
		}
	}
	return booked
}

// What one script books at once must be what a MemoryStore books one after the
// other: any limits, costs and longest waits, with bookings handed back in between.
func TestABatchIsItsBookingsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	rapid.Check(t, func(t *rapid.T) {
		var limits []Limit
		names := map[string]bool{}
		for range rapid.IntRange(1, 3).Draw(t, "limits") {
			l := Limit{
				Max:    rapid.IntRange(3, 30).Draw(t, "max"),
				Window: time.Duration(rapid.IntRange(1, 20).Draw(t, "window")) * time.Second,
				Algorithm: rapid.SampledFrom([]Algorithm{SlidingLog, SlidingLog, SlidingLog, SlidingLog, StreamLog, PackedLog,
					FixedWindow, SlidingWindow, SubWindows, GCRA}).Draw(t, "algorithm"),
			}
			switch l.Algorithm {
			case GCRA:
				l.Burst = 3
			case FixedWindow:
				l.FirstUse = rapid.Bool().Draw(t, "first use")
			}
			if name := fmt.Sprint(l.Algorithm, l.Window, l.FirstUse); !names[name] {
				names[name] = true
				limits = append(limits, l)
			}
		}
		accounts, err := NewAccounts(Account{ID: "a", Limits: limits})
		if err != nil {
			t.Skip(err) // logs of different kinds
		}
		b := group{store: &RedisStore{Client: client}, accounts: accounts, budget: NewBookingID().String(), now: time.UnixMicro(1795000000123457)}
		memory := new(MemoryStore)
		var booked []pair
		t.Repeat(map[string]func(*rapid.T){
			"book": func(t *rapid.T) {
				booked = append(booked, b.bookBoth(t, memory, 20, 1, 1, 1, 2, 3)...)
			},
			"hand back": func(t *rapid.T) {
				if len(booked) == 0 {
					return
				}
				for range rapid.IntRange(1, 4).Draw(t, "how many") {
					of := rapid.SampledFrom(booked).Draw(t, "booking")
					require.NoError(t, b.store.Cancel(context.Background(), CancelRequest{Booking: of.redis, Accounts: accounts}))
					require.NoError(t, memory.Cancel(context.Background(), CancelRequest{Booking: of.memory, Accounts: accounts}))
				}
			},
			"wait": func(t *rapid.T) {
				b.now = b.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				r := UsageRequest{Budget: b.budget, Accounts: accounts, Now: b.now}
				want, err := memory.Usage(context.Background(), r)
				require.NoError(t, err)
				got, err := b.store.Usage(context.Background(), r)
				require.NoError(t, err)
				for i := range want[0].Limits {
					require.Equal(t, want[0].Limits[i].Used, got[0].Limits[i].Used)
					require.True(t, want[0].Limits[i].FreeAt.Equal(got[0].Limits[i].FreeAt))
				}
			},
		})
	})
}

// A batch on a pool takes the same slots, from accounts that any have room: which of
// several that are free at one instant is taken may differ, and nothing else.
func TestABatchOnAPoolTakesTheSoonestSlots(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	rapid.Check(t, func(t *rapid.T) {
		limit := Limit{
			Max:    rapid.IntRange(1, 5).Draw(t, "max"),
			Window: time.Duration(rapid.IntRange(1, 20).Draw(t, "window")) * time.Second,
			// The accounts have one set of limits, and each counts for itself.
			Algorithm: rapid.SampledFrom([]Algorithm{SlidingLog, SlidingLog, FixedWindow, SubWindows}).Draw(t, "algorithm"),
		}
		limit.FirstUse = limit.Algorithm == FixedWindow && rapid.Bool().Draw(t, "first use")
		var list []Account
		for i := range rapid.IntRange(2, 40).Draw(t, "accounts") {
			list = append(list, Account{ID: fmt.Sprint("a", i), Limits: []Limit{limit}})
		}
		accounts, err := NewAccounts(list...)
		require.NoError(t, err)
		b := group{store: &RedisStore{Client: client}, accounts: accounts, budget: NewBookingID().String(), now: time.UnixMicro(1795000000123457)}
		memory := new(MemoryStore)
		taken := map[string][]time.Time{}
		t.Repeat(map[string]func(*rapid.T){
			"book": func(t *rapid.T) {
				for _, both := range b.bookBoth(t, memory, 60, 1) {
					got := both.redis
					of := append(taken[got.Account], got.Slot)
					if first := len(of) - 1 - limit.Max; first >= 0 && limit.Algorithm == SlidingLog {
						require.False(t, got.Slot.Before(of[first].Add(limit.Window)), "a window of %s is too full", got.Account)
					}
					taken[got.Account] = of
				}
			},
			"wait": func(t *rapid.T) {
				b.now = b.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			},
		})
	})
}
