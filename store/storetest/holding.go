package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// holdRules are about a store that keeps holds.
var holdRules = []rule{
	{"slots to come of a silent holder are free again, and no others", func(h *harness) {
		a, gone, alive := h.single(atMost(1, 10*sec)), h.holder(), h.holder()
		of := h.slots(a, 0, 10*sec, 20*sec, 30*sec)
		gone.holds(store.Held, of[0], of[1], of[3])
		alive.holds(store.Held, of[2])
		h.alive(alive, store.HeldFor-sec)
		h.at(store.HeldFor - time.Microsecond)
		alive.holds(store.Held)
		h.slots(a, 40*sec)
		h.at(store.HeldFor)
		alive.holds(store.Held)
		h.slots(a, 10*sec, 30*sec, 50*sec)
		gone.holds(store.GivenUp)
		h.alive(alive, 2*store.HeldFor)
		h.slots(a, 60*sec)
	}},
	{"a holder that has said that it is silent is given up so much later", func(h *harness) {
		a, gone, alive := h.single(atMost(1, time.Minute)), h.holder(), h.holder()
		of := h.slots(a, 0, time.Minute)
		gone.silent = 20 * sec
		gone.holds(store.Held, of[1])
		h.alive(alive, 20*sec+store.HeldFor-time.Microsecond)
		h.slots(a, 2*time.Minute)
		h.alive(alive, 2*sec)
		h.slots(a, time.Minute)
		gone.holds(store.GivenUp)
	}},
	{"who has said that it is silent finds others silent in vain", func(h *harness) {
		a, gone, alive := h.single(atMost(1, time.Minute)), h.holder(), h.holder()
		of := h.slots(a, 0, time.Minute)
		gone.holds(store.Held, of[1])
		alive.silent = 20 * sec
		alive.holds(store.Held)
		h.at(20 * sec)
		alive.holds(store.Held)
		h.slots(a, time.Minute)
	}},
	{"a holder is told when to look for the one that is to be heard of first", func(h *harness) {
		first, second := h.holder(), h.holder()
		ask := func(o *holder) store.HoldReply {
			reply, err := o.h.store.Hold(h.t.Context(), o.request())
			require.NoError(h.t, err)
			return reply
		}
		require.Zero(h.t, ask(first).Next, "there is no other")
		h.at(sec)
		next := ask(second).Next
		require.GreaterOrEqual(h.t, next, store.HeldFor-sec)
		require.Less(h.t, next, store.HeldFor)
	}},
	{"a holder that was given up has nothing that it names, until it has another name", func(h *harness) {
		a, stopped, alive := h.single(atMost(1, 10*sec)), h.holder(), h.holder()
		of := h.slots(a, 0, 10*sec, 20*sec)
		stopped.holds(store.Held, of[1])
		alive.holds(store.Held)
		h.alive(alive, store.HeldFor)
		stopped.holds(store.GivenUp, of[2])
		again := h.holder()
		again.holds(store.Held, of[2])
		h.alive(alive, 2*store.HeldFor)
		h.slots(a, 10*sec, 20*sec, 30*sec)
	}},
	{"a booking is cancelled once, by its holder or for it", func(h *harness) {
		for _, algorithm := range limit.Algorithms() {
			l := atMost(2, 10*sec)
			if l.Algorithm = algorithm; algorithm == limit.SubWindows {
				l.Resolution = sec
			}
			h.t.Log(algorithm)
			h.budget += "-" + algorithm.String()
			h.at(0)
			a, gone, alive := h.single(l), h.holder(), h.holder()
			var of []store.Booking
			for range 6 {
				of = append(of, h.book(a, 1))
			}
			gone.holds(store.Held, of[3], of[4])
			gone.cancels(of[4])
			alive.holds(store.Held)
			h.alive(alive, store.HeldFor)
			left := h.usage(a)
			gone.cancels(of[3])
			gone.cancels(of[4])
			require.Equal(h.t, left, h.usage(a))
		}
	}},
	{"a booking is cancelled before its holder is heard of", func(h *harness) {
		a, holder := h.single(atMost(1, 10*sec)), h.holder()
		of := h.slots(a, 0, 10*sec, 20*sec)
		holder.holds(store.Held, of[1])
		holder.cancels(of[2]) // while the question that names it is under way
		holder.holds(store.Held, of[2])
		h.slots(a, 20*sec)
	}},
	{"nobody is given up while nobody is heard", func(h *harness) {
		a, first, second := h.single(atMost(1, 10*sec)), h.holder(), h.holder()
		of := h.slots(a, 0, 10*sec, 20*sec)
		first.holds(store.Held, of[1])
		second.holds(store.Held, of[2])
		h.at(8 * sec) // the store was away
		first.holds(store.Held)
		second.holds(store.Held)
		h.slots(a, 30*sec)
	}},
	{"a holder that the store does not know names its bookings again", func(h *harness) {
		a, holder := h.single(atMost(1, 10*sec)), h.holder()
		of := h.slots(a, 0, 10*sec)
		holder.heard = start.Add(-sec)
		holder.holds(store.Unknown, of[1])
		holder.holds(store.Held)
	}},
	{"many slots are taken back in several steps", func(h *harness) {
		a, gone, alive := h.single(atMost(1, sec)), h.holder(), h.holder()
		var of []store.Booking
		for range 200 {
			of = append(of, h.book(a, 1))
		}
		gone.holds(store.Held, of...)
		h.alive(alive, store.HeldFor)
		require.Equal(h.t, 4*sec, since(h.book(a, 1).Slot))
	}},
	{"a request to hold that is malformed is refused", func(h *harness) {
		holder := h.holder()
		b := h.book(h.single(atMost(1, sec)), 1)
		for _, spoil := range []func(r *store.HoldRequest){
			func(r *store.HoldRequest) { r.Budget = "" },
			func(r *store.HoldRequest) { r.Holder = store.BookingID{} },
			func(r *store.HoldRequest) { r.Bookings = []store.Booking{{ID: b.ID, Account: b.Account}} },
			func(r *store.HoldRequest) { r.Bookings = make([]store.Booking, store.MaxHeld+1) },
			func(r *store.HoldRequest) { r.Silent = -time.Second },
			func(r *store.HoldRequest) { r.Now = time.UnixMicro(-1) },
		} {
			r := holder.request(b)
			spoil(&r)
			_, err := holder.h.store.Hold(h.t.Context(), r)
			require.Error(h.t, err)
			require.NotErrorAs(h.t, err, new(*store.StoreError))
		}
	}},
}

// A holder is one of the harness's budget, with when it heard of the store last.
type holder struct {
	h     *harness
	id    store.BookingID
	heard time.Time
	// silent is what it announces with the next question.
	silent time.Duration
}

func (h *harness) holder() *holder {
	h.t.Helper()
	o := &holder{h: h, id: store.NewBookingID()}
	reply, err := h.store.Hold(h.t.Context(), store.HoldRequest{Budget: h.budget + "-asked", Holder: o.id, Now: h.clock})
	require.NoError(h.t, err)
	if reply.Now.IsZero() {
		h.t.Skip("the store keeps no holds")
	}
	return o
}

func (o *holder) request(more ...store.Booking) store.HoldRequest {
	return store.HoldRequest{Budget: o.h.budget, Holder: o.id, Heard: o.heard, Bookings: more, Silent: o.silent, Now: o.h.clock}
}

// holds names more bookings, and demands what the store has then. It asks until there is no more to do.
func (o *holder) holds(want store.Holding, more ...store.Booking) {
	o.h.t.Helper()
	for {
		reply, err := o.h.store.Hold(o.h.t.Context(), o.request(more...))
		require.NoError(o.h.t, err)
		require.Equal(o.h.t, want, reply.State)
		require.Equal(o.h.t, since(o.h.clock), since(reply.Now))
		if o.heard = reply.Now; !reply.More {
			return
		}
	}
}

// cancels cancels a booking that it has named.
func (o *holder) cancels(b store.Booking) {
	o.h.t.Helper()
	require.NoError(o.h.t, o.h.store.Cancel(o.h.t.Context(), store.CancelRequest{Booking: b, Holder: o.id, Now: o.h.clock}))
}

// alive has a holder be heard of every second for a time from the clock on.
func (h *harness) alive(o *holder, length time.Duration) {
	h.t.Helper()
	began := h.clock
	for passed := time.Duration(0); passed <= length; passed += sec {
		h.clock = began.Add(passed)
		o.holds(store.Held)
	}
}
