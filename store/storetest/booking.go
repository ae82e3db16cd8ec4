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
	{"Max units leave at once and the next a window after the first", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		h.slots(a, 0, 0, 0, 10*sec, 10*sec, 10*sec, 20*sec)
		h.at(12 * sec)
		h.slots(a, 20*sec, 20*sec, 30*sec)
	}},
	{"the clock of a store in this process is the monotonic one", func(h *harness) {
		if h.store.At(time.Now()).IsZero() {
			return
		}
		r := h.request(h.single(atMost(1, sec)), 1, 0)
		r.Now = time.Time{}
		before := time.Now()
		b, err := h.store.Book(h.t.Context(), r)
		after := time.Now()
		require.NoError(h.t, err)
		at := h.store.At(b.Now)
		require.False(h.t, at.Before(before.Add(-us)) || at.After(after), "%v is not between %v and %v", at, before, after)
	}},
	{"a slot is a window after the unit it waits for", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		h.slots(a, 0)
		h.at(us)
		h.slots(a, us)
		h.at(4 * sec)
		h.slots(a, 4*sec, 10*sec, 10*sec+us, 14*sec, 20*sec)
	}},
	{"a unit is free when its window ends and not before", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.slots(a, 0)
		h.at(10*sec - us)
		h.notBooked(a, 1, 0, 10*sec)
		h.at(10 * sec)
		b := h.ask(h.request(a, 1, 0))
		require.True(h.t, b.Booked)
		require.Equal(h.t, 10*sec, since(b.Slot))
	}},
	{"no slot comes before the lead of a request", func(h *harness) {
		a, lead := h.single(atMost(2, 10*sec)), h.request(h.single(atMost(2, 10*sec)), 1, store.Forever)
		lead.Lead = func() time.Duration { return 3 * sec }
		booked := func(r store.BookRequest, slot time.Duration) {
			h.t.Helper()
			r.ID, r.Now = store.NewBookingID(), h.clock
			b := h.ask(r)
			require.True(h.t, b.Booked)
			require.Equal(h.t, slot, since(b.Slot))
		}
		booked(lead, 3*sec)
		h.slots(a, 3*sec)
		h.at(9 * sec)
		booked(lead, 13*sec)
		h.at(20 * sec)
		booked(lead, 23*sec)
		lead.MaxWait = 2 * sec
		require.False(h.t, h.ask(lead).Booked, "it does not wait for so long")
	}},
	{"the account that is free first after the lead is charged", func(h *harness) {
		a := h.each(atMost(1, 10*sec), "a", "b")
		h.slots(a, 0)
		h.at(5 * sec)
		h.slots(a, 5*sec)
		r := h.request(a, 1, store.Forever)
		r.Lead = func() time.Duration { return 8 * sec }
		first := h.ask(r)
		require.Equal(h.t, 13*sec, since(first.Slot))
		r.ID = store.NewBookingID()
		second := h.ask(r)
		require.Equal(h.t, 15*sec, since(second.Slot))
		require.NotEqual(h.t, first.Account, second.Account)
	}},
	{"two bookings in one microsecond are two", func(h *harness) {
		h.slots(h.single(atMost(1, time.Millisecond)), 0, time.Millisecond)
		h.slots(h.each(atMost(2, sec), "b"), 0, 0, sec)
	}},
	{"a booking takes as many units as it costs", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		h.slot(a, 4, 0)
		h.at(sec)
		h.slot(a, 6, sec)
		h.at(2 * sec)
		h.slot(a, 3, 10*sec)
		h.slot(a, 1, 10*sec)
		h.slot(a, 1, 11*sec)
		h.slot(a, 10, 21*sec)
	}},
	{"a cheap booking doesn't overtake an expensive one", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		h.slot(a, 4, 0)
		h.slot(a, 3, 10*sec)
		h.slot(a, 1, 10*sec)
		h.at(5 * sec)
		h.slot(a, 1, 10*sec)
	}},
	{"several limits all hold", func(h *harness) {
		a := h.single(atMost(2, sec), atMost(3, 10*sec))
		h.slots(a, 0, 0, sec, 10*sec, 10*sec, 11*sec, 20*sec)
	}},
	{"several limits all or nothing", func(h *harness) {
		a := h.single(atMost(2, sec), atMost(3, 10*sec), atMost(100, 60*sec))
		h.slots(a, 0, 0)
		h.notBooked(a, 1, sec-us, sec)
		h.at(sec)
		h.slots(a, sec)
		h.notBooked(a, 1, 9*sec-us, 10*sec)
		for i, want := range []int{1, 3, 3} {
			require.Equal(h.t, want, h.usage(a)[0].Limits[i].Used+h.usage(a)[0].Limits[i].Ahead, "limit %d", i)
		}
		h.slots(a, 10*sec)
	}},
	{"a booking beyond the longest wait is not recorded", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.slots(a, 0)
		h.notBooked(a, 1, 0, 10*sec)
		h.notBooked(a, 1, 10*sec-us, 10*sec)
		h.notBooked(a, 1, 10*sec-time.Nanosecond, 10*sec)
		b := h.ask(h.request(a, 1, 10*sec))
		require.True(h.t, b.Booked, "a slot at the end of the longest wait is booked")
		require.Equal(h.t, 10*sec, since(b.Slot))
	}},
	{"a longest wait of more than a year is one", func(h *harness) {
		a := h.single(atMost(1, 366*day))
		h.slots(a, 0, 366*day)
		h.notBooked(a, 1, 366*day, 2*366*day)
		h.notBooked(a, 1, 400*day, 2*366*day)
		h.notBooked(a, 1, 2*366*day-us, 2*366*day)
		require.True(h.t, h.ask(h.request(a, 1, store.Forever-1)).Booked)
	}},
	{"a denied call isn't counted", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.slots(a, 0, 0)
		for i := range 100 {
			h.at(time.Duration(i) * 50 * time.Millisecond)
			h.notBooked(a, 1, sec, 10*sec)
		}
		h.used(a, 2, 0, 10*sec)
		h.slots(a, 10*sec)
	}},
	{"an ID that was denied can be booked", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.slots(a, 0)
		r := h.request(a, 1, 0)
		require.False(h.t, h.ask(r).Booked)
		require.False(h.t, h.ask(r).Booked)
		r.MaxWait = 10 * sec
		require.True(h.t, h.ask(r).Booked)
		h.slots(a, 20*sec)
	}},
	{"budgets do not share logs", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.slots(a, 0, 10*sec)
		other := *h
		other.budget += ":log:a"
		other.slots(a, 0, 10*sec)
	}},
	{"order is kept when the clock steps back", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		h.at(8 * sec)
		h.slots(a, 8*sec)
		h.at(5 * sec)
		h.slots(a, 8*sec, 8*sec, 18*sec)
	}},
	{"slots are the same however the log has grown", func(h *harness) {
		// 1,000 entries in ten windows, three of them booked ahead; the first
		// windows pass meanwhile.
		const most = 100
		a := h.single(atMost(most, 10*sec))
		for i := range 10 * most {
			window := time.Duration(i/most) * 10 * sec
			h.at(max(0, window-3*10*sec))
			h.slot(a, 1, window)
		}
	}},
	{"no window holds more than Max whatever the costs", func(h *harness) {
		const most = 7
		a := h.single(atMost(most, 10*sec))
		var all []store.Booking
		for i := range 300 {
			h.at(time.Duration(i) * 1_300 * time.Millisecond)
			all = append(all, h.book(a, 1+i*i%5))
		}
		h.holds(all, atMost(most, 10*sec))
	}},
	{"Total counts the units that the account's log was given", func(h *harness) {
		a, other := h.single(atMost(9, 10*sec)), h.each(atMost(9, 10*sec), "b")
		first := h.book(a, 2).Total
		require.Positive(h.t, first)
		grown := func(cost int) int64 { return h.book(a, cost).Total - first }
		require.Equal(h.t, int64(3), grown(3))
		h.book(other, 1) // each account has its own
		h.at(sec)
		h.reconcile(a, 0, []int{7}, []int{5}, []int{2})
		last := h.book(a, 1)
		require.Equal(h.t, int64(6), last.Total-first, "what was reconciled is counted")
		h.cancel(last)
		require.Equal(h.t, int64(7), grown(1), "what was cancelled was given all the same")
		h.at(30 * sec)
		require.Equal(h.t, int64(8), grown(1), "and so was what has left the window")
	}},
	{"Total is zero for a request that is counted apart", func(h *harness) {
		search := atMost(2, 10*sec)
		search.Scope = "search"
		a := h.single(search, atMost(9, 10*sec))
		require.Positive(h.t, h.bookWith(a).Total)
		require.Zero(h.t, h.bookWith(a, withScopes("search")).Total)
		require.Zero(h.t, h.bookWith(a, withReserve(100)).Total)
	}},
}

// holds demands that no window of any alignment holds more than the limit.
func (h *harness) holds(all []store.Booking, l limit.Limit) {
	h.t.Helper()
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b store.Booking) int { return a.Slot.Compare(b.Slot) })
	units, first := 0, 0
	for _, b := range all {
		units += b.Cost
		for !all[first].Slot.Add(l.Window).After(b.Slot) {
			units -= all[first].Cost
			first++
		}
		require.LessOrEqual(h.t, units, l.Max, "in the window that ends at %v", since(b.Slot))
	}
}
