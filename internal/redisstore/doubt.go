package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
)

// Where the answer of a script was lost it is not known whether a booking was
// entered. Who asks for the booking again, or hands it back, makes sure first: the
// script recall gets the answer, or keeps the script from being carried out later.

// A doubt is a seat of a call whose answer was lost.
type doubt struct {
	call  *bookCall
	at    int // the seat
	since time.Time
}

// doubts are kept for as long as a caller may come back. It needs the combiner's mu.
type doubts struct {
	any   atomic.Bool // there may be some
	of    map[store.BookingID]doubt
	order []store.BookingID // oldest first
}

// doubted is how long a doubt is kept: longer than a caller asks with one ID.
const doubted = time.Minute

// doubt notes that it is not known what became of a call's bookings.
func (s *Store) doubt(c *bookCall) {
	s.combiner.mu.Lock()
	defer s.combiner.mu.Unlock()
	d, now := &s.combiner.doubts, time.Now()
	if d.of == nil {
		d.of = make(map[store.BookingID]doubt)
	}
	for len(d.order) > 0 && now.Sub(d.of[d.order[0]].since) > doubted {
		delete(d.of, d.order[0])
		d.order = d.order[1:]
	}
	d.any.Store(true)
	for i, of := range c.seats {
		id := of.r.ID
		c.asked = append(c.asked, asked{id, of.r.Cost})
		if _, found := d.of[id]; !found {
			d.order = append(d.order, id)
		}
		d.of[id] = doubt{c, i, now}
	}
}

// doubtOf returns the doubt about a booking, if there is one.
func (s *Store) doubtOf(id store.BookingID) (doubt, bool) {
	if !s.combiner.doubts.any.Load() {
		return doubt{}, false
	}
	s.combiner.mu.Lock()
	defer s.combiner.mu.Unlock()
	d, found := s.combiner.doubts.of[id]
	return d, found
}

// settleDoubt returns the booking that was entered, if any, and ends the doubt.
func (s *Store) settleDoubt(ctx context.Context, id store.BookingID) (store.Booking, error) {
	d, found := s.doubtOf(id)
	if !found {
		return store.Booking{}, nil
	}
	booking, err := d.call.recall(ctx, d.at)
	if err != nil {
		return store.Booking{}, err
	}
	s.combiner.mu.Lock()
	defer s.combiner.mu.Unlock()
	delete(s.combiner.doubts.of, id)
	s.combiner.doubts.any.Store(len(s.combiner.doubts.of) > 0)
	return booking, nil
}

// recall returns what was booked for a seat, if anything was.
func (c *bookCall) recall(ctx context.Context, seat int) (store.Booking, error) {
	c.mu.Lock()
	of, number := c.session, c.number
	c.mu.Unlock()
	if of == nil {
		return store.Booking{}, nil // it never left
	}
	reply, err := c.store.run(ctx, "book", recallScript.with(0), c.key.budget, []any{"", of.id, string(number[:])})
	if err != nil {
		return store.Booking{}, err
	}
	now, version := reply.instant(0), reply.number(1)
	if reply.err != nil || len(reply.parts) != 3 {
		return store.Booking{}, reply.bad("book")
	}
	if reply.parts[2] == "" {
		return store.Booking{}, nil
	}
	answer, err := parseBookReply(reply.parts[2])
	if err != nil {
		return store.Booking{}, err
	}
	// Its wait is counted from now on.
	answer.now, answer.version = now, version
	var record bookRecord
	for at := 0; answer.next(&record); at += record.count {
		if at+record.count <= seat {
			continue
		}
		if record.kind != 'B' && record.kind != 'S' {
			break
		}
		common, err := answer.common(&record, c.key.accounts)
		if err != nil {
			return store.Booking{}, err
		}
		before := record.before
		for _, of := range c.asked[at:seat] {
			before += uint64(of.cost)
		}
		of := c.asked[seat]
		return got{common, record.slotOf(seat - at), record.entry, before}.booking(of.id, c.key.budget, of.cost), nil
	}
	return store.Booking{}, answer.err
}
