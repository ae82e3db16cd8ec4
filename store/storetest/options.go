package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// An option is how a request differs from that of one unit without a scope.
type option func(*store.BookRequest)

func withScopes(scopes ...string) option { return func(r *store.BookRequest) { r.Scopes = scopes } }

func withReserve(thousandths int) option {
	return func(r *store.BookRequest) { r.Reserve = thousandths }
}

func withCost(cost int) option { return func(r *store.BookRequest) { r.Cost = cost } }

func withUnits(units ...int) option { return func(r *store.BookRequest) { r.Units = units } }

// metered lists accounts of which each has meters.
func (h *harness) metered(list *store.Accounts, meters ...store.Meter) *store.Accounts {
	h.t.Helper()
	a, err := list.Metering(meters...)
	require.NoError(h.t, err)
	return a
}

func withRevision(revision int) option { return func(r *store.BookRequest) { r.Revision = revision } }

// bookWith books a unit with the options, however long its wait.
func (h *harness) bookWith(a *store.Accounts, options ...option) store.Booking {
	h.t.Helper()
	r := h.request(a, 1, store.Forever)
	for _, w := range options {
		w(&r)
	}
	return h.ask(r)
}

// limitsDiffer demands that a booking is refused because the account's limits differ.
func (h *harness) limitsDiffer(a *store.Accounts, theirs int, options ...option) {
	h.t.Helper()
	r := h.request(a, 1, store.Forever)
	for _, w := range options {
		w(&r)
	}
	_, err := h.store.Book(h.t.Context(), r)
	differ, found := errors.AsType[*store.LimitsError](err)
	require.True(h.t, found, "%v", err)
	require.Equal(h.t, theirs, differ.Theirs[0].Max)
	require.Equal(h.t, a.At(0).Limits, differ.Ours)
	require.Equal(h.t, r.Revision, differ.Revision)
	require.Equal(h.t, h.budget, differ.Budget)
}

// optionRules are about scopes, shared accounts, reserves and revisions.
var optionRules = []rule{
	{"a limit of a scope covers its requests only", func(h *harness) {
		a := h.single(atMost(9, 10*sec), limit.Limit{Max: 1, Window: 10 * sec, Scope: "s"})
		require.Zero(h.t, since(h.bookWith(a, withScopes("s")).Slot))
		require.Zero(h.t, since(h.bookWith(a).Slot))
		require.Zero(h.t, since(h.bookWith(a, withScopes("other")).Slot))
		require.Equal(h.t, 10*sec, since(h.bookWith(a, withScopes("other", "s")).Slot))
		usage := h.usage(a)[0]
		require.Equal(h.t, []int{3, 1}, []int{usage.Limits[0].Used, usage.Limits[0].Ahead})
		require.Equal(h.t, []int{1, 1}, []int{usage.Limits[1].Used, usage.Limits[1].Ahead})
	}},
	{"a limit of another scope bounds no cost", func(h *harness) {
		a := h.single(atMost(9, 10*sec), limit.Limit{Max: 4, Window: 10 * sec, Scope: "s"})
		require.Equal(h.t, 9, a.MaxCost())
		require.Equal(h.t, 4, a.MaxCost("s", "other"))
		h.slot(a, 9, 0)
		r := h.request(a, 5, store.Forever)
		r.Scopes = []string{"s"}
		_, err := h.store.Book(h.t.Context(), r)
		require.ErrorContains(h.t, err, "more than 4")
	}},
	{"a request that waits for the limit of its scope delays no request without the scope", func(h *harness) {
		a := h.single(atMost(3, 10*sec), limit.Limit{Max: 1, Window: 30 * sec, Scope: "s"})
		for i := range 3 {
			require.Equal(h.t, 30*i, secs(h.bookWith(a, withScopes("s"))))
		}
		require.Zero(h.t, since(h.bookWith(a).Slot))
		require.Zero(h.t, since(h.bookWith(a).Slot))
		require.Equal(h.t, 10*sec, since(h.bookWith(a).Slot))
		// A window that a booking ahead is in has room for two more.
		h.at(21 * sec)
		require.Equal(h.t, 21*sec, since(h.bookWith(a).Slot))
		require.Equal(h.t, 21*sec, since(h.bookWith(a).Slot))
		require.Equal(h.t, 31*sec, since(h.bookWith(a).Slot))
	}},
	{"a booking is charged to shared accounts too", func(h *harness) {
		list := h.each(atMost(5, 10*sec), "a", "b")
		a, err := list.Sharing(h.each(atMost(3, 20*sec), "app").At(0), h.each(atMost(99, sec), "address").At(0))
		require.NoError(h.t, err)
		for range 3 {
			require.Zero(h.t, since(h.bookWith(a).Slot))
		}
		last := h.bookWith(a)
		require.Equal(h.t, 20*sec, since(last.Slot))
		h.used(h.each(atMost(3, 20*sec), "app"), 4, 0, 20*sec)
		h.used(h.each(atMost(99, sec), "address"), 4, 95, sec)
		// Who is not charged to them does not wait for them.
		require.Zero(h.t, since(h.bookWith(h.each(atMost(5, 10*sec), "a")).Slot))
		h.pause("app", 50*sec, 50*sec)
		require.Equal(h.t, 50*sec, since(h.bookWith(a).Slot))
	}},
	{"a booking is cancelled in shared accounts too", func(h *harness) {
		list := h.each(atMost(1, 10*sec), "a")
		a, err := list.Sharing(h.each(atMost(2, 10*sec), "app").At(0))
		require.NoError(h.t, err)
		first, second, third := h.bookWith(a), h.bookWith(a), h.bookWith(a)
		require.Equal(h.t, []int{0, 10, 20}, []int{secs(first), secs(second), secs(third)})
		h.cancel(second)
		require.Equal(h.t, 10, secs(h.bookWith(a)))
		h.cancel(third)
		h.at(25 * sec)
		h.used(h.each(atMost(2, 10*sec), "app"), 0, 2, never)
		require.Equal(h.t, 25, secs(h.bookWith(a)))
		h.used(h.each(atMost(2, 10*sec), "app"), 1, 1, 35*sec)
	}},
	{"a booking is charged to the account's meter too, with units of its own", func(h *harness) {
		tokens := store.Meter{Unit: "tokens", Limits: []limit.Limit{atMost(1000, 10*sec)}}
		a := h.metered(h.single(atMost(5, 10*sec)), tokens)
		require.Zero(h.t, since(h.bookWith(a, withUnits(600)).Slot))
		h.at(sec)
		last := h.bookWith(a, withUnits(400))
		require.Equal(h.t, sec, since(last.Slot))
		second := h.bookWith(a, withUnits(601))
		require.Equal(h.t, 11*sec, since(second.Slot), "both are in the way")
		h.used(h.single(atMost(5, 10*sec)), 3, 2, 10*sec)
		h.used(h.each(tokens.Limits[0], "a_tokens"), 1601, 0, 11*sec)
		// Who has none of them does not wait for them, but for those before it.
		require.Equal(h.t, 11*sec, since(h.bookWith(a, withUnits(0)).Slot))
		h.cancel(second)
		require.Equal(h.t, sec, since(h.bookWith(a, withUnits(0)).Slot))
		require.Equal(h.t, 10*sec, since(h.bookWith(a, withUnits(600)).Slot))
		// The calls are bounded as before: five are within 10 s.
		require.Equal(h.t, 11*sec, since(h.bookWith(a, withUnits(1)).Slot))
		h.pause("a_tokens", 50*sec, 51*sec)
		require.Equal(h.t, 51*sec, since(h.bookWith(a, withUnits(1)).Slot))
	}},
	{"each account of a list has meters of its own", func(h *harness) {
		a := h.metered(h.each(atMost(5, 10*sec), "a", "b"), store.Meter{Unit: "tokens", Limits: []limit.Limit{atMost(100, 10*sec)}},
			store.Meter{Unit: "points", Limits: []limit.Limit{atMost(3, 20*sec)}})
		first, second, third := h.bookWith(a, withUnits(60, 1)), h.bookWith(a, withUnits(60, 1)), h.bookWith(a, withUnits(60, 1))
		require.Zero(h.t, since(first.Slot))
		require.Zero(h.t, since(second.Slot))
		require.NotEqual(h.t, first.Account, second.Account)
		require.Equal(h.t, 10*sec, since(third.Slot))
		require.Zero(h.t, since(h.bookWith(a, withUnits(0, 2)).Slot))
		require.Equal(h.t, 20*sec, since(h.bookWith(a, withUnits(0, 3)).Slot))
		h.cancel(third)
		require.Zero(h.t, since(h.bookWith(a, withUnits(40, 0)).Slot))
	}},
	{"many bookings at once are charged with units alike", func(h *harness) {
		a := h.metered(h.single(atMost(100, 10*sec)), store.Meter{Unit: "tokens", Limits: []limit.Limit{atMost(1000, 10*sec)}})
		all := h.books(a, 40, withUnits(90))
		for i, b := range all {
			require.Equal(h.t, i/11*10, secs(b))
		}
		h.cancels(all[11:])
		h.used(h.each(atMost(1000, 10*sec), "a_tokens"), 990, 10, 10*sec)
		h.used(h.single(atMost(100, 10*sec)), 11, 89, 10*sec)
	}},
	{"what a meter was charged with is recorded as its own", func(h *harness) {
		a := h.metered(h.single(atMost(5, 10*sec)), store.Meter{Unit: "tokens", Limits: []limit.Limit{atMost(1000, 10*sec)}})
		meter := h.each(atMost(1000, 10*sec), "a_tokens")
		booked := h.bookWith(a, withUnits(600))
		h.record(meter, store.Spending{Slot: booked.Slot, Cost: 600, Entry: booked.Entry})
		h.used(meter, 600, 400, 10*sec)
		h.record(meter, store.Spending{Slot: booked.Slot, Cost: 300})
		h.used(meter, 900, 100, 10*sec)
		require.Equal(h.t, 10*sec, since(h.bookWith(a, withUnits(101)).Slot))
	}},
	{"units must be those of the meters", func(h *harness) {
		a := h.metered(h.single(atMost(5, 10*sec)), store.Meter{Unit: "tokens", Limits: []limit.Limit{atMost(1000, 10*sec)}})
		for _, units := range [][]int{nil, {1, 2}, {-1}, {1001}} {
			r := h.request(a, 1, store.Forever)
			r.Units = units
			_, err := h.store.Book(h.t.Context(), r)
			require.Error(h.t, err, "%v", units)
		}
		_, err := h.each(atMost(1, sec), "a_tokens").Metering(store.Meter{Unit: "tokens", Limits: []limit.Limit{atMost(1, sec)}})
		require.Error(h.t, err)
	}},
	{"a request with a smaller Reserve may leave before one with a larger Reserve", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		for i := range 32 {
			require.Equal(h.t, i/8*10, secs(h.bookWith(a, withReserve(200))))
		}
		require.Equal(h.t, []int{0, 0, 10}, []int{secs(h.bookWith(a)), secs(h.bookWith(a)), secs(h.bookWith(a))})
		require.Equal(h.t, 40, secs(h.bookWith(a, withReserve(200))), "its own order stands")
	}},
	{"the limits of the highest revision are in force", func(h *harness) {
		old, high := h.single(atMost(4, 10*sec)), h.single(atMost(2, 10*sec))
		require.Zero(h.t, h.bookWith(old).Effective)
		h.limitsDiffer(high, 4)
		b := h.bookWith(high, withRevision(3))
		require.Zero(h.t, since(b.Slot))
		require.Zero(h.t, b.Effective)
		require.Equal(h.t, 3, h.status().Revision)
		b = h.bookWith(old, withRevision(2))
		require.Equal(h.t, 10*sec, since(b.Slot), "two in 10 s rule")
		require.Equal(h.t, store.Card{Edition: store.Edition{Revision: 3}, Limits: high.At(0).Limits}, b.Effective)
		h.limitsDiffer(old, 2, withRevision(3))
		require.Equal(h.t, 10*sec, since(h.bookWith(old, withRevision(4)).Slot))
		require.Equal(h.t, 10*sec, since(h.bookWith(old, withRevision(4)).Slot), "four rule again")
	}},
	{"a limit that is raised or lowered keeps its log", func(h *harness) {
		h.slots(h.single(atMost(3, 10*sec)), 0, 0, 0)
		high, low := h.single(atMost(5, 10*sec)), h.single(atMost(2, 10*sec))
		require.Zero(h.t, since(h.bookWith(high, withRevision(1)).Slot))
		h.at(sec)
		require.Equal(h.t, sec, since(h.bookWith(high, withRevision(1)).Slot))
		require.Equal(h.t, 10*sec, since(h.bookWith(low, withRevision(2)).Slot), "of five, four leave at 10 s")
		require.Equal(h.t, 11*sec, since(h.bookWith(low, withRevision(2)).Slot))
	}},
	{"the slot of a cancelled booking is not given if a lowered limit has no room for it", func(h *harness) {
		old, low := h.single(atMost(3, 10*sec)), h.single(atMost(2, 10*sec))
		all := h.slots(old, 0, 0, 0, 10*sec, 10*sec, 10*sec)
		h.cancel(all[4])
		require.Equal(h.t, 20*sec, since(h.bookWith(low, withRevision(1)).Slot))
	}},
	{"a booking that is refused puts limits of a higher revision in force", func(h *harness) {
		for i, longest := range []time.Duration{sec, store.Never} {
			id := fmt.Sprint("a", i)
			low, high := h.each(atMost(1, 10*sec), id), h.each(atMost(2, 20*sec), id)
			refused := func(a *store.Accounts, revision int) store.Booking {
				r := h.request(a, 1, longest)
				r.Revision = revision
				b := h.ask(r)
				require.False(h.t, b.Booked)
				return b
			}
			if longest == store.Never {
				refused(high, 3)
				require.Zero(h.t, h.usage(low)[0].Limits[0].Used)
			}
			require.Zero(h.t, since(h.bookWith(low).Slot), "nothing was in force before")
			require.Equal(h.t, 10*sec, since(h.bookWith(low).Slot))
			before, revision := h.status().Version, i+1
			require.Equal(h.t, 20*sec, since(refused(high, revision).Slot))
			require.Equal(h.t, revision, h.status().Revision)
			require.Greater(h.t, h.status().Version, before)
			b := h.bookWith(low)
			require.Equal(h.t, 20*sec, since(b.Slot))
			require.Equal(h.t, store.Card{Edition: store.Edition{Revision: revision}, Limits: high.At(0).Limits}, b.Effective)
		}
	}},
	{"a Reserve or a Revision out of range is an error", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		for _, w := range []option{withReserve(-1), withReserve(1000), withRevision(-1)} {
			r := h.request(a, 1, store.Forever)
			w(&r)
			_, err := h.store.Book(h.t.Context(), r)
			require.Error(h.t, err)
			_, failed := errors.AsType[*store.StoreError](err)
			require.False(h.t, failed)
		}
		h.used(a, 0, 3, never)
	}},
}

// secs is the slot in whole seconds.
func secs(b store.Booking) int { return int(since(b.Slot) / sec) }
