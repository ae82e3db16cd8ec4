package storetest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

const (
	us  = time.Microsecond
	sec = time.Second
	day = 24 * time.Hour
)

// bookingRules are about one account.
var bookingRules = []rule{
	{"Max units leave at once and the next a window after the first", func(d *desk) {
		a := d.single(atMost(3, 10*sec))
		d.slots(a, 0, 0, 0, 10*sec, 10*sec, 10*sec, 20*sec)
		d.at(12 * sec)
		d.slots(a, 20*sec, 20*sec, 30*sec)
	}},
	{"a slot is a window after the unit it waits for", func(d *desk) {
		a := d.single(atMost(3, 10*sec))
		d.slots(a, 0)
		d.at(us)
		d.slots(a, us)
		d.at(4 * sec)
		d.slots(a, 4*sec, 10*sec, 10*sec+us, 14*sec, 20*sec)
	}},
	{"a unit is free when its window ends and not before", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.slots(a, 0)
		d.at(10*sec - us)
		d.refused(a, 1, 0, 10*sec)
		d.at(10 * sec)
		b := d.ask(d.request(a, 1, 0))
		require.True(d.t, b.Booked)
		require.Equal(d.t, 10*sec, since(b.Slot))
	}},
	{"two bookings in one microsecond are two", func(d *desk) {
		d.slots(d.single(atMost(1, time.Millisecond)), 0, time.Millisecond)
		d.slots(d.each(atMost(2, sec), "b"), 0, 0, sec)
	}},
	{"a booking takes as many units as it costs", func(d *desk) {
		a := d.single(atMost(10, 10*sec))
		d.slot(a, 4, 0)
		d.at(sec)
		d.slot(a, 6, sec)
		d.at(2 * sec)
		d.slot(a, 3, 10*sec)
		d.slot(a, 1, 10*sec)
		d.slot(a, 1, 11*sec)
		d.slot(a, 10, 21*sec)
	}},
	{"a cheap booking doesn't overtake an expensive one", func(d *desk) {
		a := d.single(atMost(5, 10*sec))
		d.slot(a, 4, 0)
		d.slot(a, 3, 10*sec)
		d.slot(a, 1, 10*sec)
		d.at(5 * sec)
		d.slot(a, 1, 10*sec)
	}},
	{"several limits all hold", func(d *desk) {
		a := d.single(atMost(2, sec), atMost(3, 10*sec))
		d.slots(a, 0, 0, sec, 10*sec, 10*sec, 11*sec, 20*sec)
	}},
	{"several limits all or nothing", func(d *desk) {
		a := d.single(atMost(2, sec), atMost(3, 10*sec), atMost(100, 60*sec))
		d.slots(a, 0, 0)
		d.refused(a, 1, sec-us, sec)
		d.at(sec)
		d.slots(a, sec)
		d.refused(a, 1, 9*sec-us, 10*sec)
		for i, want := range []int{1, 3, 3} {
			require.Equal(d.t, want, d.usage(a)[0].Limits[i].Used, "limit %d", i)
		}
		d.slots(a, 10*sec)
	}},
	{"a booking beyond the longest wait is not entered", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.slots(a, 0)
		d.refused(a, 1, 0, 10*sec)
		d.refused(a, 1, 10*sec-us, 10*sec)
		d.refused(a, 1, 10*sec-time.Nanosecond, 10*sec)
		b := d.ask(d.request(a, 1, 10*sec))
		require.True(d.t, b.Booked, "a slot at the end of the longest wait is booked")
		require.Equal(d.t, 10*sec, since(b.Slot))
	}},
	{"a longest wait of more than a year is one", func(d *desk) {
		a := d.single(atMost(1, 366*day))
		d.slots(a, 0, 366*day)
		d.refused(a, 1, 366*day, 2*366*day)
		d.refused(a, 1, 400*day, 2*366*day)
		d.refused(a, 1, 2*366*day-us, 2*366*day)
		require.True(d.t, d.ask(d.request(a, 1, store.Forever-1)).Booked)
	}},
	{"a denied call isn't counted", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.slots(a, 0, 0)
		for i := range 100 {
			d.at(time.Duration(i) * 50 * time.Millisecond)
			d.refused(a, 1, sec, 10*sec)
		}
		d.used(a, 2, 0, 10*sec)
		d.slots(a, 10*sec)
	}},
	{"an ID that was denied can be booked", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.slots(a, 0)
		r := d.request(a, 1, 0)
		require.False(d.t, d.ask(r).Booked)
		require.False(d.t, d.ask(r).Booked)
		r.MaxWait = 10 * sec
		require.True(d.t, d.ask(r).Booked)
		d.slots(a, 20*sec)
	}},
	{"budgets do not share logs", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.slots(a, 0, 10*sec)
		other := *d
		other.budget += ":log:a"
		other.slots(a, 0, 10*sec)
	}},
	{"order is kept when the clock steps back", func(d *desk) {
		a := d.single(atMost(3, 10*sec))
		d.at(8 * sec)
		d.slots(a, 8*sec)
		d.at(5 * sec)
		d.slots(a, 8*sec, 8*sec, 18*sec)
	}},
	{"slots are the same however the log has grown", func(d *desk) {
		// 1,000 entries in ten windows, three of them booked ahead; the first
		// windows pass meanwhile.
		const most = 100
		a := d.single(atMost(most, 10*sec))
		for i := range 10 * most {
			window := time.Duration(i/most) * 10 * sec
			d.at(max(0, window-3*10*sec))
			d.slot(a, 1, window)
		}
	}},
	{"no window holds more than Max whatever the costs", func(d *desk) {
		const most = 7
		a := d.single(atMost(most, 10*sec))
		var all []store.Booking
		for i := range 300 {
			d.at(time.Duration(i) * 1_300 * time.Millisecond)
			all = append(all, d.book(a, 1+i*i%5))
		}
		d.holds(all, atMost(most, 10*sec))
	}},
	{"Total tells how many units the account's log was given", func(d *desk) {
		a, other := d.single(atMost(9, 10*sec)), d.each(atMost(9, 10*sec), "b")
		first := d.book(a, 2).Total
		require.Positive(d.t, first)
		grown := func(cost int) int64 { return d.book(a, cost).Total - first }
		require.Equal(d.t, int64(3), grown(3))
		d.book(other, 1) // each account has its own
		d.at(sec)
		d.owes(a, 0, []int{7}, []int{5}, []int{2})
		last := d.book(a, 1)
		require.Equal(d.t, int64(6), last.Total-first, "what was reconciled is counted")
		d.cancel(last, a)
		require.Equal(d.t, int64(6), grown(1), "a cancelled slot keeps its place")
		require.Equal(d.t, int64(7), grown(1))
		d.at(30 * sec)
		require.Equal(d.t, int64(8), grown(1), "what has left the window was given all the same")
	}},
	{"Total is not told of a request that is counted apart", func(d *desk) {
		search := atMost(2, 10*sec)
		search.Scope = "search"
		a := d.single(search, atMost(9, 10*sec))
		require.Positive(d.t, d.books(a).Total)
		require.Zero(d.t, d.books(a, scoped("search")).Total)
		require.Zero(d.t, d.books(a, keeping(100)).Total)
	}},
}

// holds demands that no window of any alignment holds more than the limit.
func (d *desk) holds(all []store.Booking, l limit.Limit) {
	d.t.Helper()
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b store.Booking) int { return a.Slot.Compare(b.Slot) })
	units, first := 0, 0
	for _, b := range all {
		units += b.Cost
		for !all[first].Slot.Add(l.Window).After(b.Slot) {
			units -= all[first].Cost
			first++
		}
		require.LessOrEqual(d.t, units, l.Max, "in the window that ends at %v", since(b.Slot))
	}
}
