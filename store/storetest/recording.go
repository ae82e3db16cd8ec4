package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// enterRules are about units that were spent without a booking.
var enterRules = []rule{
	{"what was spent without a booking is used", func(d *desk) {
		a := d.single(atMost(3, 10*sec))
		d.at(2 * sec)
		d.enter(a, spent(0, 2), spent(2*sec, 1))
		d.used(a, 3, 0, 10*sec)
		d.slots(a, 10*sec, 10*sec, 12*sec)
	}},
	{"what was spent waits for nothing and all later bookings for it", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.slots(a, 0, 0)
		d.at(sec)
		d.enter(a, spent(sec, 5))
		d.used(a, 7, 0, 11*sec)
		d.slots(a, 11*sec, 11*sec, 21*sec)
	}},
	{"what was spent on several limits counts in each", func(d *desk) {
		a := d.single(atMost(2, sec), atMost(3, 10*sec))
		d.enter(a, spent(0, 2))
		d.slots(a, sec, 10*sec, 10*sec, 11*sec)
	}},
	{"entering the same ID again enters nothing", func(d *desk) {
		a := d.single(atMost(5, 10*sec))
		r := d.enter(a, spent(0, 1), spent(0, 1))
		require.NoError(d.t, d.store.Record(d.t.Context(), r))
		d.used(a, 2, 3, 10*sec)
		d.enter(a, spent(0, 1), spent(0, 1))
		d.used(a, 4, 1, 10*sec)
	}},
	{"a booking that is still in the log is not entered", func(d *desk) {
		a := d.single(atMost(5, 10*sec))
		all := d.slots(a, 0, 0)
		kept := store.Spending{Slot: all[1].Slot, Cost: 1, Entry: all[1].Entry}
		d.enter(a, kept, spent(0, 1))
		d.used(a, 3, 2, 10*sec)
	}},
	{"a booking that is no longer in the log is entered", func(d *desk) {
		a := d.single(atMost(5, 10*sec))
		elsewhere := *d
		elsewhere.budget += "-lost"
		all := elsewhere.slots(a, 0, 0)
		var lost []store.Spending
		for _, b := range all {
			lost = append(lost, store.Spending{Slot: b.Slot, Cost: b.Cost, Entry: b.Entry})
		}
		d.enter(a, lost...)
		d.used(a, 2, 3, 10*sec)
	}},
	{"a booking is entered where it left instead of at its slot", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		all := d.slots(a, 0, 0)
		d.at(3 * sec)
		r := d.entering(a, spent(2*sec, 1))
		r.Replaces = all[0]
		require.NoError(d.t, d.store.Record(d.t.Context(), r))
		require.NoError(d.t, d.store.Record(d.t.Context(), r))
		d.used(a, 2, 0, 10*sec)
		d.at(10 * sec)
		d.used(a, 1, 1, 12*sec)
		d.slots(a, 10*sec, 12*sec)
	}},
	{"a booking that was entered elsewhere is handed back once", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		r := d.entering(a, spent(25*sec, 1))
		r.Replaces = all[1]
		require.NoError(d.t, d.store.Record(d.t.Context(), r))
		d.slots(a, 10*sec)
		// The slot is another's now.
		d.cancel(all[1], a)
		d.slots(a, 35*sec)
	}},
	{"what is entered in another scope is there when a booking is handed back for it", func(d *desk) {
		a := d.single(atMost(1, 10*sec), limit.Limit{Max: 1, Window: 10 * sec, Scope: "s"})
		all := d.slots(a, 0, 10*sec)
		d.cancel(all[0], a)
		r := d.entering(a, spent(0, 3))
		r.Scopes, r.Replaces = []string{"s"}, all[1]
		require.NoError(d.t, d.store.Record(d.t.Context(), r))
		// Beside another lane a slot that was handed back counts until it has passed.
		d.used(a, 5, 0, 20*sec)
		d.at(10*sec + us)
		d.used(a, 0, 1, never)
	}},
	{"what has left every window is not entered", func(d *desk) {
		a := d.single(atMost(2, sec), atMost(3, 10*sec))
		d.at(10 * sec)
		d.enter(a, spent(0, 3), spent(us, 1))
		require.Equal(d.t, 1, d.usage(a)[0].Limits[1].Used)
		d.slots(a, 10*sec, 10*sec, 11*sec)
	}},
	{"what was spent ahead is used", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.enter(a, spent(5*sec, 1), spent(15*sec, 1))
		d.used(a, 2, 0, 25*sec)
		d.slots(a, 25*sec)
	}},
	{"what is entered out of order never frees early", func(d *desk) {
		// A log may only grow at its end: how much later is the store's.
		a := d.single(atMost(2, 10*sec))
		d.at(sec)
		d.slots(a, sec)
		d.enter(a, spent(0, 1))
		b := d.book(a, 1)
		require.GreaterOrEqual(d.t, since(b.Slot), 10*sec)
	}},
	{"an account that has spent is passed over", func(d *desk) {
		a := d.each(atMost(1, 10*sec), "a", "b")
		d.slots(a, 0, 0)
		d.at(5 * sec)
		d.enter(d.single(atMost(1, 10*sec)), spent(5*sec, 1))
		d.taken(a, "b", 10*sec)
		d.taken(a, "a", 15*sec)
	}},
	{"1,000 spendings are entered in one step", func(d *desk) {
		a := d.single(atMost(1_000, time.Hour))
		var many []store.Spending
		for i := range 1_000 {
			many = append(many, spent(time.Duration(i)*us, 1))
		}
		d.at(time.Second)
		d.enter(a, many...)
		d.used(a, 1_000, 0, time.Hour)
		d.slots(a, time.Hour, time.Hour+us)
	}},
	{"malformed spendings are refused before any is entered", func(d *desk) {
		a := d.single(atMost(3, 10*sec))
		for says, spoil := range map[string]func(*store.RecordRequest){
			"no ID":                 func(r *store.RecordRequest) { r.ID = store.BookingID{} },
			"no budget":             func(r *store.RecordRequest) { r.Budget = "" },
			"a brace in the budget": func(r *store.RecordRequest) { r.Budget += "}" },
			"no account":            func(r *store.RecordRequest) { r.Account.ID = "" },
			"a colon in an account": func(r *store.RecordRequest) { r.Account.ID = "a:b" },
			"no limits":             func(r *store.RecordRequest) { r.Account.Limits = nil },
			"a Max of -3":           func(r *store.RecordRequest) { r.Account.Limits = []limit.Limit{atMost(-3, sec)} },
			"a window of 0":         func(r *store.RecordRequest) { r.Account.Limits = []limit.Limit{atMost(3, 0)} },
			"no spendings":          func(r *store.RecordRequest) { r.Spent = nil },
			"1,001 spendings":       func(r *store.RecordRequest) { r.Spent = make([]store.Spending, 1_001) },
			"a cost of 0":           func(r *store.RecordRequest) { r.Spent = append(r.Spent, spent(0, 0)) },
			"a cost of -1":          func(r *store.RecordRequest) { r.Spent = append(r.Spent, spent(0, -1)) },
			"too large a cost":      func(r *store.RecordRequest) { r.Spent = append(r.Spent, spent(0, limit.MaxUnits+1)) },
			"a total of -1":         func(r *store.RecordRequest) { r.Total = spent(0, -1) },
			"too large a total":     func(r *store.RecordRequest) { r.Total = spent(0, limit.MaxUnits+1) },
			"no slot":               func(r *store.RecordRequest) { r.Spent = append(r.Spent, store.Spending{Cost: 1}) },
			"a slot before 1970": func(r *store.RecordRequest) {
				r.Spent = append(r.Spent, store.Spending{Slot: time.Unix(-1, 0), Cost: 1})
			},
			"a clock before 1970": func(r *store.RecordRequest) { r.Now = time.Unix(-1, 0) },
		} {
			r := d.entering(a, spent(0, 1))
			spoil(&r)
			d.malformed(d.store.Record(d.t.Context(), r), says)
		}
		d.used(a, 0, 3, never)
		d.slots(a, 0)
	}},
}

// spent is units that left at an instant.
func spent(at time.Duration, cost int) store.Spending {
	return store.Spending{Slot: start.Add(at), Cost: cost}
}

// entering is a request to enter what was spent of the first account.
func (d *desk) entering(a *store.Accounts, all ...store.Spending) store.RecordRequest {
	return store.RecordRequest{ID: store.NewBookingID(), Budget: d.budget, Account: a.At(0), Spent: all, Now: d.clock}
}

func (d *desk) enter(a *store.Accounts, all ...store.Spending) store.RecordRequest {
	d.t.Helper()
	r := d.entering(a, all...)
	require.NoError(d.t, d.store.Record(d.t.Context(), r))
	return r
}
