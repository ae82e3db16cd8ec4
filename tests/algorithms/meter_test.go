package algorithms_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// A meterWorld books on one account, with the limits that are drawn, in one store
// or in several that must agree.
type meterWorld struct {
	stores   []ration.Store
	budget   string
	account  ration.Account
	accounts *store.Accounts
	revision int
	now      int64
	booked   []*meterBooking
}

type meterBooking struct {
	answers   []store.Booking
	scopes    []string
	cancelled bool
}

const meterBegin = 1_795_000_000_123_457

func newMeterWorld(t require.TestingT, stores []ration.Store, limits ...ration.Limit) *meterWorld {
	w := &meterWorld{stores: stores, budget: "meter-" + store.NewBookingID().String(), now: meterBegin}
	w.setLimits(t, limits)
	return w
}

func (w *meterWorld) setLimits(t require.TestingT, limits []ration.Limit) {
	var err error
	w.account = ration.Account{ID: "a", Limits: limits}
	w.accounts, err = store.NewAccounts(w.account)
	require.NoError(t, err)
}

// at sets the clock to a time since the beginning.
func (w *meterWorld) at(since time.Duration) { w.now = meterBegin + since.Microseconds() }

func (w *meterWorld) bookAs(rt require.TestingT, cost, keep int, maxWait time.Duration, scopes ...string) time.Duration {
	b := &meterBooking{scopes: scopes}
	r := store.BookRequest{
		ID: store.NewBookingID(), Budget: w.budget, Accounts: w.accounts, Cost: cost, Reserve: keep, Scopes: scopes,
		MaxWait: maxWait, Revision: w.revision, Now: time.UnixMicro(w.now),
	}
	var said []string
	for _, kept := range w.stores {
		answer, err := kept.Book(ctxOf(rt), r)
		require.NoError(rt, err)
		b.answers = append(b.answers, answer)
		said = append(said, fmt.Sprint(answer.Booked, answer.Account, answer.Slot.UnixMicro()-meterBegin))
	}
	for _, other := range said {
		require.Equal(rt, said[0], other)
	}
	if b.answers[0].Booked {
		w.booked = append(w.booked, b)
	}
	return time.Duration(b.slot()-meterBegin) * time.Microsecond
}

func (w *meterWorld) book(t require.TestingT, cost int) time.Duration {
	return w.bookAs(t, cost, 0, store.Forever)
}

func (b *meterBooking) slot() int64 { return b.answers[0].Slot.UnixMicro() }

func (w *meterWorld) cancel(t require.TestingT, b *meterBooking) {
	for i, kept := range w.stores {
		require.NoError(t, kept.Cancel(ctxOf(t), store.CancelRequest{Booking: b.answers[i], Now: time.UnixMicro(w.now)}))
	}
	b.cancelled = true
}

func (w *meterWorld) enter(t require.TestingT, slot int64, cost int, scopes ...string) {
	for _, kept := range w.stores {
		require.NoError(t, kept.Record(ctxOf(t), store.RecordRequest{
			ID: store.NewBookingID(), Budget: w.budget, Account: w.account, Scopes: scopes, Now: time.UnixMicro(w.now),
			Spent: []store.Spending{{Slot: time.UnixMicro(slot), Cost: cost}},
		}))
	}
}

// used demands of each limit what is used, and when the next is free.
func (w *meterWorld) used(t require.TestingT) []ration.LimitUsage {
	var all []ration.Usage
	for _, kept := range w.stores {
		u, err := kept.Usage(ctxOf(t), store.UsageRequest{Budget: w.budget, Accounts: w.accounts, Now: time.UnixMicro(w.now)})
		require.NoError(t, err)
		all = append(all, u[0])
		require.Equal(t, all[0].Limits, u[0].Limits)
	}
	return all[0].Limits
}

// sent returns the bookings that were not handed back and that a limit covers, in
// the order of slots.
func (w *meterWorld) sent(scope string) []meterCall {
	var calls []meterCall
	for _, b := range w.booked {
		if !b.cancelled && (scope == "" || slices.Contains(b.scopes, scope)) {
			calls = append(calls, meterCall{b.slot(), int64(b.answers[0].Cost)})
		}
	}
	slices.SortFunc(calls, func(a, b meterCall) int { return cmp.Compare(a.at, b.at) })
	return calls
}

// A meterCall arrives at the provider.
type meterCall struct{ at, cost int64 }

// mostIn returns the most units in any window.
func mostIn(calls []meterCall, window int64) (most int64) {
	for i, first := range calls {
		units := int64(0)
		for _, c := range calls[i:] {
			if c.at < first.at+window {
				units += c.cost
			}
		}
		most = max(most, units)
	}
	return most
}

// late lets each call arrive up to a margin after its slot.
func late(rt *rapid.T, calls []meterCall, margin int64) []meterCall {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].at += rapid.OneOf(rapid.SampledFrom([]int64{0, margin}), rapid.Int64Range(0, margin)).Draw(rt, "late")
	}
	slices.SortStableFunc(calls, func(a, b meterCall) int { return cmp.Compare(a.at, b.at) })
	return calls
}

func ctxOf(t require.TestingT) interface {
	Deadline() (time.Time, bool)
	Done() <-chan struct{}
	Err() error
	Value(any) any
} {
	switch t := t.(type) {
	case *testing.T:
		return t.Context()
	case *rapid.T:
		return t.Context()
	}
	panic("neither")
}

// meterKind bounds what happens to a meter.
type meterKind struct {
	limit                        func(*rapid.T) ration.Limit
	lanes, spends, changes, back bool
	keeps                        bool
}

// run does random things. The second limit makes a scope tell two lanes apart.
func (k meterKind) run(rt *rapid.T, stores []ration.Store) *meterWorld {
	limits := []ration.Limit{k.limit(rt)}
	if k.lanes {
		second := k.limit(rt)
		second.Scope = "x"
		limits = append(limits, second)
	}
	w := newMeterWorld(rt, stores, limits...)
	window, latest := limits[0].Window.Microseconds(), w.now
	actions := map[string]func(*rapid.T){
		"book": func(rt *rapid.T) {
			var scopes []string
			keep := 0
			if k.lanes && rapid.Bool().Draw(rt, "x") {
				scopes = []string{"x"}
			}
			if k.keeps && rapid.Bool().Draw(rt, "keeps") {
				keep = rapid.SampledFrom([]int{100, 333, 500}).Draw(rt, "keep")
			}
			wait := rapid.SampledFrom([]time.Duration{0, time.Millisecond, store.Forever, store.Forever}).Draw(rt, "wait")
			cost := rapid.IntRange(1, w.accounts.MaxCost(scopes...)).Draw(rt, "cost")
			for range rapid.IntRange(1, 4).Draw(rt, "times") {
				w.bookAs(rt, cost, keep, wait, scopes...)
			}
		},
		"step": func(rt *rapid.T) {
			w.now += rapid.SampledFrom([]int64{1, 7, window / 10, window / 3, window - 1, window, 3 * window, 20 * window}).Draw(rt, "by")
			latest = max(latest, w.now)
		},
		"usage": func(rt *rapid.T) { w.used(rt) },
		"pause": func(rt *rapid.T) {
			for _, kept := range w.stores {
				_, err := kept.Pause(rt.Context(), store.PauseRequest{
					Budget: w.budget, Account: "a", For: time.Duration(window) * time.Microsecond, Now: time.UnixMicro(w.now),
				})
				require.NoError(rt, err)
			}
		},
	}
	actions["cancel"] = func(rt *rapid.T) {
		if len(w.booked) == 0 {
			rt.Skip("nothing is booked")
		}
		w.cancel(rt, w.booked[len(w.booked)-1-rapid.IntRange(0, min(8, len(w.booked)-1)).Draw(rt, "ago")])
	}
	if k.back {
		actions["step back"] = func(*rapid.T) { w.now = max(w.now-window/4, latest-window) }
	}
	if k.spends {
		actions["record"] = func(rt *rapid.T) {
			ago := rapid.Int64Range(-window, window).Draw(rt, "ago")
			w.enter(rt, w.now-ago, rapid.SampledFrom([]int{1, 2, 5, 1_000_000}).Draw(rt, "units"))
		}
	}
	if k.changes {
		actions["change"] = func(rt *rapid.T) {
			var others []ration.Limit
			for _, l := range w.account.Limits {
				l.Max = max(1, l.Burst, rapid.IntRange(1, 3*l.Max).Draw(rt, "Max"))
				others = append(others, l)
			}
			w.revision++
			w.setLimits(rt, others)
		}
	}
	rt.Repeat(actions)
	w.used(rt)
	return w
}

// agree drives both stores with whatever may happen.
func agree(t *testing.T, limit func(*rapid.T) ration.Limit) {
	redis := &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute}
	for name, kind := range map[string]meterKind{
		"one lane": {spends: true, changes: true}, "lanes": {lanes: true, keeps: true, spends: true, changes: true},
		"a clock that steps back": {lanes: true, keeps: true, spends: true, back: true},
	} {
		kind.limit = limit
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { kind.run(rt, []ration.Store{new(ration.MemoryStore), redis}) })
		})
	}
}

// provide demands that a provider admits all, and that no window holds more than
// promised.
func provide(t *testing.T, limit func(*rapid.T) ration.Limit, admits func(ration.Limit, []meterCall) bool, promise func(ration.Limit) int64) {
	for name, kind := range map[string]meterKind{
		"one lane": {}, "lanes": {lanes: true, keeps: true}, "a clock that steps back": {lanes: true, keeps: true, back: true},
	} {
		kind.limit = limit
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := kind.run(rt, []ration.Store{new(ration.MemoryStore)})
				for _, l := range w.account.Limits {
					calls := w.sent(l.Scope)
					require.True(rt, admits(l, late(rt, calls, l.Margin.Microseconds())), "%v", l)
					require.LessOrEqual(rt, mostIn(calls, l.Window.Microseconds()), promise(l), "%v", l)
				}
			})
		})
	}
}

func bothStores(t *testing.T) []ration.Store {
	return []ration.Store{new(ration.MemoryStore), &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute}}
}

// slots books a unit each, and demands their slots.
func (w *meterWorld) slots(t *testing.T, want ...time.Duration) {
	t.Helper()
	var got []time.Duration
	for range want {
		got = append(got, w.book(t, 1))
	}
	require.Equal(t, want, got)
}

// uses demands what is used of the first limit.
func (w *meterWorld) uses(t *testing.T, used, remaining int, freeAt time.Duration) {
	t.Helper()
	u := w.used(t)[0]
	require.Equal(t, []int{used, remaining}, []int{u.Used + u.Ahead, u.Remaining})
	require.Equal(t, freeAt, time.Duration(u.FreeAt.UnixMicro()-meterBegin)*time.Microsecond)
}
