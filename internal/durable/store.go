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
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/clock"
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

	outage outage.Outage

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
	s.note(err)
	return reply, err
}

// Record asks the store.
func (s *Store[A]) Record(ctx context.Context, r store.RecordRequest) error {
	return s.ask(ctx, "record", func() error { return s.Of.Record(ctx, r) })
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
