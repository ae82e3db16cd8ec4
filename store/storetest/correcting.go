package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// correctRules are about bookings whose calls have spent something else, or have left at another time.
var correctRules = []rule{
	{"a booking counts when it left instead of at its slot", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		all := h.slots(a, 0, 0)
		h.at(3 * sec)
		h.correct(all[0], 1, 2*sec)
		h.correct(all[0], 1, 2*sec)
		h.used(a, 2, 0, 10*sec)
		h.at(10 * sec)
		h.used(a, 1, 1, 12*sec)
		h.slots(a, 10*sec, 12*sec)
	}},
	{"what a call has not spent is free at once", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		first := h.slot(a, 8, 0)
		h.at(sec)
		h.notBooked(a, 5, 0, 10*sec)
		h.correct(first, 3, 0)
		h.used(a, 3, 7, 10*sec)
		h.slot(a, 5, sec)
		h.slot(a, 2, sec)
		h.slot(a, 3, 10*sec)
	}},
	{"what comes back is free before callers that wait", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		first := h.slot(a, 10, 0)
		h.slot(a, 4, 10*sec)
		h.at(sec)
		h.correct(first, 1, 0)
		h.slot(a, 5, sec)
		h.slot(a, 1, sec)
		h.slot(a, 1, 11*sec)
	}},
	{"what a call has spent beyond its booking counts", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		first := h.slot(a, 2, 0)
		h.at(sec)
		h.correct(first, 25, 0)
		h.used(a, 25, 0, 10*sec)
		h.slot(a, 1, 10*sec)
	}},
	{"a call that was free counts for nothing", func(h *harness) {
		a := h.single(atMost(2, 10*sec), atMost(3, 60*sec))
		all := h.slots(a, 0, 0)
		h.at(sec)
		h.correct(all[0], 0, 0)
		h.used(a, 1, 1, 10*sec)
		h.correct(all[1], 0, 0)
		h.used(a, 0, 2, never)
		h.slots(a, sec, sec, 11*sec)
	}},
	{"to correct a booking again is to correct it from what it has become, however it is named", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		first := h.slot(a, 8, 0)
		h.at(sec)
		second := h.correct(first, 3, 0)
		require.Equal(h.t, 3, second.Cost)
		h.correct(first, 3, 0)
		h.used(a, 3, 7, 10*sec)
		h.correct(second, 5, 0)
		h.correct(first, 5, 0)
		h.used(a, 5, 5, 10*sec)
		h.correct(first, 0, 0)
		h.used(a, 0, 10, never)
		h.correct(second, 4, 0)
		h.used(a, 4, 6, 10*sec)
		h.correct(first, 4, 2*sec)
		h.at(10 * sec)
		h.used(a, 4, 6, 12*sec)
	}},
	{"a booking that was corrected is not cancelled, and one that was cancelled is recorded", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		first, second := h.slot(a, 4, 0), h.slot(a, 4, 0)
		h.at(sec)
		h.correct(first, 3, 0)
		h.cancel(first)
		h.used(a, 7, 3, 10*sec)
		h.cancel(second)
		h.used(a, 3, 7, 10*sec)
		h.correct(second, 2, 0)
		h.used(a, 5, 5, 10*sec)
	}},
	{"what has left every window is not recorded", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		first := h.slot(a, 4, 0)
		h.at(10 * sec)
		h.correct(first, 9, 0)
		h.used(a, 0, 10, never)
	}},
	{"a booking is corrected in its scopes alone", func(h *harness) {
		a := h.single(atMost(10, 10*sec), limit.Limit{Max: 5, Window: 20 * sec, Scope: "s"})
		first := h.bookWith(a, withScopes("s"), withCost(5))
		h.at(sec)
		h.correct(first, 2, 0)
		h.used(a, 2, 8, 10*sec)
		require.Equal(h.t, 2, h.usage(a)[0].Limits[1].Used)
		require.Equal(h.t, sec, since(h.bookWith(a, withScopes("s"), withCost(3)).Slot))
		require.Equal(h.t, 20*sec, since(h.bookWith(a, withScopes("s")).Slot))
	}},
	{"an account, its units and shared accounts are corrected together", func(h *harness) {
		a := h.metered(h.single(atMost(20, 10*sec)), store.Meter{Unit: "tokens", Limits: []limit.Limit{atMost(100, 10*sec)}})
		a, err := a.Sharing(h.each(atMost(10, 10*sec), "app").At(0))
		require.NoError(h.t, err)
		first := h.bookWith(a, withCost(4), withUnits(90))
		h.at(sec)
		h.correct(first, 1, 0, 30)
		require.Equal(h.t, sec, since(h.bookWith(a, withCost(9), withUnits(70)).Slot))
		require.Equal(h.t, 10*sec, since(h.bookWith(a, withUnits(1)).Slot), "of the shared account and of the tokens none is left")
	}},
	{"time that a bucket's call has not spent is free as far as it has not passed", func(h *harness) {
		l := limit.Limit{Max: 10, Window: 10 * sec, Algorithm: limit.GCRA, Burst: 5}
		a := h.single(l)
		first := h.slot(a, 5, 0) // it takes the time up to 5 s
		h.at(sec)
		h.correct(first, 2, 0) // and now up to 2 s
		h.used(a, 1, 4, 2*sec)
		h.slot(a, 4, sec)
		h.slot(a, 1, 2*sec)
	}},
	{"a booking in place of another has its room, and is no later", func(h *harness) {
		a := h.single(atMost(10, 10*sec))
		first := h.slot(a, 10, 0)
		second, third := h.slot(a, 10, 10*sec), h.slot(a, 10, 20*sec)
		h.at(sec)
		third = h.instead(a, third, 10, 20*sec)
		h.correct(first, 4, 0)
		h.notBooked(a, 6, 0, 30*sec)
		second = h.instead(a, second, 6, sec)
		h.cancel(third)
		h.used(a, 10, 0, 10*sec)
		h.cancel(second)
		h.used(a, 4, 6, 10*sec)
	}},
	{"a booking is cancelled for another also if that is not booked", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec)
		r := h.request(a, 1, 0)
		r.Instead = &store.CancelRequest{Booking: all[1]}
		require.False(h.t, h.ask(r).Booked)
		h.slots(a, 10*sec)
		spoilt := all[0]
		spoilt.Entry = "x"
		for _, booking := range []store.Booking{{}, {ID: all[0].ID, Budget: h.budget}, spoilt} {
			r.ID, r.Instead = store.NewBookingID(), &store.CancelRequest{Booking: booking}
			_, err := h.store.Book(h.t.Context(), r)
			h.malformed(err, "%v", booking)
		}
		h.ahead(a, 1)
	}},
	{"malformed corrections are refused", func(h *harness) {
		a := h.single(atMost(3, 10*sec))
		first := h.slot(a, 1, 0)
		for says, spoil := range map[string]func(*store.CorrectRequest){
			"no ID":                func(r *store.CorrectRequest) { r.Booking.ID = store.BookingID{} },
			"no budget":            func(r *store.CorrectRequest) { r.Booking.Budget = "" },
			"no account":           func(r *store.CorrectRequest) { r.Booking.Account = "" },
			"no slot":              func(r *store.CorrectRequest) { r.Booking.Slot = time.Time{} },
			"another store's name": func(r *store.CorrectRequest) { r.Booking.Entry = "x" },
			"a cost of -1":         func(r *store.CorrectRequest) { r.Cost = -1 },
			"too large a cost":     func(r *store.CorrectRequest) { r.Cost = limit.MaxUnits + 1 },
			"-1 units":             func(r *store.CorrectRequest) { r.Units = []int{-1} },
			"17 units":             func(r *store.CorrectRequest) { r.Units = make([]int, 17) },
			"a slot before 1970":   func(r *store.CorrectRequest) { r.Slot = time.Unix(-1, 0) },
			"a clock before 1970":  func(r *store.CorrectRequest) { r.Now = time.Unix(-1, 0) },
		} {
			r := store.CorrectRequest{Booking: first, Cost: 1, Now: h.clock}
			spoil(&r)
			_, err := h.store.Correct(h.t.Context(), r)
			h.malformed(err, says)
		}
		h.used(a, 1, 2, 10*sec)
	}},
}

// instead books units in place of a booking.
func (h *harness) instead(a *store.Accounts, b store.Booking, cost int, want time.Duration) store.Booking {
	h.t.Helper()
	r := h.request(a, cost, store.Forever)
	r.Instead = &store.CancelRequest{Booking: b}
	booked := h.ask(r)
	require.Equal(h.t, want, since(booked.Slot))
	return booked
}

// correct says what a booking has spent, and when it left.
func (h *harness) correct(b store.Booking, cost int, left time.Duration, units ...int) store.Booking {
	h.t.Helper()
	corrected, err := h.store.Correct(h.t.Context(), store.CorrectRequest{Booking: b, Cost: cost, Units: units, Slot: start.Add(left), Now: h.clock})
	require.NoError(h.t, err)
	return corrected
}
