package storetest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// cancelRules are about bookings that are cancelled.
var cancelRules = []rule{
	{"the slot of a cancelled booking goes to the next booker", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1])
		h.slots(a, 10*sec, 30*sec)
	}},
	{"a slot is to be had again until it has passed", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1])
		h.at(10 * sec)
		again := h.slots(a, 10*sec)
		h.cancel(again[0])
		h.at(10*sec + us)
		h.slots(a, 30*sec)
	}},
	{"the earliest of several slots goes first", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec, 30*sec, 40*sec)
		h.cancel(all[3])
		h.cancel(all[1])
		h.slots(a, 10*sec, 30*sec, 50*sec)
	}},
	{"cancelling the last slot undoes it", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[2])
		h.slots(a, 20*sec)
		// The last slot and one before it, in either order.
		all = h.slots(a, 30*sec, 40*sec)
		h.cancel(all[0])
		h.cancel(all[1])
		h.used(a, 3, 0, 30*sec)
		h.slots(a, 30*sec)
	}},
	{"cancelling all leaves nothing", func(h *harness) {
		a := h.single(atMost(2, 10*sec), atMost(3, 60*sec))
		all := h.slots(a, 0, 0, 10*sec, 60*sec)
		for _, i := range []int{2, 0, 1, 3} {
			h.cancel(all[i])
		}
		h.used(a, 0, 2, never)
		h.slots(a, 0, 0, 10*sec, 60*sec)
	}},
	{"many are cancelled together, each once", func(h *harness) {
		one, two := h.each(atMost(100, 10*sec), "one"), h.each(atMost(60, 10*sec), "two")
		var all []store.CancelRequest
		for range 90 {
			all = append(all, store.CancelRequest{Booking: h.slot(one, 1, 0), Now: h.clock})
		}
		for range 50 {
			all = append(all, store.CancelRequest{Booking: h.slot(two, 1, 0), Now: h.clock})
		}
		lost := h.request(one, 1, store.Forever)
		all = append(all, store.CancelRequest{Booking: store.Booking{ID: lost.ID, Budget: lost.Budget}, Now: h.clock})
		rand.New(rand.NewPCG(62, 3)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		require.NoError(h.t, h.store.Cancel(h.t.Context(), append(all, all[:70]...)...))
		h.used(one, 0, 100, never)
		h.used(two, 0, 60, never)
		require.NoError(h.t, h.store.Cancel(h.t.Context()), "none is cancelled")
		spoilt := all[1]
		spoilt.Booking.ID = store.BookingID{}
		kept := h.slot(one, 1, 0)
		h.malformed(h.store.Cancel(h.t.Context(), store.CancelRequest{Booking: kept, Now: h.clock}, spoilt), "one of two has no ID")
		h.used(one, 1, 99, 10*sec)
	}},
	{"cancel after a passed slot gives the units back", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		first := h.slot(a, 2, 0)
		h.slot(a, 1, 0)
		h.at(sec)
		h.notBooked(a, 1, 0, 10*sec)
		h.cancel(first)
		h.used(a, 1, 2, 10*sec)
		h.slots(a, sec, sec, 10*sec)
	}},
	{"a cancelled booking counts for nothing before and after its slot", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		all := h.slots(a, 0, 0, 10*sec, 10*sec)
		h.cancel(all[2])
		h.used(a, 3, 0, 10*sec)
		h.at(10 * sec)
		h.used(a, 1, 1, 20*sec)
		h.at(10*sec + us)
		h.used(a, 1, 1, 20*sec)
		h.slots(a, 10*sec+us, 20*sec)
	}},
	{"a booking may cost more than the one that was cancelled if the limits have room", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		h.slot(a, 5, 0)
		second := h.slot(a, 3, 10*sec)
		h.slot(a, 5, 20*sec)
		h.cancel(second)
		h.slot(a, 4, 10*sec)
		h.slot(a, 1, 10*sec)
		h.slot(a, 1, 30*sec)
	}},
	{"when one is cancelled the order begins anew", func(h *harness) {
		a := h.single(atMost(5, 10*sec))
		h.slot(a, 5, 0)
		second := h.slot(a, 5, 10*sec)
		h.slot(a, 5, 20*sec)
		h.cancel(second)
		part := h.slot(a, 2, 10*sec)
		h.slot(a, 2, 10*sec)
		h.slot(a, 2, 30*sec)
		h.slot(a, 1, 30*sec) // there is room at 10 s, but those behind keep their order
		h.cancel(part)
		h.slot(a, 1, 10*sec)
		h.slot(a, 1, 10*sec)
		h.slot(a, 1, 10*sec)
		h.slot(a, 1, 30*sec)
	}},
	{"when one that has passed is cancelled the order stays", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		all := h.slots(a, 0, 0, 10*sec)
		h.at(sec)
		h.cancel(all[0])
		h.slots(a, 10*sec)
	}},
	{"cancelling twice is cancelling once", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1])
		h.cancel(all[1])
		h.slots(a, 10*sec)
		// The slot is another's now.
		h.cancel(all[1])
		h.slots(a, 30*sec)
	}},
	{"cancelling an ID that was never booked is no error", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.cancel(store.Booking{ID: store.NewBookingID(), Budget: h.budget})
		h.slots(a, 0)
		h.cancel(store.Booking{ID: store.NewBookingID(), Budget: h.budget})
		h.used(a, 1, 0, 10*sec)
		h.slots(a, 10*sec)
	}},
	{"of what was cancelled nothing before the end of a pause is given", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec, 30*sec)
		h.cancel(all[1])
		h.cancel(all[2])
		h.pause("a", 15*sec, 15*sec)
		h.slots(a, 15*sec, 40*sec)
	}},
	{"a booking that keeps to its longest wait gets the slot of a cancelled one", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		h.cancel(all[1])
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
			h.cancel(b)
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
		h.cancel(h.slot(a, 1, 10*sec+us))
		h.at(5 * sec)
		h.used(a, most, 0, 10*sec)
		h.slots(a, 10*sec+us) // the queue's order stays
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
				h.cancel(b)
				last = append(last, h.slot(a, 1, now))
			}
		}
		h.at(10*sec + 10*us)
		h.cancel(h.slot(a, 1, 10*sec+10*us))
		h.at(5 * sec)
		h.used(a, most, 0, 10*sec)
		h.slots(a, 10*sec+10*us)
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
			h.cancel(b)
		}
		h.at(100 * sec)
		all = append(all, h.slot(a, 1, 100*sec))
		for _, b := range all[15:] {
			h.cancel(b)
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
		calls := 1_500
		if testing.Short() {
			calls = 500
		}
		for i := range calls {
			h.at(time.Duration(i) * 2 * sec)
			all = append(all, h.book(a, 1+random.IntN(2)))
			if random.IntN(3) == 0 {
				// One of the last few: it has left, or has not.
				at := len(all) - 1 - random.IntN(min(len(all), 12))
				h.cancel(all[at])
				all = slices.Delete(all, at, at+1)
			}
		}
		h.holds(all, atMost(most, 10*sec))
	}},
}
