// Package holding tells a store which slots the callers of a budget wait for, so that the store takes them
// back if the process ends without a word.
package holding

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/store"
)

const (
	// every is how often a budget whose callers wait is heard of at least, if its first slot comes soon. Otherwise it is heard of when
	// half of the time until then has passed, and seldom is how often at least.
	every, seldom = time.Second, time.Minute
	// gather is how long bookings are gathered until the store is told of them, unless there are so many.
	gather, many = 500 * time.Millisecond, 32
	// sure is for how long after the store was asked no booking can have been given back: less than a store
	// waits for, as a caller sends its request a little later than it looks.
	sure = store.HeldFor - store.HeldFor/6
)

// From is how far ahead a slot must lie for the store to be told of it: until one that is nearer would be taken back it has passed,
// since a holder must be silent for store.HeldFor and is looked for a while later.
const From = 5 * time.Second

// Ask asks a store.
type Ask func(context.Context, store.HoldRequest) (store.HoldReply, error)

// A Hold is the slot of one caller.
type Hold struct {
	booking store.Booking
	due     time.Time       // when its slot comes, on this process's clock
	holder  store.BookingID // as which the store was told of it, or may have been; zero: it was not
	doubt   bool            // it is not known whether the store was told
	lost    func()          // called once the slot was given back; nil: it was
}

// Holds are the slots to come of one budget's callers. The zero Holds are none. They are safe for concurrent
// use.
type Holds struct {
	mu     sync.Mutex // protects all below
	ask    Ask
	budget string
	holder store.BookingID
	told   map[*Hold]struct{} // of which the store knows, or may know
	fresh  map[*Hold]struct{} // of which it does not know
	sure   time.Time          // until then no booking can have been given back, as the store's last answer tells
	heard  time.Time          // the store's clock in its answer
	next   time.Time          // when the store is asked next; zero: never
	timer  *time.Timer
	asking chan struct{} // closed when the question that is under way has its answer; nil: none is
}

// Add adds a slot that lies ahead, and is due then. It has the store asked in the background by ask, and calls lost, which must not block, if
// another process may have the slot.
func (h *Holds) Add(ask Ask, booking store.Booking, due time.Time, lost func()) *Hold {
	one := &Hold{booking: booking, due: due, lost: lost}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fresh == nil {
		h.told, h.fresh, h.holder = make(map[*Hold]struct{}), make(map[*Hold]struct{}), store.NewBookingID()
	}
	h.ask, h.budget = ask, booking.Budget
	h.fresh[one] = struct{}{}
	switch now := time.Now(); {
	case h.asking != nil: // what comes next is decided when it is answered
	case len(h.told)+len(h.fresh) == 1 || len(h.fresh) >= many:
		h.askAt(now)
	default:
		h.askAt(now.Add(gather))
	}
	return one
}

// Remove removes a slot that the caller waits for no longer. It returns the holder that the store may have it
// from, by which it must be cancelled; zero: none.
func (h *Holds) Remove(one *Hold) store.BookingID {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.fresh, one)
	delete(h.told, one)
	return one.holder
}

// IsLost reports whether another process may have a slot.
func (h *Holds) IsLost(one *Hold) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return one.lost == nil
}

// mostAsked is how often a caller asks at most whether a slot is its own: a question that was under way may be an
// old one.
const mostAsked = 2

// Confirm reports whether a slot that has come is still its caller's. It asks the store if that is not sure.
func (h *Holds) Confirm(ctx context.Context, one *Hold) bool {
	for asked := 0; ; asked++ {
		h.mu.Lock()
		isSure := one.holder == store.BookingID{} || time.Now().Before(h.sure)
		asking, isLost := h.asking, one.lost == nil
		if !isSure && !isLost && asking == nil && asked < mostAsked {
			asking = h.begin()
		}
		h.mu.Unlock()
		if isSure || asked == mostAsked || isLost {
			return isSure && !isLost
		}
		select {
		case <-asking:
		case <-ctx.Done():
			return false
		}
	}
}

// askAt has the store asked at an instant, if it would be asked later. It needs mu.
func (h *Holds) askAt(at time.Time) {
	if !h.next.IsZero() && !at.Before(h.next) {
		return
	}
	h.next = at
	if h.timer == nil {
		h.timer = time.AfterFunc(time.Until(at), h.expire)
	} else {
		h.timer.Reset(time.Until(at))
	}
}

// expire asks the store, unless it is being asked.
func (h *Holds) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = time.Time{}
	if h.asking == nil && len(h.told)+len(h.fresh) > 0 {
		h.begin()
	}
}

// begin asks the store, and returns a channel that is closed when it has answered, or has not in time. It
// needs mu, and no question may be under way.
func (h *Holds) begin() (answered chan struct{}) {
	done := make(chan struct{})
	h.asking = done
	r := store.HoldRequest{Budget: h.budget, Holder: h.holder}
	if len(h.told) > 0 {
		r.Heard = h.heard
	}
	var named []*Hold
	for one := range h.fresh {
		if len(named) == store.MaxHeld {
			break
		}
		named = append(named, one)
		r.Bookings = append(r.Bookings, one.booking)
		// Whatever comes of the question, the store may know of it.
		one.holder = h.holder
		delete(h.fresh, one)
		h.told[one] = struct{}{}
	}
	ask, asked, next := h.ask, time.Now(), h.untilNext()
	r.Silent = next - every
	go func() {
		reply, err := ask(context.Background(), r)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asking = nil
		h.answered(reply, err, asked, next, named)
		close(done)
	}()
	return done
}

// untilNext returns after what time the store is asked again. It needs mu.
func (h *Holds) untilNext() time.Duration {
	first := time.Now().Add(2 * seldom)
	for _, some := range [...]map[*Hold]struct{}{h.told, h.fresh} {
		for one := range some {
			if one.due.Before(first) {
				first = one.due
			}
		}
	}
	return max(every, min(seldom, time.Until(first)/2).Truncate(time.Microsecond))
}

// answered takes in the answer to a question that has named these, after which the next comes. It needs mu.
func (h *Holds) answered(reply store.HoldReply, err error, asked time.Time, next time.Duration, named []*Hold) {
	switch {
	case err != nil:
		for _, one := range named {
			one.doubt = true
		}
		h.nameAgain(named)
	case reply.State == store.GivenUp:
		// The store has noted nothing of these, but for what an earlier question may have named.
		h.nameAgain(slices.DeleteFunc(named, func(one *Hold) bool { return one.doubt }))
		for one := range h.told {
			lost := one.lost
			one.lost = nil
			lost()
		}
		clear(h.told)
		h.holder = store.NewBookingID()
		for one := range h.fresh {
			one.holder = store.BookingID{}
		}
	case reply.State == store.Unknown:
		h.nameAgain(slices.DeleteFunc(slices.Collect(maps.Keys(h.told)), func(one *Hold) bool { return slices.Contains(named, one) }))
		fallthrough
	default:
		for _, one := range named {
			one.doubt = false
		}
		h.sure, h.heard = asked.Add(next-every+sure), reply.Now
	}
	now := time.Now()
	switch {
	case len(h.told)+len(h.fresh) == 0:
	case err != nil:
		h.askAt(now.Add(gather))
	case reply.More || reply.State != store.Held || len(h.fresh) >= many:
		h.askAt(now)
	case len(h.fresh) > 0:
		h.askAt(now.Add(gather))
	default:
		if reply.Next > 0 {
			next = min(next, max(every, reply.Next))
		}
		h.askAt(asked.Add(next))
	}
}

// nameAgain has bookings named with the next question, as far as their callers still wait. It needs mu.
func (h *Holds) nameAgain(some []*Hold) {
	for _, one := range some {
		if _, waits := h.told[one]; waits {
			delete(h.told, one)
			h.fresh[one] = struct{}{}
		}
	}
}
