package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/draw"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// frontCases are the limits that lua/front.lua answers for.
var frontCases = map[string][]limit.Limit{
	"SlidingLog":    {{Algorithm: limit.SlidingLog}},
	"SlidingLogs":   {{Algorithm: limit.SlidingLog}, {Algorithm: limit.SlidingLog}},
	"StreamLog":     {{Algorithm: limit.StreamLog}},
	"StreamLogs":    {{Algorithm: limit.StreamLog}, {Algorithm: limit.StreamLog}},
	"FixedWindow":   {{Algorithm: limit.FixedWindow}},
	"FirstUse":      {{Algorithm: limit.FixedWindow, FirstUse: true}},
	"SlidingWindow": {{Algorithm: limit.SlidingWindow}},
	"SubWindows":    {{Algorithm: limit.SubWindows}},
	"GCRA":          {{Algorithm: limit.GCRA}},
}

// costs are those of bookings, unless the limits are lower.
var costs = []int{1, 1, 1, 1, 1, 1, 2, 3, 12, limit.MaxUnits}

// actions are the steps of a history.
func (h *history) actions() map[string]func(*draw.T) {
	wait := func(t *draw.T) {
		window := int(h.with.accounts.At(0).Limits[0].Window.Microseconds())
		most := draw.SampledFrom([]int{1, 1000, 20_000, window / 8, window / 3, window, 900_000}).Draw(t, "most")
		h.wait(time.Duration(draw.IntRange(1, min(most, 900_000)).Draw(t, "µs")) * time.Microsecond)
	}
	book := func(t *draw.T) {
		// Most come alone and cost 1, and none that leaves at the last instant is booked in front.
		for range draw.IntRange(1, 8).Draw(t, "one after the other") {
			if draw.IntRange(0, 4).Draw(t, "later") > 0 {
				wait(t)
			}
			count := draw.SampledFrom([]int{1, 1, 1, 1, 1, 1, 2, 3, 9, 40}).Draw(t, "bookings")
			cost := draw.SampledFrom(costs).Draw(t, "cost")
			r := store.BookRequest{Cost: min(cost, h.most), MaxWait: store.Forever}
			switch draw.IntRange(0, 15).Draw(t, "kind") {
			case 0, 1, 2, 3:
				r.MaxWait = time.Duration(draw.IntRange(0, 5000).Draw(t, "wait")) * time.Millisecond
			case 4:
				r.Reserve = 300
			case 5, 6:
				// A second is a step of the clock, unless others have seen it too.
				r.Expect = h.with.now.Add(-time.Duration(draw.SampledFrom([]int{0, 0, 999, 1001, 1100, 1600}).Draw(t, "ahead")) * time.Millisecond)
			}
			differs := count > 1 && draw.IntRange(0, 2).Draw(t, "differs") == 0
			var requests []store.BookRequest
			for range count {
				r.ID = store.NewBookingID()
				if differs { // as those of callers with a deadline
					r.MaxWait = draw.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Minute + time.Millisecond, store.Forever, store.Never}).Draw(t, "own wait")
				}
				requests = append(requests, r)
			}
			h.book(t, requests)
		}
	}
	account := func(t *draw.T) store.Account {
		return h.with.accounts.At(draw.IntRange(0, h.with.accounts.Len()-1).Draw(t, "account"))
	}
	return map[string]func(*draw.T){
		"book": book, "book more": book, "book still more": book, "book on": book,
		"revise": func(t *draw.T) {
			if draw.IntRange(0, 4).Draw(t, "seldom") > 0 {
				return
			}
			var list []store.Account
			one := h.with.accounts.At(0).Limits[0]
			one.Max = draw.IntRange(1, min(2*one.Max, limit.MaxUnits)).Draw(t, "max")
			one.Burst = min(one.Burst, one.Max)
			for i := range h.with.accounts.Len() {
				account := h.with.accounts.At(i)
				account.Limits = slices.Clone(account.Limits)
				account.Limits[0] = one
				list = append(list, account)
			}
			a, err := store.NewAccounts(list...)
			require.NoError(t, err)
			h.revisions, h.most = append(h.revisions, a), min(h.most, a.MaxCost())
		},
		"wait long": func(t *draw.T) {
			h.wait(time.Duration(draw.IntRange(1, 30_000).Draw(t, "ms")) * time.Millisecond)
		},
		"cancel": func(t *draw.T) {
			if len(h.booked) == 0 || draw.IntRange(0, 2).Draw(t, "seldom") > 0 {
				return
			}
			of := draw.SampledFrom(h.booked[max(0, len(h.booked)-50):]).Draw(t, "booking")
			h.both(func(i int, b group) {
				require.NoError(t, b.store.Cancel(t.Context(), store.CancelRequest{Booking: of[i], Now: b.now}))
			})
		},
		"record": func(t *draw.T) {
			if draw.IntRange(0, 4).Draw(t, "seldom") > 0 {
				return
			}
			r := store.RecordRequest{Account: account(t), ID: store.NewBookingID(), Now: h.with.now, Spent: []store.Spending{{
				Slot: h.with.now.Add(time.Duration(draw.IntRange(-2000, 2000).Draw(t, "ms")) * time.Millisecond),
				Cost: draw.IntRange(1, 9).Draw(t, "cost"),
			}}}
			h.both(func(_ int, b group) {
				r.Budget = b.budget
				require.NoError(t, b.store.Record(t.Context(), r))
			})
		},
		"reset": func(t *draw.T) {
			if draw.IntRange(0, 4).Draw(t, "seldom") > 0 || !h.with.accounts.At(0).Limits[0].FirstUse {
				return
			}
			r := store.ResetRequest{Account: account(t), Now: h.with.now, At: h.with.now.Add(time.Duration(draw.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)}
			h.both(func(_ int, b group) {
				r.Budget = b.budget
				require.NoError(t, b.store.Reset(t.Context(), r))
			})
		},
		"pause": func(t *draw.T) {
			if draw.IntRange(0, 9).Draw(t, "seldom") > 0 {
				return
			}
			r := store.PauseRequest{Now: h.with.now, Account: draw.SampledFrom([]string{"", "a0"}).Draw(t, "paused"),
				For: time.Duration(draw.IntRange(1, 1000).Draw(t, "ms")) * time.Millisecond, SlowStart: time.Millisecond}
			h.both(func(_ int, b group) {
				r.Budget = b.budget
				_, err := b.store.Pause(t.Context(), r)
				require.NoError(t, err)
			})
		},
		"lose": func(t *draw.T) {
			if draw.IntRange(0, 19).Draw(t, "seldom") > 0 || !h.with.accounts.At(0).Limits[0].Algorithm.IsLog() {
				return
			}
			// Of an algorithm without a log front.lua goes on with what it has, as long as it has.
			hash := draw.Bool().Draw(t, "the hash too")
			h.lost = true
			h.both(func(_ int, b group) {
				keys := []string{BaseKey(b.budget) + ":acct:a0"}
				for _, kind := range []string{":log:a0", ":stream:a0", ":in:a0", ":out:a0"} {
					keys = append(keys, BaseKey(b.budget)+kind)
					for part := 1; 1<<part <= limit.MaxUnits; part++ { // or what is old is still there, in one of them only
						keys = append(keys, fmt.Sprint(BaseKey(b.budget), kind, ":", part))
					}
				}
				if !hash {
					keys = keys[1:]
				}
				require.NoError(t, b.store.Client.Del(t.Context(), keys...).Err())
			})
		},
		"": func(t *draw.T) {
			// What differs once does so for long: to look at all each time takes most of the test.
			if h.taken++; h.taken%5 > 0 {
				return
			}
			h.compare(t)
			for i := range h.with.accounts.Len() {
				id := h.with.accounts.At(i).ID
				got, want := windows(t, h.with, id), windows(t, h.without, id)
				for name, value := range got {
					if other, found := want[name]; found { // or it is old
						require.Equal(t, other, value, "%s of %s", name, id)
					}
				}
			}
		},
	}
}

// What front.lua answers is what the rest of the script would have.
func TestWhatIsAnsweredInFrontIsTheSame(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, limits := range frontCases {
		for _, accounts := range []int{1, 5} {
			t.Run(fmt.Sprint(name, "/", accounts), func(t *testing.T) {
				t.Parallel()
				draw.Check(t, func(t *draw.T) {
					t.Repeat(newHistory(t, client, limits, accounts).actions())
				})
			})
		}
	}
}

// single is a booking of one unit, at any slot or at once.
func single(wait time.Duration) []store.BookRequest {
	return []store.BookRequest{{ID: store.NewBookingID(), Cost: 1, MaxWait: wait}}
}

// Who cannot wait for the first slot of all learns of it only where the index has it.
func TestInFrontALateSlotIsThatOfTheIndex(t *testing.T) {
	t.Parallel()
	l := limit.Limit{Max: 2, Window: time.Minute, Algorithm: limit.SlidingLog}
	a, err := store.NewAccounts(store.Account{ID: "a", Limits: []limit.Limit{l}}, store.Account{ID: "b", Limits: []limit.Limit{l}})
	require.NoError(t, err)
	h := historyOf(redistest.Start(t).Client(t), a)
	began := h.with.now
	for range 4 {
		h.bookUnder(t, 0, single(store.Forever))
		h.wait(time.Millisecond)
	}
	// What else was spent at its first slot leaves it the next one, and an earlier score.
	spent := store.RecordRequest{Account: a.At(0), ID: store.NewBookingID(), Now: h.with.now, Spent: []store.Spending{{Slot: began, Cost: 1}}}
	h.both(func(_ int, b group) {
		spent.Budget = b.budget
		require.NoError(t, b.store.Record(t.Context(), spent))
	})
	h.wait(time.Millisecond)
	h.bookUnder(t, 0, single(0))
	h.compare(t)
}

// Where limits of a GCRA rule again that ruled before others, but are booked under by nobody yet, the
// first one that waits behind the others' leaves time free before its own.
func TestInFrontFreeTimeOfGCRAIsNotLost(t *testing.T) {
	t.Parallel()
	var revisions []*store.Accounts
	for _, window := range []time.Duration{time.Second, 10 * time.Second, time.Second} {
		a, err := store.NewAccounts(store.Account{ID: "a", Limits: []limit.Limit{{Max: 10, Window: window, Burst: 1, Algorithm: limit.GCRA}}})
		require.NoError(t, err)
		revisions = append(revisions, a)
	}
	h := historyOf(redistest.Start(t).Client(t), revisions[0])
	h.revisions = revisions
	for revision := range 2 {
		for range 4 {
			h.bookUnder(t, revision, single(store.Forever))
			h.wait(time.Millisecond)
		}
	}
	h.bookUnder(t, 2, single(0))
	h.wait(time.Millisecond)
	h.bookUnder(t, 2, single(store.Forever))
	h.compare(t)
}

// Where a log is lost nothing leaves until the workers have said what they booked.
func TestInFrontTheLossOfALogIsNoticed(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for _, algorithm := range []limit.Algorithm{limit.SlidingLog, limit.StreamLog} {
		for _, before := range []int{1, 2, 20} {
			for _, count := range []int{1, 2, 40} {
				for cost := 1; cost <= 2; cost++ {
					a, err := store.NewAccounts(store.Account{ID: "a", Limits: []limit.Limit{{Max: 20, Window: time.Minute, Algorithm: algorithm}}})
					require.NoError(t, err)
					b := group{store: &Store{Client: client}, accounts: a, budget: store.NewBookingID().String(), now: time.UnixMicro(1795000000123457)}
					book := func(count, cost int) store.Booking {
						var requests []store.BookRequest
						for range count {
							requests = append(requests, store.BookRequest{ID: store.NewBookingID(), Budget: b.budget, Accounts: a, Now: b.now,
								MaxWait: store.Forever, Cost: cost})
						}
						return b.book(t, requests)[0]
					}
					book(before, 1)
					for _, kind := range []string{":log:a", ":log:a:1", ":log:a:2", ":log:a:3", ":log:a:4", ":stream:a"} {
						require.NoError(t, client.Del(t.Context(), BaseKey(b.budget)+kind).Err())
					}
					b.now = b.now.Add(time.Millisecond)
					require.GreaterOrEqual(t, book(count, cost).Slot.Sub(b.now), 2*time.Second,
						"%v: %d bookings of %d units after %d", algorithm, count, cost, before)
				}
			}
		}
	}
}
