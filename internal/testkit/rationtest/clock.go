// Package rationtest is what the tests of several packages share: budgets in bubbles of
// fake time, a fake provider, and stores that are observed or cut off.
package rationtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/store"
)

// WithClock returns s with now in place of its own clock: every request whose Now is zero
// gets it. It makes the fake time of a testing/synctest bubble decide what a Redis outside
// of the bubble answers.
// Those who watch the store that it returns hear of slots that are cancelled through it: the messages of
// Redis would keep a bubble's time from going on.
func WithClock(s store.Store, now func() time.Time) store.Store {
	return &clockStore{Store: s, now: now}
}

type clockStore struct {
	store.Store
	now func() time.Time

	mu       sync.Mutex // protects all below
	watchers map[*watcher]struct{}
	wanted   map[string]time.Time // when watchers were told last that permits of a limit are
}

type watcher struct {
	budget string
	told   func(store.News)
}

// At implements [store.Store]: the clock is another one.
func (s *clockStore) At(time.Time) time.Time { return time.Time{} }

// Watch implements [store.Store].
func (s *clockStore) Watch(budget string, told func(store.News)) (stop func()) {
	one := &watcher{budget, told}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers == nil {
		s.watchers = make(map[*watcher]struct{})
	}
	s.watchers[one] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, one)
	}
}

// set fills in a request's Now.
func (s *clockStore) set(now *time.Time) {
	if now.IsZero() {
		*now = s.now()
	}
}

func (s *clockStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	s.set(&r.Now)
	booked, err := s.Store.Book(ctx, r)
	if i := r.Instead; i != nil && err == nil && (!booked.Booked || booked.Slot.Before(i.Booking.Slot)) {
		s.tell(r.Budget, store.News{Account: i.Booking.Account, By: i.By})
	}
	return booked, err
}

func (s *clockStore) Hold(ctx context.Context, r store.HoldRequest) (store.HoldReply, error) {
	s.set(&r.Now)
	return s.Store.Hold(ctx, r)
}

func (s *clockStore) Cancel(ctx context.Context, all ...store.CancelRequest) error {
	all = slices.Clone(all)
	for i := range all {
		s.set(&all[i].Now)
	}
	err := s.Store.Cancel(ctx, all...)
	for _, r := range all {
		if r.Booking.Account != "" {
			s.tell(r.Booking.Budget, store.News{Account: r.Booking.Account})
		}
	}
	return err
}

// tell tells those who watch a budget.
func (s *clockStore) tell(budget string, news store.News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.watchers {
		if one.budget == budget {
			one.told(news)
		}
	}
}

func (s *clockStore) Correct(ctx context.Context, r store.CorrectRequest) (store.Booking, error) {
	s.set(&r.Now)
	corrected, err := s.Store.Correct(ctx, r)
	if err == nil {
		s.tell(r.Booking.Budget, store.News{Account: r.Booking.Account, Now: true})
	}
	return corrected, err
}

func (s *clockStore) Record(ctx context.Context, r store.RecordRequest) error {
	s.set(&r.Now)
	return s.Store.Record(ctx, r)
}

func (s *clockStore) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	s.set(&r.Now)
	return s.Store.Reconcile(ctx, r)
}

func (s *clockStore) Usage(ctx context.Context, r store.UsageRequest) ([]store.Usage, error) {
	s.set(&r.Now)
	return s.Store.Usage(ctx, r)
}

func (s *clockStore) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	s.set(&r.Now)
	return s.Store.Pause(ctx, r)
}

func (s *clockStore) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	s.set(&r.Now)
	return s.Store.Quarantine(ctx, r)
}

func (s *clockStore) Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	s.set(&r.Now)
	return s.Store.Resume(ctx, r)
}

func (s *clockStore) Card(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	s.set(&r.Now)
	reply, err := s.Store.Card(ctx, r)
	if reply.Changed {
		s.tell(r.Budget, store.News{Version: reply.Card.Version})
	}
	return reply, err
}

func (s *clockStore) Reset(ctx context.Context, r store.ResetRequest) error {
	s.set(&r.Now)
	return s.Store.Reset(ctx, r)
}

func (s *clockStore) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	s.set(&r.Now)
	status, err := s.Store.Status(ctx, r)
	for _, p := range status.Permits { // Redis says so once, where others have some to spare
		s.mu.Lock()
		tells := p.Short && r.Now.Sub(s.wanted[p.Limit]) >= time.Second
		if tells {
			if s.wanted == nil {
				s.wanted = make(map[string]time.Time)
			}
			s.wanted[p.Limit] = r.Now
		}
		s.mu.Unlock()
		if tells {
			s.tell(r.Budget, store.News{Permits: p.Limit})
		}
	}
	return status, err
}
