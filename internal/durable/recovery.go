package durable

import (
	"context"
	"iter"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/journal"
	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/internal/outage"
	"github.com/ration-go/ration/store"
)

// note notes what came of a question that was no booking, which failed, or was answered by a store that was down.
func (s *Store[A]) note(err error) {
	switch {
	case err == nil && s.Closed:
		s.back(0)
	case IsTemporary(err):
		s.Failed(err)
	}
}

// Failed notes that the store did not answer a booking.
func (s *Store[A]) Failed(err error) {
	if s.outage.Failed() {
		s.Owner.Failed(err)
	}
}

// back notes that the store answers and has recorded so many bookings.
func (s *Store[A]) back(recorded int) {
	if s.outage.Answered() {
		s.Owner.Recovered(recorded)
	}
}

// MayAnswer reports whether the store is to be asked for the status: if it did not answer a moment ago it most likely does not now.
func (s *Store[A]) MayAnswer() bool {
	return !s.outage.Down.Load() || s.Closed && s.outage.IsTime()
}

// Reach reports whether to ask the store, after it has recorded what was sent without it. While the store is down, one caller now and
// then tries it; known is the version of the status that is known.
func (s *Store[A]) Reach(ctx context.Context, known int64) bool {
	mine, down := s.outage.Turn()
	if !mine {
		return false
	}
	recorded := 0
	for {
		one := s.Journal.Unrecorded()
		if len(one.List) == 0 {
			break
		}
		count, err := s.record(ctx, s.Record, time.Time{}, one.List, "outage", one.Since)
		if err != nil {
			return false
		}
		recorded += count
		s.Journal.Recorded(one, s.Estimate())
	}

	if down && recorded == 0 {
		if s.ask(ctx, "status", func() error {
			_, err := s.Of.Status(ctx, store.StatusRequest{Budget: s.Budget, Known: known})
			return err
		}) != nil {
			return false
		}
	}

	if down || recorded > 0 {
		s.back(recorded)
	}
	return true
}

// BookOpen books without the store, at once.
func (s *Store[A]) BookOpen(r store.BookRequest) store.Booking { return s.outage.Open(s.offline(r)) }

// offline returns a request to what this process keeps.
func (s *Store[A]) offline(r store.BookRequest) store.BookRequest {
	r.Now, r.KnownCard = s.Estimate(), 0 // a share has no card
	return r
}

// BookShare books without the store on this process's share of each limit, which the request's accounts have. At the beginning of an
// outage the shares' logs hold what the process has booked, and the pauses, which end then.
func (s *Store[A]) BookShare(ctx context.Context, r store.BookRequest, pauses iter.Seq2[string, cooldown.Pause]) (store.Booking, error) {
	r = s.offline(r)
	shares, err := s.outage.Shares(func(shares *memstore.Store, since time.Time) error {
		if _, err := s.record(ctx, shares.Record, r.Now, s.Journal.All(), "shares", since); err != nil {
			return err
		}
		for account, pause := range pauses {
			if left := pause.Until.Sub(r.Now).Truncate(time.Microsecond); left > 0 {
				if _, err := shares.Pause(ctx, store.PauseRequest{Budget: s.Budget, Account: account, For: left, Now: r.Now}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return store.Booking{}, err
	}
	return shares.Book(ctx, r)
}

// EnterOffline enters a booking into the journal that was made without the store.
func (s *Store[A]) EnterOffline(booked *store.Booking, own A, beside []journal.Charge[A]) {
	s.Journal.Add(own, beside, booked, time.Time{})
}

// cancelShare cancels a booking that was made without the store.
func (s *Store[A]) cancelShare(ctx context.Context, booked store.Booking) error {
	shares := s.outage.Known()
	if shares == nil || booked.Entry == "" {
		return nil
	}
	return shares.Cancel(ctx, store.CancelRequest{Booking: booked, Now: s.Estimate()})
}

// Divide returns accounts with a share of each limit, for one of so many workers whose requests cost that.
func Divide(a *store.Accounts, workers, cost int, units []int) (list, shared []store.Account, meters []store.Meter) {
	return outage.Divide(a, workers, cost, units)
}

// What the store has lost is recorded again, by each process its own part.

// Status asks for the status, tells of this worker if the request names it, and has the store record again what it has lost. lost reports whether it has lost anything since
// [Store.Recovered] was called last, and again how many bookings were recorded.
func (s *Store[A]) Status(ctx context.Context, r store.StatusRequest) (status store.Status, lost bool, again int, err error) {
	r.Budget = s.Budget
	if r.Worker != "" {
		s.mu.Lock()
		r.Load.LogLost = s.logLost
		s.mu.Unlock()
	}
	asked := time.Now()
	err = s.ask(ctx, "status", func() error {
		status, err = s.Of.Status(ctx, r)
		return err
	})
	if err != nil || s.outage.Down.Load() {
		s.note(err)
	}
	if err != nil {
		return status, false, 0, err
	}
	s.Clock.Place(status.Now, asked, time.Now())
	s.mu.Lock()
	if lost = !s.Local && status.Lost.After(s.recovered); status.Lost.Before(s.recovered) {
		s.recovered = status.Lost // another store, whose clock is behind
	}
	s.mu.Unlock()
	if lost {
		again, err = s.recover(ctx, &status)
	}
	return status, lost, again, err
}

// Recovered notes that all is recorded again that was lost up to that instant.
func (s *Store[A]) Recovered(lost time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recovered = lost
}

// recover records again what this process booked before the store lost a log, and returns how many bookings.
func (s *Store[A]) recover(ctx context.Context, status *store.Status) (count int, err error) {
	lost := status.Lost
	count, err = s.record(ctx, s.Record, time.Time{}, s.Journal.Lost(lost, status.Now), "loss", lost)
	if count > 0 {
		s.Owner.Lost(count)
		s.mu.Lock()
		s.logLost = lost
		s.mu.Unlock()
	}
	return count, err
}

// recordLate records again a booking that was made before a loss, and whose reply came after this
// process had chosen what to record.
func (s *Store[A]) recordLate(ctx context.Context, charged []journal.Charge[A], a *Answer, bookedAt time.Time) {
	var all []journal.Spendings
	for _, o := range charged {
		spent := store.Spending{Slot: a.Slot, Cost: o.Units, Booked: bookedAt, Entry: a.Entry}
		all = append(all, journal.Spendings{Account: o.Account.Stored(), List: []store.Spending{spent}})
	}
	// If the store fails the log lacks the booking, as if its process had ended.
	if _, err := s.record(ctx, s.Record, time.Time{}, all, "late "+a.Entry, bookedAt); err != nil {
		s.Owner.NotRecorded(a.Account, 1, err)
	}
}

// record records spendings, as if the store's clock stood at now; zero: where it stands. An error is temporary. The owner is told of an
// account that the store never takes.
func (s *Store[A]) record(
	ctx context.Context, to func(context.Context, store.RecordRequest) error, now time.Time, all []journal.Spendings, why string, when time.Time,
) (count int, err error) {
	r := journal.Record{To: to, Budget: s.Budget, Worker: s.Worker, Why: why, When: when, Now: now, Refused: s.Owner.NotRecorded}
	return r.Do(ctx, all)
}
