package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
)

// If the reply of a script was lost, it is in doubt whether its bookings were entered.
// A caller that asks for such a booking again, or cancels it, first resolves this: the
// script resolve gets the reply, or keeps the lost script from being carried out later.

// An inDoubtBooking is one booking of a call whose reply was lost.
type inDoubtBooking struct {
	call  *batchCall
	at    int // its place in the batch
	since time.Time
}

// inDoubt has the bookings in doubt, for as long as a caller may come back. All but any
// needs the batcher's mu.
type inDoubt struct {
	any   atomic.Bool // there may be some
	byID  map[store.BookingID]inDoubtBooking
	order []store.BookingID // oldest first
}

// keepInDoubt is how long a booking in doubt is kept: longer than a caller asks with one
// ID.
const keepInDoubt = time.Minute

// markInDoubt notes that it is not known what became of a call's bookings.
func (s *Store) markInDoubt(c *batchCall) {
	s.batcher.mu.Lock()
	defer s.batcher.mu.Unlock()
	d, now := &s.batcher.inDoubt, time.Now()
	if d.byID == nil {
		d.byID = make(map[store.BookingID]inDoubtBooking)
	}
	for len(d.order) > 0 && now.Sub(d.byID[d.order[0]].since) > keepInDoubt {
		delete(d.byID, d.order[0])
		d.order = d.order[1:]
	}
	d.any.Store(true)
	for i, p := range c.batch.calls {
		id := p.request.ID
		c.requests = append(c.requests, request{id, p.request.Cost})
		if _, found := d.byID[id]; !found {
			d.order = append(d.order, id)
		}
		d.byID[id] = inDoubtBooking{c, i, now}
	}
}

// resolve returns the booking that was entered, if any. It is no longer in doubt then.
// A booking that never was in doubt is not there either.
func (s *Store) resolve(ctx context.Context, id store.BookingID, now time.Time) (store.Booking, error) {
	d := &s.batcher.inDoubt
	s.batcher.mu.Lock()
	one, found := d.byID[id]
	s.batcher.mu.Unlock()
	if !found {
		return store.Booking{}, nil
	}
	booking, err := one.call.resolve(ctx, one.at, now)
	if err != nil {
		return store.Booking{}, err
	}
	s.batcher.mu.Lock()
	defer s.batcher.mu.Unlock()
	delete(d.byID, id)
	d.any.Store(len(d.byID) > 0)
	return booking, nil
}

// resolve asks Redis for the reply that was lost, and returns what was booked for the
// request at that place of the batch, if anything was.
func (c *batchCall) resolve(ctx context.Context, place int, now time.Time) (store.Booking, error) {
	c.mu.Lock()
	session, number := c.session, c.number
	c.mu.Unlock()
	if session == nil {
		return store.Booking{}, nil // it was never sent
	}
	reply, err := c.store.run(ctx, "book", resolveScript(), c.plan.key.budget, []any{micros(now), session.field, string(number[:])})
	if err != nil {
		return store.Booking{}, err
	}
	var head [2]int64 // now and the version
	reply.numbers(head[:])
	if reply.err != nil || reply.rest == "" {
		return store.Booking{}, reply.malformed("book")
	}
	answer, err := parseBatchReply(reply.rest)
	if err != nil {
		return store.Booking{}, err
	}
	// Its wait is counted from now on, and what was used then is not what is used now.
	bookedAt := answer.now
	answer.now, answer.version = time.UnixMicro(head[0]), head[1]
	for at := 0; answer.rest != ""; {
		one := answer.record()
		if at += one.count; at <= place {
			continue
		}
		at -= one.count
		common := answer.common(&one, c.plan.key.accounts)
		if common == nil || !common.Booked || answer.err != nil {
			break
		}
		r := c.requests[place]
		booking := one.result(common, place-at, r.cost).booking(r.id, c.plan.key.budget, r.cost)
		booking.BookedAt = bookedAt
		return booking, nil
	}
	return store.Booking{}, answer.malformed("book")
}
