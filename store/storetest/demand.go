package storetest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A want is how a booking differs from that of one unit without a scope.
type want func(*store.BookRequest)

func scoped(scopes ...string) want { return func(r *store.BookRequest) { r.Scopes = scopes } }

func keeping(thousandths int) want { return func(r *store.BookRequest) { r.Reserve = thousandths } }

func revised(revision int) want { return func(r *store.BookRequest) { r.Revision = revision } }

// books books a unit as wanted, however long its wait.
func (d *desk) books(a *store.Accounts, wants ...want) store.Booking {
	d.t.Helper()
	r := d.request(a, 1, store.Forever)
	for _, w := range wants {
		w(&r)
	}
	return d.ask(r)
}

// differs demands that a booking is refused because the account's limits differ.
func (d *desk) differs(a *store.Accounts, theirs int, wants ...want) {
	d.t.Helper()
	r := d.request(a, 1, store.Forever)
	for _, w := range wants {
		w(&r)
	}
	_, err := d.store.Book(d.t.Context(), r)
	differ, found := errors.AsType[*store.LimitsError](err)
	require.True(d.t, found, "%v", err)
	require.Equal(d.t, theirs, differ.Theirs[0].Max)
	require.Equal(d.t, a.At(0).Limits, differ.Ours)
	require.Equal(d.t, r.Revision, differ.Revision)
	require.Equal(d.t, d.budget, differ.Budget)
}

// demandRules are about scopes, shared accounts, shares kept back and revisions.
var demandRules = []rule{
	{"a limit of a scope covers its requests only", func(d *desk) {
		a := d.single(atMost(9, 10*sec), limit.Limit{Max: 1, Window: 10 * sec, Scope: "s"})
		require.Zero(d.t, since(d.books(a, scoped("s")).Slot))
		require.Zero(d.t, since(d.books(a).Slot))
		require.Zero(d.t, since(d.books(a, scoped("other")).Slot))
		require.Equal(d.t, 10*sec, since(d.books(a, scoped("other", "s")).Slot))
		usage := d.usage(a)[0]
		require.Equal(d.t, 4, usage.Limits[0].Used)
		require.Equal(d.t, 2, usage.Limits[1].Used)
	}},
	{"a limit of another scope bounds no cost", func(d *desk) {
		a := d.single(atMost(9, 10*sec), limit.Limit{Max: 4, Window: 10 * sec, Scope: "s"})
		require.Equal(d.t, 9, a.MaxCost())
		require.Equal(d.t, 4, a.MaxCost("s", "other"))
		d.slot(a, 9, 0)
		r := d.request(a, 5, store.Forever)
		r.Scopes = []string{"s"}
		_, err := d.store.Book(d.t.Context(), r)
		require.ErrorContains(d.t, err, "more than 4")
	}},
	{"who waits in a scope holds no other up", func(d *desk) {
		a := d.single(atMost(3, 10*sec), limit.Limit{Max: 1, Window: 30 * sec, Scope: "s"})
		for i := range 3 {
			require.Equal(d.t, 30*i, secs(d.books(a, scoped("s"))))
		}
		require.Zero(d.t, since(d.books(a).Slot))
		require.Zero(d.t, since(d.books(a).Slot))
		require.Equal(d.t, 10*sec, since(d.books(a).Slot))
		// A window that a booking ahead is in has room for two more.
		d.at(21 * sec)
		require.Equal(d.t, 21*sec, since(d.books(a).Slot))
		require.Equal(d.t, 21*sec, since(d.books(a).Slot))
		require.Equal(d.t, 31*sec, since(d.books(a).Slot))
	}},
	{"a booking is charged to shared accounts too", func(d *desk) {
		list := d.each(atMost(5, 10*sec), "a", "b")
		a, err := list.Sharing(d.each(atMost(3, 20*sec), "app").At(0), d.each(atMost(99, sec), "address").At(0))
		require.NoError(d.t, err)
		for range 3 {
			require.Zero(d.t, since(d.books(a).Slot))
		}
		last := d.books(a)
		require.Equal(d.t, 20*sec, since(last.Slot))
		d.used(d.each(atMost(3, 20*sec), "app"), 4, 0, 20*sec)
		d.used(d.each(atMost(99, sec), "address"), 4, 95, sec)
		// Who is not charged to them does not wait for them.
		require.Zero(d.t, since(d.books(d.each(atMost(5, 10*sec), "a")).Slot))
		d.pause("app", 50*sec, 50*sec)
		require.Equal(d.t, 50*sec, since(d.books(a).Slot))
	}},
	{"a booking is handed back in shared accounts too", func(d *desk) {
		list := d.each(atMost(1, 10*sec), "a")
		a, err := list.Sharing(d.each(atMost(2, 10*sec), "app").At(0))
		require.NoError(d.t, err)
		first, second, third := d.books(a), d.books(a), d.books(a)
		require.Equal(d.t, []int{0, 10, 20}, []int{secs(first), secs(second), secs(third)})
		d.cancel(second, a)
		require.Equal(d.t, 10, secs(d.books(a)))
		d.cancel(third, a)
		d.at(25 * sec)
		d.used(d.each(atMost(2, 10*sec), "app"), 0, 2, never)
		require.Equal(d.t, 25, secs(d.books(a)))
		d.used(d.each(atMost(2, 10*sec), "app"), 1, 1, 35*sec)
	}},
	{"who keeps less overtakes who keeps more", func(d *desk) {
		a := d.single(atMost(10, 10*sec))
		for i := range 32 {
			require.Equal(d.t, i/8*10, secs(d.books(a, keeping(200))))
		}
		require.Equal(d.t, []int{0, 0, 10}, []int{secs(d.books(a)), secs(d.books(a)), secs(d.books(a))})
		require.Equal(d.t, 40, secs(d.books(a, keeping(200))), "its own order stands")
	}},
	{"limits of the highest revision rule", func(d *desk) {
		old, high := d.single(atMost(4, 10*sec)), d.single(atMost(2, 10*sec))
		require.Zero(d.t, d.books(old).Effective)
		d.differs(high, 4)
		b := d.books(high, revised(3))
		require.Zero(d.t, since(b.Slot))
		require.Zero(d.t, b.Effective)
		require.Equal(d.t, 3, d.status().Revision)
		b = d.books(old, revised(2))
		require.Equal(d.t, 10*sec, since(b.Slot), "two in 10 s rule")
		require.Equal(d.t, store.EffectiveLimits{Revision: 3, Limits: high.At(0).Limits}, b.Effective)
		d.differs(old, 2, revised(3))
		require.Equal(d.t, 10*sec, since(d.books(old, revised(4)).Slot))
		require.Equal(d.t, 10*sec, since(d.books(old, revised(4)).Slot), "four rule again")
	}},
	{"a limit that is raised or lowered keeps its log", func(d *desk) {
		d.slots(d.single(atMost(3, 10*sec)), 0, 0, 0)
		high, low := d.single(atMost(5, 10*sec)), d.single(atMost(2, 10*sec))
		require.Zero(d.t, since(d.books(high, revised(1)).Slot))
		d.at(sec)
		require.Equal(d.t, sec, since(d.books(high, revised(1)).Slot))
		require.Equal(d.t, 10*sec, since(d.books(low, revised(2)).Slot), "of five, four leave at 10 s")
		require.Equal(d.t, 11*sec, since(d.books(low, revised(2)).Slot))
	}},
	{"a slot that was handed back is not taken where a lowered limit has no room", func(d *desk) {
		old, low := d.single(atMost(3, 10*sec)), d.single(atMost(2, 10*sec))
		all := d.slots(old, 0, 0, 0, 10*sec, 10*sec, 10*sec)
		d.cancel(all[4], old)
		require.Equal(d.t, 20*sec, since(d.books(low, revised(1)).Slot))
	}},
	{"a keep or a revision out of range is an error", func(d *desk) {
		a := d.single(atMost(3, 10*sec))
		for _, w := range []want{keeping(-1), keeping(1000), revised(-1)} {
			r := d.request(a, 1, store.Forever)
			w(&r)
			_, err := d.store.Book(d.t.Context(), r)
			require.Error(d.t, err)
			_, failed := errors.AsType[*store.StoreError](err)
			require.False(d.t, failed)
		}
		d.used(a, 0, 3, never)
	}},
}

// secs is the slot in whole seconds.
func secs(b store.Booking) int { return int(since(b.Slot) / sec) }
