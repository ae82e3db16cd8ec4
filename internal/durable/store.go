// Package durable asks a store for one budget of a process, and keeps what the process needs when the store fails, forgets, or has
// another clock:
//
//	where its clock stands             package clock
//	how early to ask it                package lead
//	what this process has booked       package journal   ──▶ recorded again, after a loss or an outage
//	since when it does not answer      package outage    ──▶ this process's share of the limits
//
// What asks through a Store sees slots on its own clock. It sees no loss, no step of a clock and no retry but one: while a store that has
// lost its log waits for all workers to record, nobody gets a slot.
package durable

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/clock"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/journal"
	"github.com/ration-go/ration/internal/lead"
	"github.com/ration-go/ration/internal/outage"
	"github.com/ration-go/ration/store"
)

// An Owner is told what happens. Its methods must not block, nor ask the Store.
type Owner interface {
	// Asked is told of each question, if Store.Traced is set.
	Asked(ctx context.Context, operation string, took time.Duration, err error)
	// Failed is told when the store begins not to answer, and Recovered when it answers again and has recorded so many bookings.
	Failed(err error)
	Recovered(recorded int)
	// Lost is told that the store had lost a log, and has recorded so many bookings again.
	Lost(recorded int)
	// NotRecorded is told of bookings that an account's log lacks.
	NotRecorded(account string, count int, err error)
}

// A Store is a store as one budget of a process asks it. Set the fields before first use; it is then safe for concurrent use.
type Store[A journal.Account] struct {
	// Of is the store, and Budget the name in it.
	Of     store.Store
	Budget string
	// Local is set if the store is in this process: it loses nothing, and its clock is the process's.
	Local bool
	// Closed is set if nothing is sent while the store does not answer.
	Closed bool
	// Owner is told what happens, and with Traced of each question.
	Owner  Owner
	Traced bool
	// Refresh is called if the store has lost a log, and calls Status.
	Refresh func(context.Context) error
	// Worker is this budget value, among the fleet's. If two had the same, each would take the other's records for its own.
	Worker store.BookingID

	// Clock is the store's, and Lead how early it is asked.
	Clock clock.Clock
	Lead  lead.Ask
	// Journal is what this process has booked. That of a store in this process is empty.
	Journal journal.Journal[A]

	outage   outage.Outage
	learning flight.Group

	mu         sync.Mutex // protects all below
	lastBooked time.Time  // the Now of the latest booking
	recovered  time.Time  // the Status.Lost up to which the journal was recorded again
	logLost    time.Time  // by the store, when this process last recorded its bookings again; zero: never
}

// NewWorker returns a random ID of a worker.
func NewWorker() (id store.BookingID) {
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// IsTemporary reports whether err is a store's failure that asking again may mend.
func IsTemporary(err error) bool {
	failed, _ := errors.AsType[*store.StoreError](err)
	return failed.Temporary()
}

// ask asks the store, and tells what came of it.
func (s *Store[A]) ask(ctx context.Context, operation string, f func() error) error {
	began := time.Now()
	err := f()
	if s.Traced {
		s.Owner.Asked(ctx, operation, time.Since(began), err)
	}
	return err
}

// Pause asks as [store.Store] says, and so do those below.
func (s *Store[A]) Pause(ctx context.Context, r store.PauseRequest) (reply store.PauseReply, err error) {
	err = s.ask(ctx, "pause", func() error {
		reply, err = s.Of.Pause(ctx, r)
		return err
	})
	return reply, err
}

// Quarantine asks the store.
func (s *Store[A]) Quarantine(ctx context.Context, r store.QuarantineRequest) (reply store.PauseReply, err error) {
	err = s.ask(ctx, "quarantine", func() error {
		reply, err = s.Of.Quarantine(ctx, r)
		return err
	})
	return reply, err
}

// Resume asks the store.
func (s *Store[A]) Resume(ctx context.Context, r store.ResumeRequest) (reply store.PauseReply, err error) {
	err = s.ask(ctx, "resume", func() error {
		reply, err = s.Of.Resume(ctx, r)
		return err
	})
	return reply, err
}

// Watch has the store say what changes.
func (s *Store[A]) Watch(budget string, told func(store.News)) (stop func()) {
	return s.Of.Watch(budget, told)
}

// Card asks the store.
func (s *Store[A]) Card(ctx context.Context, r store.CardRequest) (reply store.CardReply, err error) {
	r.Budget = s.Budget
	err = s.ask(ctx, "card", func() error {
		reply, err = s.Of.Card(ctx, r)
		return err
	})
	return reply, err
}

// Reset asks the store.
func (s *Store[A]) Reset(ctx context.Context, r store.ResetRequest) error {
	r.Budget = s.Budget
	return s.ask(ctx, "reset", func() error { return s.Of.Reset(ctx, r) })
}

// Usage asks the store.
func (s *Store[A]) Usage(ctx context.Context, accounts *store.Accounts) (all []store.Usage, err error) {
	err = s.ask(ctx, "usage", func() error {
		all, err = s.Of.Usage(ctx, store.UsageRequest{Budget: s.Budget, Accounts: accounts})
		return err
	})
	return all, err
}

// Reconcile asks the store.
func (s *Store[A]) Reconcile(ctx context.Context, r store.ReconcileRequest) (reply store.Reconciliation, err error) {
	r.Budget = s.Budget
	err = s.ask(ctx, "reconcile", func() error {
		reply, err = s.Of.Reconcile(ctx, r)
		return err
	})
	return reply, err
}

// Hold asks the store, and notes whether it answers: callers that all wait for their slots book nothing.
func (s *Store[A]) Hold(ctx context.Context, r store.HoldRequest) (reply store.HoldReply, err error) {
	err = s.ask(ctx, "hold", func() error {
		reply, err = s.Of.Hold(ctx, r)
		return err
	})
	if err != nil || s.outage.Down.Load() {
		s.note(err)
	}
	return reply, err
}

// Record asks the store.
func (s *Store[A]) Record(ctx context.Context, r store.RecordRequest) error {
	return s.ask(ctx, "record", func() error { return s.Of.Record(ctx, r) })
}

// Correct asks the store, and enters into the journal what the booking charges now in place of what it did.
func (s *Store[A]) Correct(ctx context.Context, r store.CorrectRequest, before []journal.Charge[A], own A, beside []journal.Charge[A]) (corrected store.Booking, err error) {
	err = s.ask(ctx, "correct", func() error {
		corrected, err = s.Of.Correct(ctx, r)
		return err
	})
	if err != nil || s.Local {
		return corrected, err
	}
	s.Journal.Cancel(journal.Cancelled[A]{Slot: r.Booking.Slot, Entry: r.Booking.Entry, Charges: before})
	s.Journal.Add(own, beside, &corrected, cmp.Or(corrected.Now, corrected.Slot))
	return corrected, nil
}

// soonWithin bounds how long a caller waits for the store that gives up, or has its response. The store goes on afterwards.
const soonWithin = 250 * time.Millisecond

// Soon returns a context for a short question, which is asked even if the caller has given up. A store that is far away has longer.
func (s *Store[A]) Soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), soonWithin+2*s.Clock.Away.Value())
}

// Before returns how long before something the store is to be asked, for its answer to be there then.
func (s *Store[A]) Before() time.Duration {
	away := s.Clock.Away.Value()
	return away + away/4 + time.Millisecond
}

// Estimate returns what the store's clock stands at, at least, as its answers tell; zero: it
// has never answered.
func (s *Store[A]) Estimate() time.Time {
	least, _ := s.Clock.Reads(time.Now())
	return least
}

// Now returns the time on the store's clock, as estimated from its answers, or on this
// process's clock if it has never answered.
func (s *Store[A]) Now() time.Time {
	now := time.Now()
	if least, _ := s.Clock.Reads(now); !least.IsZero() {
		return least
	}
	return now
}

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

// Learn asks for the time until a reply comes as quickly as callers need that may leave so late after their slots. All callers wait for
// one who asks. It asks by the request that comes next, but that nothing is booked: so its script is there, and the process knows what
// an answer to it takes.
func (s *Store[A]) Learn(ctx context.Context, next store.BookRequest, tolerance time.Duration, leads lead.Bounds) error {
	next.MaxWait = store.Never
	question := func() error {
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
	}
	return s.learning.Do(ctx, "", func() error {
		if s.Clock.Learned.Load() { // by a caller before this one
			return nil
		}
		return s.Clock.Learn(tolerance, question)
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
	// Offline is set if it was booked without the store, and Replaced if the store has cancelled it for another one.
	Offline, Replaced bool
	// Charges are what the journal has. Nil: it has none.
	Charges []journal.Charge[A]
}

// Cancel cancels bookings where they were booked, and the journal forgets them. Those that are Replaced it only forgets.
func (s *Store[A]) Cancel(ctx context.Context, all ...Cancelled[A]) error {
	var failed error
	var gone []journal.Cancelled[A]
	requests := make([]store.CancelRequest, 0, len(all))
	for _, b := range all {
		if b.Charges != nil && !s.Local {
			gone = append(gone, journal.Cancelled[A]{Slot: b.Booking.Slot, Entry: b.Booking.Entry, Charges: b.Charges})
		}
		switch {
		case b.Replaced:
		case b.Offline:
			failed = errors.Join(failed, s.cancelShare(ctx, b.Booking))
		default:
			requests = append(requests, store.CancelRequest{Booking: b.Booking, Holder: b.Holder})
		}
	}
	if len(gone) > 0 {
		s.Journal.Cancel(gone...)
	}
	if len(requests) == 0 {
		return failed
	}
	err := s.ask(ctx, "cancel", func() error { return s.Of.Cancel(ctx, requests...) })
	if failed != nil {
		return errors.Join(failed, err)
	}
	return err
}
