package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// oweRules are about units that a provider has counted and nobody here has spent.
var oweRules = []rule{
	{"what the provider has counted beyond the log is owed", func(d *desk) {
		a := d.single(atMost(5, 10*sec))
		d.slots(a, 0)
		d.at(sec)
		d.owes(a, 0, []int{3}, []int{1}, []int{2})
		d.used(a, 3, 2, 10*sec)
		d.slots(a, sec, sec, 10*sec, 11*sec)
	}},
	{"to tell the same again, or less, owes nothing", func(d *desk) {
		a := d.single(atMost(5, 10*sec))
		d.owes(a, 0, []int{3}, []int{0}, []int{3})
		d.owes(a, 0, []int{3}, []int{3}, []int{0})
		d.owes(a, 0, []int{2}, []int{3}, []int{0})
		d.owes(a, 0, []int{0}, []int{3}, []int{0})
		d.used(a, 3, 2, 10*sec)
	}},
	{"what is booked ahead is not counted yet", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.slots(a, 0, 0, 10*sec)
		d.owes(a, 0, []int{2}, []int{2}, []int{0})
		d.used(a, 3, 0, 10*sec)
	}},
	{"what has left the window since the request did counts", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.slots(a, 0, 0)
		d.at(10 * sec)
		d.slots(a, 10*sec)
		d.owes(a, 10*sec-us, []int{2}, []int{3}, []int{0})
		d.owes(a, 10*sec, []int{2}, []int{1}, []int{1})
		d.slots(a, 20*sec)
	}},
	{"what had left by the slot of the request is told", func(d *desk) {
		a := d.single(atMost(9, 10*sec))
		d.slots(a, 0, 0)
		d.at(sec)
		d.slots(a, sec)
		d.at(2 * sec)
		d.slots(a, 2*sec)
		debt, err := d.store.Reconcile(d.t.Context(), d.owing(a, sec, 4))
		require.NoError(d.t, err)
		require.Equal(d.t, store.LimitReconciliation{Counted: 4, AtSlot: 3}, debt.Limits[0])
	}},
	{"a slot that is still ahead is now", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.owes(a, 5*sec, []int{1}, []int{0}, []int{1})
		d.used(a, 1, 1, 10*sec)
	}},
	{"more can be owed than a limit allows", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.owes(a, 0, []int{7}, []int{0}, []int{7})
		d.slots(a, 10*sec, 10*sec, 20*sec)
	}},
	{"limits that share a log are owed the most that one of them lacks", func(d *desk) {
		a := d.single(atMost(2, sec), atMost(9, 10*sec))
		d.at(5 * sec)
		d.owes(a, 5*sec, []int{1, 4}, []int{0, 0}, []int{1, 4})
		d.owes(a, 5*sec, []int{1, 4}, []int{4, 4}, []int{0, 0})
		d.slots(a, 6*sec, 6*sec, 7*sec, 7*sec, 8*sec, 15*sec)
	}},
	{"of a limit that does not cover the request nothing is owed", func(d *desk) {
		search := atMost(2, 10*sec)
		search.Scope = "search"
		a := d.single(search, atMost(5, 10*sec))
		d.owes(a, 0, []int{2, 1}, []int{0, 0}, []int{2, 1})
		d.slots(a, 0, 0, 0, 0, 10*sec)
	}},
	{"a scope's debt is that of the requests of the scope", func(d *desk) {
		search := atMost(2, 10*sec)
		search.Scope = "search"
		a := d.single(search, atMost(5, 10*sec))
		r := d.owing(a, 0, 2, 0)
		r.Scopes = []string{"search"}
		debt, err := d.store.Reconcile(d.t.Context(), r)
		require.NoError(d.t, err)
		require.Equal(d.t, 2, debt.Limits[0].Missing)
		asked := d.request(a, 1, store.Forever)
		asked.Scopes = []string{"search"}
		require.Equal(d.t, 10*sec, since(d.ask(asked).Slot))
		d.slots(a, 0, 0)
	}},
	{"each limit that is counted is owed its own", func(d *desk) {
		hour, minute := atMost(5, 60*sec), atMost(5, 10*sec)
		hour.Algorithm, minute.Algorithm = limit.FixedWindow, limit.FixedWindow
		a := d.single(hour, minute)
		d.owes(a, 0, []int{4, 0}, []int{0, 0}, []int{4, 0})
		u := d.usage(a)[0].Limits
		require.Equal(d.t, []int{4, 0}, []int{u[0].Used, u[1].Used})
	}},
	{"every way of counting can owe", func(d *desk) {
		for i, algorithm := range []limit.Algorithm{limit.SlidingLog, limit.StreamLog, limit.FixedWindow,
			limit.SlidingWindow, limit.SubWindows, limit.GCRA} {
			l := atMost(10, 10*sec)
			if l.Algorithm = algorithm; algorithm == limit.GCRA {
				l.Burst = 10
			}
			a := d.each(l, "algorithm-"+string(rune('a'+i)))
			d.book(a, 3)
			d.owes(a, 0, []int{8}, []int{3}, []int{5})
			require.Equal(d.t, 8, d.usage(a)[0].Limits[0].Used, algorithm)
			d.owes(a, 0, []int{8}, []int{8}, []int{0})
			b := d.book(a, 2)
			require.Equal(d.t, start, b.Slot, algorithm)
			require.True(d.t, d.book(a, 1).Slot.After(start), algorithm)
			d.cancel(b, a) // what was booked before is still known by its name
		}
	}},
	{"what is owed is malformed", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		for name, spoil := range map[string]func(*store.ReconcileRequest){
			"no budget":     func(r *store.ReconcileRequest) { r.Budget = "" },
			"no account":    func(r *store.ReconcileRequest) { r.Account.ID = "" },
			"no limits":     func(r *store.ReconcileRequest) { r.Account.Limits, r.Counted = nil, nil },
			"no slot":       func(r *store.ReconcileRequest) { r.Slot = time.Time{} },
			"none counted":  func(r *store.ReconcileRequest) { r.Counted = nil },
			"negative":      func(r *store.ReconcileRequest) { r.Counted[0] = -1 },
			"far too large": func(r *store.ReconcileRequest) { r.Counted[0] = limit.MaxUnits + 1 },
		} {
			r := d.owing(a, 0, 1)
			spoil(&r)
			_, err := d.store.Reconcile(d.t.Context(), r)
			d.malformed(err, "%s", name)
		}
		d.used(a, 0, 2, never)
	}},
}

// owing is a request that tells what was counted when the answer to a request came
// that had its slot then.
func (d *desk) owing(a *store.Accounts, slot time.Duration, counted ...int) store.ReconcileRequest {
	return store.ReconcileRequest{Budget: d.budget, Account: a.At(0), Slot: start.Add(slot), Counted: counted, Now: d.clock}
}

// owes tells what was counted, and demands what the log had, and lacked.
func (d *desk) owes(a *store.Accounts, slot time.Duration, told, counted, owed []int) {
	d.t.Helper()
	debt, err := d.store.Reconcile(d.t.Context(), d.owing(a, slot, told...))
	require.NoError(d.t, err)
	require.Equal(d.t, d.clock.UnixMicro(), debt.Now.UnixMicro())
	require.Len(d.t, debt.Limits, len(told))
	for i, one := range debt.Limits {
		require.Equal(d.t, store.LimitReconciliation{Counted: counted[i], AtSlot: one.AtSlot, Missing: owed[i]}, one, "limit %d", i)
		require.LessOrEqual(d.t, one.AtSlot, one.Counted, "limit %d", i)
	}
}
