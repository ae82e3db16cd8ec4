package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration/internal/redistest"
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

// A history books on two budgets, with lua/front.lua and without.
type history struct {
	with, without group
	booked        [][2]store.Booking
	revisions     []*store.Accounts // the accounts, with the limits of each revision
	lost          bool              // whether a log was
}

// newHistory draws the limits of an account, and how many accounts have them.
func newHistory(t *rapid.T, client redis.UniversalClient, limits []limit.Limit, accounts int) *history {
	var drawn []limit.Limit
	for _, l := range limits {
		l.Max = rapid.IntRange(1, 30).Draw(t, "max")
		l.Window = time.Duration(rapid.IntRange(1, 4000).Draw(t, "window")) * time.Millisecond
		if rapid.Bool().Draw(t, "long") {
			l.Max, l.Window = 20*l.Max, 20*l.Window
		}
		l.Margin = time.Duration(rapid.SampledFrom([]int{0, 1, 7, 300}).Draw(t, "margin")) * time.Millisecond
		if l.Algorithm == limit.GCRA {
			l.Burst = rapid.IntRange(1, l.Max).Draw(t, "burst")
			if rapid.Bool().Draw(t, "huge") {
				// The time of such a burst is not counted exactly.
				l.Max, l.Burst = 1_000_000_000*l.Max, 1_000_000_000*l.Burst
			}
		}
		drawn = append(drawn, l)
	}
	var list []store.Account
	for i := range accounts {
		list = append(list, store.Account{ID: fmt.Sprint("a", i), Limits: drawn})
	}
	a, err := store.NewAccounts(list...)
	if err != nil {
		t.Skip(err)
	}
	of := func() group {
		return group{store: &Store{Client: client}, accounts: a, budget: store.NewBookingID().String(), now: time.UnixMicro(1795000000123457)}
	}
	h := &history{with: of(), without: of(), revisions: []*store.Accounts{a}}
	h.without.script = script{name: "book", accounts: true}.with(a.Algorithms())
	return h
}

// book books on both budgets, and demands the same answers.
func (h *history) book(t *rapid.T, requests []store.BookRequest) {
	revision := rapid.IntRange(0, len(h.revisions)-1).Draw(t, "revision")
	of := func(b group) (answers []store.Booking) {
		b.accounts = h.revisions[revision]
		for i := range requests {
			requests[i].Revision = revision
			requests[i].Budget, requests[i].Accounts, requests[i].Now = b.budget, b.accounts, b.now
		}
		return b.book(t, requests)
	}
	got, want := of(h.with), of(h.without)
	for i, one := range got {
		if one.Booked {
			h.booked = append(h.booked, [2]store.Booking{one, want[i]})
		}
		one.Budget, one.Used = want[i].Budget, want[i].Used
		if h.with.accounts.Len() > 1 {
			// Another account's loss may be noticed by the next script only, which begins anew to
			// number the account's units.
			one.Version = want[i].Version
			if h.lost {
				one.Entry, one.Total = want[i].Entry, want[i].Total
			}
		}
		require.Equal(t, want[i].Slot.Sub(h.with.now), one.Slot.Sub(h.with.now), "the slot of booking %d", i)
		require.Equal(t, want[i], one)
	}
}

// both does something on both budgets.
func (h *history) both(do func(i int, b group)) {
	do(0, h.with)
	do(1, h.without)
}

func (h *history) wait(d time.Duration) {
	h.with.now, h.without.now = h.with.now.Add(d), h.without.now.Add(d)
}

func (h *history) actions() map[string]func(*rapid.T) {
	wait := func(t *rapid.T) {
		window := int(h.with.accounts.At(0).Limits[0].Window.Microseconds())
		most := rapid.SampledFrom([]int{1, 1000, 20_000, window / 8, window / 3, window, 900_000}).Draw(t, "most")
		h.wait(time.Duration(rapid.IntRange(1, min(most, 900_000)).Draw(t, "µs")) * time.Microsecond)
	}
	book := func(t *rapid.T) {
		// Most come alone and cost 1, and none that leaves at the last instant is booked in front.
		for range rapid.IntRange(1, 8).Draw(t, "one after the other") {
			if rapid.IntRange(0, 4).Draw(t, "later") > 0 {
				wait(t)
			}
			count := rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 2, 3, 9, 40}).Draw(t, "bookings")
			cost := rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 2, 3, 12, 1 << 40}).Draw(t, "cost")
			r := store.BookRequest{Cost: min(cost, h.with.accounts.MaxCost()), MaxWait: store.Forever}
			switch rapid.IntRange(0, 15).Draw(t, "kind") {
			case 0, 1:
				r.MaxWait = time.Duration(rapid.IntRange(0, 5000).Draw(t, "wait")) * time.Millisecond
			case 2:
				r.Reserve = 300
			case 3:
				r.Expect = h.with.now
			}
			var requests []store.BookRequest
			for range count {
				r.ID = store.NewBookingID()
				requests = append(requests, r)
			}
			h.book(t, requests)
		}
	}
	account := func(t *rapid.T) store.Account {
		return h.with.accounts.At(rapid.IntRange(0, h.with.accounts.Len()-1).Draw(t, "account"))
	}
	return map[string]func(*rapid.T){
		"book": book, "book more": book, "book still more": book, "book on": book,
		"revise": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "seldom") > 0 {
				return
			}
			var list []store.Account
			more := rapid.IntRange(0, 1).Draw(t, "more")
			for i := range h.with.accounts.Len() {
				account := h.with.accounts.At(i)
				account.Limits = slices.Clone(account.Limits)
				account.Limits[0].Max += more
				list = append(list, account)
			}
			a, err := store.NewAccounts(list...)
			require.NoError(t, err)
			h.revisions = append(h.revisions, a)
		},
		"wait long": func(t *rapid.T) {
			h.wait(time.Duration(rapid.IntRange(1, 30_000).Draw(t, "ms")) * time.Millisecond)
		},
		"cancel": func(t *rapid.T) {
			if len(h.booked) == 0 || rapid.IntRange(0, 2).Draw(t, "seldom") > 0 {
				return
			}
			of := rapid.SampledFrom(h.booked[max(0, len(h.booked)-50):]).Draw(t, "booking")
			h.both(func(i int, b group) {
				require.NoError(t, b.store.Cancel(t.Context(), store.CancelRequest{Booking: of[i], Now: b.now}))
			})
		},
		"record": func(t *rapid.T) {
			if rapid.IntRange(0, 4).Draw(t, "seldom") > 0 {
				return
			}
			r := store.RecordRequest{Account: account(t), ID: store.NewBookingID(), Now: h.with.now, Spent: []store.Spending{{
				Slot: h.with.now.Add(time.Duration(rapid.IntRange(-2000, 2000).Draw(t, "ms")) * time.Millisecond),
				Cost: rapid.IntRange(1, 9).Draw(t, "cost"),
			}}}
			h.both(func(_ int, b group) {
				r.Budget = b.budget
				require.NoError(t, b.store.Record(t.Context(), r))
			})
		},
		"reset": func(t *rapid.T) {
			if rapid.IntRange(0, 4).Draw(t, "seldom") > 0 || !h.with.accounts.At(0).Limits[0].FirstUse {
				return
			}
			r := store.ResetRequest{Account: account(t), Now: h.with.now, At: h.with.now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)}
			h.both(func(_ int, b group) {
				r.Budget = b.budget
				require.NoError(t, b.store.Reset(t.Context(), r))
			})
		},
		"pause": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "seldom") > 0 {
				return
			}
			r := store.PauseRequest{Now: h.with.now, Account: rapid.SampledFrom([]string{"", "a0"}).Draw(t, "paused"),
				For: time.Duration(rapid.IntRange(1, 1000).Draw(t, "ms")) * time.Millisecond, Apart: time.Millisecond}
			h.both(func(_ int, b group) {
				r.Budget = b.budget
				_, err := b.store.Pause(t.Context(), r)
				require.NoError(t, err)
			})
		},
		"lose": func(t *rapid.T) {
			if rapid.IntRange(0, 19).Draw(t, "seldom") > 0 || !h.with.accounts.At(0).Limits[0].Algorithm.IsLog() {
				return
			}
			// Of an algorithm without a log front.lua goes on with what it has, as long as it has.
			hash := rapid.Bool().Draw(t, "the hash too")
			h.lost = true
			h.both(func(_ int, b group) {
				keys := []string{baseKey(b.budget) + ":acct:a0"}
				for _, kind := range []string{":log:a0", ":stream:a0", ":in:a0", ":out:a0"} {
					for _, part := range []string{"", ":1", ":2", ":3", ":4", ":5", ":6"} {
						keys = append(keys, baseKey(b.budget)+kind+part)
					}
				}
				if !hash {
					keys = keys[1:]
				}
				require.NoError(t, b.store.Client.Del(t.Context(), keys...).Err())
			})
		},
		"": func(t *rapid.T) {
			var usages [2][]store.Usage
			h.both(func(i int, b group) {
				var err error
				usages[i], err = b.store.Usage(t.Context(), store.UsageRequest{Budget: b.budget, Accounts: b.accounts, Now: b.now})
				require.NoError(t, err)
			})
			require.Equal(t, usages[1], usages[0])
		},
	}
}

// What front.lua answers is what the rest of the script would have.
func TestWhatIsAnsweredInFrontIsTheSame(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, limits := range frontCases {
		for _, accounts := range []int{1, 5} {
			t.Run(fmt.Sprint(name, "/", accounts), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					t.Repeat(newHistory(t, client, limits, accounts).actions())
				})
			})
		}
	}
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
						require.NoError(t, client.Del(t.Context(), baseKey(b.budget)+kind).Err())
					}
					b.now = b.now.Add(time.Millisecond)
					require.GreaterOrEqual(t, book(count, cost).Slot.Sub(b.now), 2*time.Second,
						"%v: %d bookings of %d units after %d", algorithm, count, cost, before)
				}
			}
		}
	}
}
