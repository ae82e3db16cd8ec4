package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// cancelRules are about bookings that are handed back.
var cancelRules = []rule{
	{"a cancelled slot goes to the next booker", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		d.cancel(all[1], a)
		d.slots(a, 10*sec, 30*sec)
	}},
	{"a cancelled slot is to be had until it has passed", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		d.cancel(all[1], a)
		d.at(10 * sec)
		again := d.slots(a, 10*sec)
		d.cancel(again[0], a)
		d.at(10*sec + us)
		d.slots(a, 30*sec)
	}},
	{"the earliest of several cancelled slots goes first", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec, 30*sec, 40*sec)
		d.cancel(all[3], a)
		d.cancel(all[1], a)
		d.slots(a, 10*sec, 30*sec, 50*sec)
	}},
	{"cancelling the last slot undoes it", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		d.cancel(all[2], a)
		d.slots(a, 20*sec)
		// The last slot and one before it, in either order.
		all = d.slots(a, 30*sec, 40*sec)
		d.cancel(all[0], a)
		d.cancel(all[1], a)
		d.used(a, 3, 0, 30*sec)
		d.slots(a, 30*sec)
	}},
	{"cancelling all leaves nothing", func(d *desk) {
		a := d.single(atMost(2, 10*sec), atMost(3, 60*sec))
		all := d.slots(a, 0, 0, 10*sec, 60*sec)
		for _, i := range []int{2, 0, 1, 3} {
			d.cancel(all[i], a)
		}
		d.used(a, 0, 2, never)
		d.slots(a, 0, 0, 10*sec, 60*sec)
	}},
	{"cancel after a passed slot gives the units back", func(d *desk) {
		a := d.single(atMost(3, 10*sec))
		first := d.slot(a, 2, 0)
		d.slot(a, 1, 0)
		d.at(sec)
		d.refused(a, 1, 0, 10*sec)
		d.cancel(first, a)
		d.used(a, 1, 2, 10*sec)
		d.slots(a, sec, sec, 10*sec)
	}},
	{"a cancelled slot that passes unused counts for nothing", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		all := d.slots(a, 0, 0, 10*sec, 10*sec)
		d.cancel(all[2], a)
		d.at(10 * sec)
		d.used(a, 2, 0, 20*sec)
		d.at(10*sec + us)
		d.used(a, 1, 1, 20*sec)
		d.slots(a, 10*sec+us, 20*sec)
	}},
	{"a cancelled slot goes to a booker whose cost is no greater", func(d *desk) {
		a := d.single(atMost(5, 10*sec))
		d.slot(a, 5, 0)
		second := d.slot(a, 3, 10*sec)
		d.slot(a, 5, 20*sec)
		d.cancel(second, a)
		d.slot(a, 4, 30*sec)
		d.slot(a, 3, 10*sec)
	}},
	{"what a cheaper booker leaves of a cancelled slot goes to the next", func(d *desk) {
		a := d.single(atMost(5, 10*sec))
		d.slot(a, 5, 0)
		second := d.slot(a, 5, 10*sec)
		d.slot(a, 5, 20*sec)
		d.cancel(second, a)
		part := d.slot(a, 2, 10*sec)
		d.slot(a, 2, 10*sec)
		d.slot(a, 2, 30*sec)
		d.slot(a, 1, 10*sec)
		// A part is handed back as any slot is.
		d.cancel(part, a)
		d.slot(a, 1, 10*sec)
		d.slot(a, 1, 10*sec)
		d.slot(a, 1, 30*sec)
	}},
	{"cancelling twice is cancelling once", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		d.cancel(all[1], a)
		d.cancel(all[1], a)
		d.slots(a, 10*sec)
		// The slot is another's now.
		d.cancel(all[1], a)
		d.slots(a, 30*sec)
	}},
	{"cancelling needs no accounts", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		d.cancel(all[1], nil)
		d.slots(a, 10*sec)
	}},
	{"cancelling an ID that was never booked is no error", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.cancel(store.Booking{ID: store.NewBookingID(), Budget: d.budget}, a)
		d.slots(a, 0)
		d.cancel(store.Booking{ID: store.NewBookingID(), Budget: d.budget}, nil)
		d.used(a, 1, 0, 10*sec)
		d.slots(a, 10*sec)
	}},
	{"a booking is handed back once whether it is cancelled or entered elsewhere first", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		d.cancel(all[1], a)
		d.slots(a, 10*sec)
		// The slot is another's now.
		r := d.entering(a, spent(25*sec, 1))
		r.Replaces = all[1]
		require.NoError(d.t, d.store.Record(d.t.Context(), r))
		d.slots(a, 35*sec)
	}},
	{"a cancelled slot before the end of a pause is not given", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec, 30*sec)
		d.cancel(all[1], a)
		d.cancel(all[2], a)
		d.pause("a", 15*sec, 15*sec)
		d.slots(a, 20*sec, 40*sec)
	}},
	{"a booking that keeps to its longest wait takes a cancelled slot", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		d.cancel(all[1], a)
		d.refused(a, 1, 10*sec-us, 10*sec)
		require.True(d.t, d.ask(d.request(a, 1, 10*sec)).Booked)
		d.slots(a, 30*sec)
	}},
	{"what counts is kept however far the log is booked ahead", func(d *desk) {
		const most = 10
		a := d.single(atMost(most, 100*sec))
		var all []store.Booking
		for i := range 8 * most {
			all = append(all, d.slot(a, 1, time.Duration(i/most)*100*sec))
		}
		for _, b := range all[64:] {
			d.cancel(b, a)
		}
		d.slots(a, 600*sec, 600*sec, 600*sec, 600*sec, 600*sec, 600*sec, 700*sec)
	}},
	{"what counts is kept for a clock that steps back", func(d *desk) {
		// By less than a window: what is older may be forgotten.
		const most = 100
		a := d.single(atMost(most, 10*sec))
		for range most {
			d.slot(a, 1, 0)
		}
		d.at(10*sec + us)
		d.cancel(d.slot(a, 1, 10*sec+us), a)
		d.at(5 * sec)
		d.used(a, most, 0, 10*sec)
		d.slots(a, 10*sec)
	}},
	{"what was handed back keeps nothing else from being kept", func(d *desk) {
		// Of 100 units 40 are handed back and booked again, three times over;
		// the other 60 are behind 160 units then, of which 40 count.
		const most = 100
		a := d.single(atMost(most, 10*sec))
		var last []store.Booking
		for i := range most {
			if b := d.slot(a, 1, 0); i >= 60 {
				last = append(last, b)
			}
		}
		for round := range 3 {
			now := time.Duration(round+1) * us
			d.at(now)
			again := last
			last = nil
			for _, b := range again[1:] {
				d.cancel(b, a)
				last = append(last, d.slot(a, 1, now))
			}
		}
		d.at(10*sec + 10*us)
		d.cancel(d.slot(a, 1, 10*sec+10*us), a)
		d.at(5 * sec)
		d.used(a, most, 0, 10*sec)
		d.slots(a, 10*sec)
	}},
	{"a log that is handed back whole begins anew", func(d *desk) {
		// Five full windows pass and some of their bookings are handed back
		// when they have left; then all that the log still holds. What a store
		// has forgotten of it must not be mistaken for what is booked next.
		const most = 20
		a := d.single(atMost(most, 10*sec))
		var all []store.Booking
		for i := range 5 * most {
			window := time.Duration(i/most) * 10 * sec
			d.at(window)
			all = append(all, d.slot(a, 1, window))
		}
		for _, b := range all[5:15] {
			d.cancel(b, a)
		}
		d.at(100 * sec)
		all = append(all, d.slot(a, 1, 100*sec))
		for _, b := range all[15:] {
			d.cancel(b, a)
		}
		for i := range 3 * most {
			d.slot(a, 1, time.Duration(10+i/most)*10*sec)
		}
	}},
	{"no window holds more than Max whatever is handed back", func(d *desk) {
		// A log that trims by rank and forgets handed-over slots lets 11
		// units of 5 through here.
		const most = 5
		a := d.single(atMost(most, 10*sec))
		random := rand.New(rand.NewPCG(1, 2))
		var all []store.Booking
		for i := range 1_500 {
			d.at(time.Duration(i) * 2 * sec)
			all = append(all, d.book(a, 1+random.IntN(2)))
			if random.IntN(3) == 0 {
				// One of the last few: it has left, or has not.
				at := len(all) - 1 - random.IntN(min(len(all), 12))
				d.cancel(all[at], a)
				all = slices.Delete(all, at, at+1)
			}
		}
		d.holds(all, atMost(most, 10*sec))
	}},
}
