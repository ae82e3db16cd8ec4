package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// cancelRules are about bookings that are cancelled.
var cancelRules = []rule{
	{"a cancelled slot goes to the next booker", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1], a)
		h.slots(a, 10*sec, 30*sec)
	}},
	{"a cancelled slot is to be had until it has passed", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1], a)
		h.at(10 * sec)
		again := h.slots(a, 10*sec)
		h.cancel(again[0], a)
		h.at(10*sec + us)
		h.slots(a, 30*sec)
	}},
	{"the earliest of several cancelled slots goes first", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec, 30*sec, 40*sec)
		h.cancel(all[3], a)
		h.cancel(all[1], a)
		h.slots(a, 10*sec, 30*sec, 50*sec)
	}},
	{"cancelling the last slot undoes it", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[2], a)
		h.slots(a, 20*sec)
		// The last slot and one before it, in either order.
		all = h.slots(a, 30*sec, 40*sec)
		h.cancel(all[0], a)
		h.cancel(all[1], a)
		h.used(a, 3, 0, 30*sec)
		h.slots(a, 30*sec)
	}},
	{"cancelling all leaves nothing", func(h *harness) {
		a := h.single(atMost(2, 10*sec), atMost(3, 60*sec))
		all := h.slots(a, 0, 0, 10*sec, 60*sec)
		for _, i := range []int{2, 0, 1, 3} {
			h.cancel(all[i], a)
		}
		h.used(a, 0, 2, never)
		h.slots(a, 0, 0, 10*sec, 60*sec)
	}},
	{"cancel after a passed slot gives the units back", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		first := h.slot(a, 2, 0)
		h.slot(a, 1, 0)
		h.at(sec)
		h.notBooked(a, 1, 0, 10*sec)
		h.cancel(first, a)
		h.used(a, 1, 2, 10*sec)
		h.slots(a, sec, sec, 10*sec)
	}},
	{"a cancelled slot that passes unused counts for nothing", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		all := h.slots(a, 0, 0, 10*sec, 10*sec)
		h.cancel(all[2], a)
		h.at(10 * sec)
		h.used(a, 2, 0, 20*sec)
		h.at(10*sec + us)
		h.used(a, 1, 1, 20*sec)
		h.slots(a, 10*sec+us, 20*sec)
	}},
	{"a cancelled slot goes to a booker whose cost is no greater", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		h.slot(a, 5, 0)
		second := h.slot(a, 3, 10*sec)
		h.slot(a, 5, 20*sec)
		h.cancel(second, a)
		h.slot(a, 4, 30*sec)
		h.slot(a, 3, 10*sec)
	}},
	{"what a cheaper booker leaves of a cancelled slot goes to the next", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		h.slot(a, 5, 0)
		second := h.slot(a, 5, 10*sec)
		h.slot(a, 5, 20*sec)
		h.cancel(second, a)
		part := h.slot(a, 2, 10*sec)
		h.slot(a, 2, 10*sec)
		h.slot(a, 2, 30*sec)
		h.slot(a, 1, 10*sec)
		// A part is cancelled as any slot is.
		h.cancel(part, a)
		h.slot(a, 1, 10*sec)
		h.slot(a, 1, 10*sec)
		h.slot(a, 1, 30*sec)
	}},
	{"cancelling twice is cancelling once", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1], a)
		h.cancel(all[1], a)
		h.slots(a, 10*sec)
		// The slot is another's now.
		h.cancel(all[1], a)
		h.slots(a, 30*sec)
	}},
	{"cancelling needs no accounts", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1], nil)
		h.slots(a, 10*sec)
	}},
	{"cancelling an ID that was never booked is no error", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.cancel(store.Booking{ID: store.NewBookingID(), Budget: h.budget}, a)
		h.slots(a, 0)
		h.cancel(store.Booking{ID: store.NewBookingID(), Budget: h.budget}, nil)
		h.used(a, 1, 0, 10*sec)
		h.slots(a, 10*sec)
	}},
	{"a booking is cancelled once, by Cancel or by Record", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1], a)
		h.slots(a, 10*sec)
		// The slot is another's now.
		r := h.recordRequest(a, spent(25*sec, 1))
		r.Replaces = all[1]
		require.NoError(h.t, h.store.Record(h.t.Context(), r))
		h.slots(a, 35*sec)
	}},
	{"a cancelled slot before the end of a pause is not given", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec, 30*sec)
		h.cancel(all[1], a)
		h.cancel(all[2], a)
		h.pause("a", 15*sec, 15*sec)
		h.slots(a, 20*sec, 40*sec)
	}},
	{"a booking that keeps to its longest wait takes a cancelled slot", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1], a)
		h.notBooked(a, 1, 10*sec-us, 10*sec)
		require.True(h.t, h.ask(h.request(a, 1, 10*sec)).Booked)
		h.slots(a, 30*sec)
	}},
	{"what counts is kept however far the log is booked ahead", func(h *harness) {
		const most = 10
		a := h.single(atMost(most, 100*sec))
		var all []store.Booking
		for i := range 8 * most {
			all = append(all, h.slot(a, 1, time.Duration(i/most)*100*sec))
		}
		for _, b := range all[64:] {
			h.cancel(b, a)
		}
		h.slots(a, 600*sec, 600*sec, 600*sec, 600*sec, 600*sec, 600*sec, 700*sec)
	}},
	{"what counts is kept for a clock that steps back", func(h *harness) {
		// By less than a window: what is older may be forgotten.
		const most = 100
		a := h.single(atMost(most, 10*sec))
		for range most {
			h.slot(a, 1, 0)
		}
		h.at(10*sec + us)
		h.cancel(h.slot(a, 1, 10*sec+us), a)
		h.at(5 * sec)
		h.used(a, most, 0, 10*sec)
		h.slots(a, 10*sec)
	}},
	{"cancelled bookings displace nothing that counts", func(h *harness) {
		// Of 100 units 40 are cancelled and booked again, three times over;
		// the other 60 are behind 160 units then, of which 40 count.
		const most = 100
		a := h.single(atMost(most, 10*sec))
		var last []store.Booking
		for i := range most {
			if b := h.slot(a, 1, 0); i >= 60 {
				last = append(last, b)
			}
		}
		for round := range 3 {
			now := time.Duration(round+1) * us
			h.at(now)
			again := last
			last = nil
			for _, b := range again[1:] {
				h.cancel(b, a)
				last = append(last, h.slot(a, 1, now))
			}
		}
		h.at(10*sec + 10*us)
		h.cancel(h.slot(a, 1, 10*sec+10*us), a)
		h.at(5 * sec)
		h.used(a, most, 0, 10*sec)
		h.slots(a, 10*sec)
	}},
	{"a log whose every booking is cancelled begins anew", func(h *harness) {
		// Five full windows pass and some of their bookings are cancelled
		// when they have left; then all that the log still holds. What a store
		// has forgotten of it must not be mistaken for what is booked next.
		const most = 20
		a := h.single(atMost(most, 10*sec))
		var all []store.Booking
		for i := range 5 * most {
			window := time.Duration(i/most) * 10 * sec
			h.at(window)
			all = append(all, h.slot(a, 1, window))
		}
		for _, b := range all[5:15] {
			h.cancel(b, a)
		}
		h.at(100 * sec)
		all = append(all, h.slot(a, 1, 100*sec))
		for _, b := range all[15:] {
			h.cancel(b, a)
		}
		for i := range 3 * most {
			h.slot(a, 1, time.Duration(10+i/most)*10*sec)
		}
	}},
	{"no window holds more than Max whatever is cancelled", func(h *harness) {
		// A log that trims by rank and forgets slots that it gave again lets 11
		// units of 5 through here.
		const most = 5
		a := h.single(atMost(most, 10*sec))
		random := rand.New(rand.NewPCG(1, 2))
		var all []store.Booking
		for i := range 1_500 {
			h.at(time.Duration(i) * 2 * sec)
			all = append(all, h.book(a, 1+random.IntN(2)))
			if random.IntN(3) == 0 {
				// One of the last few: it has left, or has not.
				at := len(all) - 1 - random.IntN(min(len(all), 12))
				h.cancel(all[at], a)
				all = slices.Delete(all, at, at+1)
			}
		}
		h.holds(all, atMost(most, 10*sec))
	}},
}
