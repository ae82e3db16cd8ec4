package durable

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ration-go/ration/internal/journal"
	"github.com/ration-go/ration/internal/lead"
	"github.com/ration-go/ration/store"
)

// askAtMost bounds how often the store is asked for one booking while logs are lost or clocks step.
const askAtMost = 4

// An Answer is a store's to a booking, and when it was on this process's clock.
type Answer struct {
	store.Booking
	// Asked is when the store was asked, and Arrived when its answer came.
	Asked, Arrived time.Time
	// Soonest and Due are between which instants the slot lies, so that a caller which leaves when it is due does not leave before it.
	// Of a store in this process Soonest is zero, and Due too if the slot has come.
	Soonest, Due time.Time
}

// Learn asks for the time until a reply comes as quickly as callers need that may leave so late after their slots. It asks by the
// request that comes next, but that nothing is booked: so its script is there, and the process knows what an answer to it takes.
func (s *Store[A]) Learn(ctx context.Context, next store.BookRequest, tolerance time.Duration, leads lead.Bounds) error {
	if s.Clock.Learned.Load() { // by a caller before this one
		return nil
	}
	next.MaxWait = store.Never
	return s.Clock.Learn(tolerance, func() error {
		next.ID = store.NewBookingID()
		var answer store.Booking
		asked := time.Now()
		err := s.ask(ctx, "book", func() (err error) {
			answer, err = s.Of.Book(context.WithoutCancel(ctx), next)
			return err
		})
		if err != nil {
			return err
		}
		arrived := time.Now()
		_, now := s.Clock.Place(answer.Now, asked, arrived)
		s.Lead.Note(arrived.Sub(now), 0, leads, arrived)
		return nil
	})
}

// Book asks the store for a booking, for a caller that waits or for one that takes only a slot that has come. If the store has lost a
// log, Refresh records this process's bookings again, and then the store is asked once more.
// answer is zero before.
func (s *Store[A]) Book(ctx context.Context, r *store.BookRequest, waits bool, answer *Answer) (err error) {
	for n := 1; n <= askAtMost; n++ {
		var asked time.Time
		if !s.Local || s.Traced {
			asked = time.Now()
		}
		if !s.Local {
			s.stamp(r, waits, asked)
		}
		if n == askAtMost {
			r.Expect = time.Time{} // answers are too slow to compare clocks
		}
		answer.Booking, err = s.Of.Book(ctx, *r) // and not ask, which would copy the request and the answer
		if s.Traced {
			s.Owner.Asked(ctx, "book", time.Since(asked), err)
		}
		switch {
		case err != nil:
			return err
		case answer.Ahead:
			r.Ahead = s.Clock.Stepped(answer.Now, asked, time.Now())
		case answer.Lost:
			if err := s.Refresh(ctx); err != nil {
				return err
			}
		}
		if answer.Ahead || answer.Lost {
			continue
		}

		// A slot before Now is of a booking whose answer was lost and asked for again.
		wait := answer.Slot.Sub(answer.Now)
		if s.Local {
			if wait > 0 {
				answer.Due = s.Of.At(answer.Slot)
			}
			return nil
		}
		// The wait is counted from the latest instant at which the store may have read its clock, so that the caller does not leave
		// before its slot. How late it leaves is counted from the earliest.
		answer.Asked, answer.Arrived = asked, time.Now()
		answer.Soonest, answer.Due = s.Clock.Place(answer.Now, asked, answer.Arrived)
		answer.Soonest, answer.Due = answer.Soonest.Add(wait), answer.Due.Add(wait)
		return nil
	}
	return &store.StoreError{Op: "book", Err: errors.New("the store loses its logs again and again")}
}

// stamp adds to a request, asked at that instant of this process's clock, what a store that can lose logs compares with what it
// remembers, and how early it is asked.
func (s *Store[A]) stamp(r *store.BookRequest, waits bool, asked time.Time) {
	if r.Lead = s.Lead.Of; !waits {
		r.MaxWait = s.Lead.Of() // a slot that has come when the answer has
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Last, r.Recovered = s.lastBooked, s.recovered
	if _, most := s.Clock.Reads(asked); !most.IsZero() {
		r.Expect = most.Truncate(time.Microsecond)
	}
}

// Sight takes in where the clock of a store in this process stands, from an answer that says more than a slot.
func (s *Store[A]) Sight(a *Answer) {
	a.Asked = s.Of.At(a.Now)
	a.Arrived = a.Asked
	s.Clock.Place(a.Now, a.Asked, a.Arrived)
}

// Enter enters a booking into the journal of what a store in another process may lose, with what it charged, and notes that the store
// answers. If the store had lost its log meanwhile the booking is recorded again. It reports whether the owner was told anything.
func (s *Store[A]) Enter(ctx context.Context, a *Answer, own A, beside []journal.Charge[A]) (told bool) {
	bookedAt := cmp.Or(a.BookedAt, a.Now)
	s.mu.Lock()
	if bookedAt.After(s.lastBooked) {
		s.lastBooked = bookedAt
	}
	s.mu.Unlock()
	if a.Booked && !s.Local {
		if lost := s.Journal.Add(own, beside, &a.Booking, bookedAt); bookedAt.Before(lost) {
			s.recordLate(ctx, append(beside, journal.Charge[A]{Account: own, Units: a.Cost}), a, bookedAt)
			told = true
		}
	}
	if s.Closed && s.outage.Down.Load() {
		s.back(0)
		told = true
	}
	return told
}

// A Cancelled is a booking on which nothing was sent.
type Cancelled[A journal.Account] struct {
	// Booking is what the store, or this process, has answered; of a lost answer what is known.
	Booking store.Booking
	// Holder is the one that the store was told of. Zero: it was not.
	Holder store.BookingID
	// Offline is set if it was booked without the store.
	Offline bool
	// Charges are what the journal has. Nil: it has none.
	Charges []journal.Charge[A]
}

// Cancel cancels bookings where they were booked, and the journal forgets them.
func (s *Store[A]) Cancel(ctx context.Context, all []Cancelled[A]) error {
	s.Forget(all)
	var failed error
	requests := make([]store.CancelRequest, 0, len(all))
	for _, b := range all {
		if b.Offline {
			failed = errors.Join(failed, s.cancelShare(ctx, b.Booking))
		} else {
			requests = append(requests, store.CancelRequest{Booking: b.Booking, Holder: b.Holder})
		}
	}
	if len(requests) == 0 {
		return failed
	}
	if err := s.ask(ctx, "cancel", func() error { return s.Of.Cancel(ctx, requests...) }); err != nil {
		return err
	}
	return failed
}

// Forget has the journal forget bookings.
func (s *Store[A]) Forget(all []Cancelled[A]) {
	var gone []journal.Cancelled[A]
	for _, b := range all {
		if b.Charges != nil && !s.Local {
			gone = append(gone, journal.Cancelled[A]{Slot: b.Booking.Slot, Entry: b.Booking.Entry, Charges: b.Charges})
		}
	}
	if len(gone) > 0 {
		s.Journal.Cancel(gone...)
	}
}
