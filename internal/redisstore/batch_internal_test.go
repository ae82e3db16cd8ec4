package redisstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/internal/testkit/draw"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A group is bookings that one script carries out.
type group struct {
	store    *Store
	accounts *store.Accounts
	budget   string
	now      time.Time
	queues   bool          // whether some bookings have scopes or a reserve
	script   *redis.Script // in place of book
}

// book carries out requests by one script after the other, as many as it takes.
func (b group) book(t require.TestingT, requests []store.BookRequest) (answers []store.Booking) {
	left := make([]*pendingCall, len(requests))
	all := make([]*pendingCall, len(requests))
	for i, r := range requests {
		all[i] = &pendingCall{ctx: context.Background(), request: r}
		left[i] = all[i]
	}
	key := batchKey{accounts: b.accounts, budget: b.budget,
		scopes: b.accounts.RelevantScopes(requests[0].Scopes), reserve: requests[0].Reserve, revision: requests[0].Revision}
	if b.accounts.Len() > 1 {
		key.units = store.IndexUnits(requests[0].Cost)
	}
	for len(left) > 0 {
		// What the script does not come to goes back to the queue.
		q := &queue{key: key, plan: newPlan(key)}
		b.store.batcher.queues = map[batchKey]*queue{key: q}
		if b.script != nil {
			q.plan.script = b.script
		}
		c := &batchCall{store: b.store, queue: q, plan: q.plan, batch: &batch{calls: left, done: make(chan struct{})}}
		require.True(t, c.carryOut())
		left = nil
		for _, in := range q.batches {
			left = append(left, in.calls...)
		}
	}
	b.store.batcher.queues = nil
	for _, p := range all {
		require.Equal(t, answered, p.state.Load())
		require.NoError(t, p.err)
		answers = append(answers, p.result.booking(p.request.ID, p.request.Budget, p.request.Cost))
	}
	return answers
}

// A pair is one booking in both stores.
type pair struct{ redis, memory store.Booking }

// bookBoth books up to most requests of those costs at once, and the same one after
// the other in memory. It demands the same slots, and returns what was booked.
func (b group) bookBoth(t *draw.T, memory *memstore.Store, most int, costs ...int) (booked []pair) {
	var requests []store.BookRequest
	var scopes []string
	reserve := 0
	if b.queues && draw.Bool().Draw(t, "of another queue") {
		scopes = draw.SampledFrom([][]string{nil, {"x"}}).Draw(t, "scopes")
		reserve = draw.SampledFrom([]int{0, 300}).Draw(t, "reserve")
	}
	if b.accounts.Len() > 1 { // one index answers a batch
		units := store.IndexUnits(draw.SampledFrom(costs).Draw(t, "a cost"))
		costs = slices.DeleteFunc(slices.Clone(costs), func(cost int) bool { return store.IndexUnits(cost) != units })
	}
	for range draw.IntRange(1, most).Draw(t, "bookings") {
		r := store.BookRequest{ID: store.NewBookingID(), Budget: b.budget, Accounts: b.accounts, Now: b.now, MaxWait: store.Forever,
			Scopes: scopes, Reserve: reserve, Cost: draw.SampledFrom(costs).Draw(t, "cost")}
		if draw.IntRange(0, 3).Draw(t, "impatient") == 0 {
			r.MaxWait = time.Duration(draw.IntRange(0, 15).Draw(t, "wait")) * time.Second
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

// What one script books at once must be what a Store books one after the
// other: any limits, costs, longest waits, scopes, reserves and shared accounts, with
// cancellations and pauses in between.
func TestABatchIsItsBookingsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	draw.Check(t, func(t *draw.T) {
		var limits []limit.Limit
		names := map[string]bool{}
		for range draw.IntRange(1, 3).Draw(t, "limits") {
			l := limit.Limit{
				Max:       draw.IntRange(3, 30).Draw(t, "max"),
				Window:    time.Duration(draw.IntRange(1, 20).Draw(t, "window")) * time.Second,
				Algorithm: draw.SampledFrom(append(limit.Algorithms(), limit.SlidingLog, limit.SlidingLog, limit.SlidingLog)).Draw(t, "algorithm"),
			}
			switch l.Algorithm {
			case limit.GCRA:
				l.Burst = 3
			case limit.FixedWindow:
				l.FirstUse = draw.Bool().Draw(t, "first use")
			}
			if draw.IntRange(0, 3).Draw(t, "scope") == 0 {
				l.Scope = "x"
			}
			if name := fmt.Sprint(l.Algorithm, l.Window, l.FirstUse, l.Scope); !names[name] {
				names[name] = true
				limits = append(limits, l)
			}
		}
		var shared []store.Account
		if draw.IntRange(0, 3).Draw(t, "shared") == 0 {
			shared = append(shared, store.Account{ID: "s", Limits: []limit.Limit{{Max: 10, Window: 7 * time.Second,
				Algorithm: draw.SampledFrom([]limit.Algorithm{limit.SlidingLog, limit.FixedWindow}).Draw(t, "algorithm of the shared one")}}})
		}
		accounts, err := store.NewAccounts(store.Account{ID: "a", Limits: limits})
		if err == nil {
			accounts, err = accounts.Sharing(shared...)
		}
		if err != nil {
			t.Skip(err) // logs of different kinds
		}
		b := group{store: &Store{Client: client}, accounts: accounts, budget: store.NewBookingID().String(), now: time.UnixMicro(1795000000123457), queues: true}
		memory := new(memstore.Store)
		var booked []pair
		t.Repeat(map[string]func(*draw.T){
			"book": func(t *draw.T) {
				booked = append(booked, b.bookBoth(t, memory, 20, 1, 1, 1, 2, 3)...)
			},
			"hand back": func(t *draw.T) {
				if len(booked) == 0 {
					return
				}
				for range draw.IntRange(1, 4).Draw(t, "how many") {
					of := draw.SampledFrom(booked).Draw(t, "booking")
					require.NoError(t, b.store.Cancel(context.Background(), store.CancelRequest{Booking: of.redis, Now: b.now}))
					require.NoError(t, memory.Cancel(context.Background(), store.CancelRequest{Booking: of.memory, Now: b.now}))
				}
			},
			"wait": func(t *draw.T) {
				b.now = b.now.Add(time.Duration(draw.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"pause": func(t *draw.T) {
				r := store.PauseRequest{Budget: b.budget, Now: b.now, Account: draw.SampledFrom([]string{"", "a", "s"}).Draw(t, "paused"),
					For: time.Duration(draw.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond, SlowStart: time.Duration(draw.IntRange(0, 200).Draw(t, "slow start")) * time.Millisecond}
				_, err := memory.Pause(context.Background(), r)
				require.NoError(t, err)
				_, err = b.store.Pause(context.Background(), r)
				require.NoError(t, err)
			},
			"": func(t *draw.T) {
				r := store.UsageRequest{Budget: b.budget, Accounts: accounts, Now: b.now}
				want, err := memory.Usage(context.Background(), r)
				require.NoError(t, err)
				got, err := b.store.Usage(context.Background(), r)
				require.NoError(t, err)
				for i := range want[0].Limits {
					require.Equal(t, want[0].Limits[i], got[0].Limits[i])
					require.True(t, want[0].Limits[i].FreeAt.Equal(got[0].Limits[i].FreeAt))
				}
			},
		})
	})
}

// A batch on a pool takes the same slots from the same accounts, also where many accounts are
// free at one instant and the script sees some of them only.
func TestABatchOnAPoolTakesAccountsInTurn(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	draw.Check(t, func(t *draw.T) {
		one := limit.Limit{
			Max:    draw.IntRange(1, 5).Draw(t, "max"),
			Window: time.Duration(draw.IntRange(1, 20).Draw(t, "window")) * time.Second,
			// The accounts have one set of limits, and each counts for itself.
			Algorithm: draw.SampledFrom([]limit.Algorithm{limit.SlidingLog, limit.SlidingLog, limit.StreamLog, limit.FixedWindow, limit.SubWindows, limit.SlidingWindow}).Draw(t, "algorithm"),
		}
		one.FirstUse = one.Algorithm == limit.FixedWindow && draw.Bool().Draw(t, "first use")
		var list []store.Account
		for i := range draw.SampledFrom([]int{2, 3, 5, 17, 60, 120, 400}).Draw(t, "accounts") {
			list = append(list, store.Account{ID: fmt.Sprint("a", i), Limits: []limit.Limit{one}})
		}
		accounts, err := store.NewAccounts(list...)
		require.NoError(t, err)
		b := group{store: &Store{Client: client}, accounts: accounts, budget: store.NewBookingID().String(), now: time.UnixMicro(1795000000123457)}
		memory := new(memstore.Store)
		// Where many accounts have one unit left a call of two looks at all of them, in several scripts.
		costs := draw.SampledFrom([][]int{{1}, {1, min(2, one.Max)}}).Draw(t, "costs")
		taken := map[string][]time.Time{}
		t.Repeat(map[string]func(*draw.T){
			"book": func(t *draw.T) {
				for i, both := range b.bookBoth(t, memory, draw.SampledFrom([]int{1, 3, 60}).Draw(t, "most"), costs...) {
					got := both.redis
					require.Equal(t, both.memory.Account, got.Account, "booking %d", i)
					of := taken[got.Account]
					for range got.Cost {
						of = append(of, got.Slot)
					}
					if first := len(of) - 1 - one.Max; first >= 0 && one.Algorithm == limit.SlidingLog {
						require.False(t, got.Slot.Before(of[first].Add(one.Window)), "a window of %s is too full", got.Account)
					}
					taken[got.Account] = of
				}
			},
			"wait": func(t *draw.T) {
				unit := draw.SampledFrom([]time.Duration{time.Microsecond, time.Millisecond}).Draw(t, "unit")
				b.now = b.now.Add(time.Duration(draw.IntRange(1, 5000).Draw(t, "passed")) * unit)
			},
		})
	})
}

// Scripts, in front and behind it, go by the index that store.IndexUnits names.
func TestAnIndexIsNamedByWhatBookingsCost(t *testing.T) {
	t.Parallel()
	client := redistest.Shared(t).Client(t)
	for _, cost := range []int{1, 3, 7, 8, 9, 10, 11, 15, 16, 18, 19, 100, 1 << 29, 1<<30 + 7} {
		large := []limit.Limit{{Max: limit.MaxUnits, Window: time.Hour, Algorithm: limit.FixedWindow}}
		accounts, err := store.NewAccounts(store.Account{ID: "a", Limits: large}, store.Account{ID: "b", Limits: large})
		require.NoError(t, err)
		b := group{store: &Store{Client: client}, accounts: accounts, budget: store.NewBookingID().String(), now: time.UnixMicro(1795000000123457)}
		for range 5 { // the first goes the general path, which the others need not
			b.now = b.now.Add(time.Millisecond)
			b.book(t, []store.BookRequest{{ID: store.NewBookingID(), Budget: b.budget, Accounts: accounts, Now: b.now, MaxWait: store.Forever, Cost: cost}})
		}
		keys, err := client.Keys(t.Context(), BaseKey(b.budget)+":pool:*").Result()
		require.NoError(t, err)
		require.Equal(t, []string{fmt.Sprintf("%s:pool:%s*%d", BaseKey(b.budget), accounts.Digest(), store.IndexUnits(cost))}, keys)
		newest, err := client.HGet(t.Context(), BaseKey(b.budget), fmt.Sprintf("i:%s*%d", accounts.Digest(), store.IndexUnits(cost))).Result()
		require.NoError(t, err)
		require.Equal(t, "1:a", newest[8:])
	}
}
