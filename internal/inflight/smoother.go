// Package inflight smooths calls near the end of a quota's window: it holds a call back
// while the responses of others are awaited.
package inflight

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/sweep"
)

const (
	// share is the part of the units left by the last response that a worker may have
	// in flight: there are other workers.
	share = 4
	// LongestHold bounds how long a call is held back for the responses of others.
	LongestHold = time.Second
)

// A Smoother holds back calls of a budget's accounts. Calls that are in flight when a
// competing client takes the last units of a window are all refused. So while external
// usage is seen on an account, a worker has no more of its calls in flight than a part of
// what the last response left: the nearer the end, the fewer, and each response lets the
// next ones go. A call is held back before it books a slot, so that it is not late for one.
//
// The zero Smoother holds nothing back. It is safe for concurrent use.
type Smoother struct {
	mu       sync.Mutex // protects all below
	accounts sweep.Map[string, *account]
	booking  int         // admitted calls for which the store has not chosen an account yet
	narrowed time.Time   // when the last account is no longer narrowed
	held     []*heldCall // in the order of their arrival
}

type account struct {
	inFlight int
	left     int       // the units left by the last response
	until    time.Time // until when inFlight is bounded, on this process's clock
}

// A heldCall may be charged to any of its accounts.
type heldCall struct {
	accounts []string
	full     []string // those that had no room when it was admitted
	admitted chan struct{}
}

// A Booking is a call from Admit until its account is known or its slot turns out to lie
// ahead. Meanwhile it counts on every account. A nil Booking counts on none.
type Booking struct {
	smoother *Smoother
	once     sync.Once
}

// Narrow bounds the account's calls in flight for a time.
func (s *Smoother) Narrow(id string, length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.account(id)
	if until := time.Now().Add(length); until.After(a.until) {
		a.until = until
	}
	if a.until.After(s.narrowed) {
		s.narrowed = a.until
	}
}

// Narrowed reports whether any account is. If not there is no need to call Admit.
func (s *Smoother) Narrowed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.narrowed)
}

// Admit waits until one of the accounts has room for a call, but not beyond the deadline,
// from which on it takes every account for one that has. It returns the accounts without
// room. Release the Booking when the call's account is known. The error is the context's. If Admit must wait
// it calls began first.
func (s *Smoother) Admit(ctx context.Context, accounts []string, deadline time.Time, began func()) (*Booking, []string, error) {
	s.mu.Lock()
	if full := s.full(accounts); len(full) < len(accounts) {
		defer s.mu.Unlock()
		s.booking++
		return &Booking{smoother: s}, full, nil
	}
	call := &heldCall{accounts: accounts, admitted: make(chan struct{})}
	s.held = append(s.held, call)
	s.mu.Unlock()
	began()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-call.admitted:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.held, call); i >= 0 {
		s.held = slices.Delete(s.held, i, i+1)
		s.booking++
	}
	if err := ctx.Err(); err != nil {
		s.booking--
		s.admitHeld()
		return nil, nil, err
	}
	return &Booking{smoother: s}, call.full, nil
}

// Release says that the call counts no longer on every account. To release twice is to
// release once.
func (b *Booking) Release() {
	if b == nil {
		return
	}
	b.once.Do(func() {
		b.smoother.mu.Lock()
		defer b.smoother.mu.Unlock()
		b.smoother.booking--
		b.smoother.admitHeld()
	})
}

// Start says that a call of the account is in flight.
func (s *Smoother) Start(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account(id).inFlight++
}

// Finish says that a call of the account has ended, and how many units its response left;
// negative: that is not known.
func (s *Smoother) Finish(id string, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.account(id)
	a.inFlight--
	if left >= 0 {
		a.left = left
	}
	s.admitHeld()
}

// admitHeld admits the held calls that have room now. It needs mu.
func (s *Smoother) admitHeld() {
	s.held = slices.DeleteFunc(s.held, func(call *heldCall) bool {
		call.full = s.full(call.accounts)
		if len(call.full) == len(call.accounts) {
			call.full = nil
			return false
		}
		s.booking++
		close(call.admitted)
		return true
	})
}

// full returns the accounts that have no room for one more call. It needs mu.
func (s *Smoother) full(accounts []string) (full []string) {
	now := time.Now()
	for _, id := range accounts {
		a := s.accounts.Get(id)
		if a != nil && now.Before(a.until) && a.inFlight+s.booking >= max(1, a.left/share) {
			full = append(full, id)
		}
	}
	return full
}

// account needs mu.
func (s *Smoother) account(id string) *account {
	now := time.Now()
	s.accounts.Sweep(func(_ string, a *account) bool { return a.inFlight == 0 && !now.Before(a.until) })
	a := s.accounts.Get(id)
	if a == nil {
		a = new(account)
		s.accounts.Set(id, a)
	}
	return a
}
