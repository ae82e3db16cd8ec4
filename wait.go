package ration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ration-go/ration/store"
)

// A waiter is one caller's way from a booking to a grant. It is on its caller's
// stack, where it stays as long as nothing that is handed to others refers to it.
type waiter struct {
	budget   *Budget
	pool     *Pool    // charged is one of its accounts; nil: the token's
	excluded []string // that are not
	token    Token
	cost     int
	waits    bool   // false: only a slot that has come will do
	sleeping func() // called when the slot that was booked lies ahead; nil: nobody
	options  bookOptions

	begun    time.Time // zero: there is no MaxWait
	accounts *accountList
	changed  <-chan struct{} // closed when the accounts change; nil: they never do
	booking  booking
	due      time.Time // the slot on this process's clock, at the latest
	soonest  time.Time // and at the soonest
	late     time.Duration
	newest   int // revision that the budget knew when the slot was booked
}

// cancelWithin bounds how long a caller that gives up waits for its slot to be
// handed back. The store goes on with it afterwards.
const cancelWithin = 250 * time.Millisecond

// soon returns a context for what is to be said to the store when its caller may have
// given up: it is not waited for longer than for a slot that is handed back.
func soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
}

func (w *waiter) grant() Grant {
	return Grant{Token: w.token, Cost: w.cost, Slot: w.booking.Slot, Late: w.late,
		budget: w.budget, soonest: w.soonest, id: w.booking.ID, account: w.booking.Account, entry: w.booking.Entry, total: w.booking.Total,
		now: w.booking.Now, offline: w.booking.offline, accounts: w.accounts, scopes: w.options.scopes}
}

// wait books a slot and returns when it has come.
func (w *waiter) wait(ctx context.Context) (err error) {
	if w.options, err = w.budget.bookOptions(ctx); err != nil {
		return err
	}
	if w.budget.MaxWait > 0 {
		w.begun = time.Now()
	}
	if err := w.book(ctx); err != nil || !w.waits {
		return err
	}
	for {
		switch w.sleep(ctx) {
		case slotCame:
			return nil
		case contextEnded:
			w.handBack(w.booking, w.accounts)
			return ended(ctx)
		case accountsChanged:
			if err := w.moveAccount(ctx); err != nil {
				return err
			}
		case slotLost:
			// Its holder was too late, or the account was paused: nothing was
			// sent, so the slot goes back before another is booked.
			w.handBack(w.booking, w.accounts)
			if err := w.book(ctx); err != nil {
				return err
			}
		case limitsChanged:
			// All who wait hand back before one of them books, or they would
			// book behind each other.
			w.handBack(w.booking, w.accounts)
			select {
			case <-time.After(regroup):
			case <-ctx.Done():
				return ended(ctx)
			}
			if err := w.book(ctx); err != nil {
				return err
			}
		}
	}
}

// regroup is how long a caller waits for others to hand back after the limits have
// changed.
const regroup = 100 * time.Millisecond

// ended returns the context's error, and the cause that it was given.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// An outcome is how a caller's sleep ended.
type outcome int

const (
	slotCame outcome = iota
	slotLost
	contextEnded
	accountsChanged
	limitsChanged
)

// sleep sleeps until the slot, or until something happens before.
func (w *waiter) sleep(ctx context.Context) outcome {
	if !w.booking.Slot.After(w.booking.Now) {
		if ctx.Err() != nil {
			return contextEnded
		}
		return slotCame
	}
	if w.sleeping != nil {
		w.sleeping()
	}
	timer := time.NewTimer(time.Until(w.due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.changed:
		return accountsChanged
	case <-w.budget.limitsChanged():
		return limitsChanged
	case <-ctx.Done():
		return contextEnded
	}
	if ctx.Err() != nil {
		return contextEnded
	}
	w.late = time.Since(w.due)
	if tolerance := w.accounts.find(w.booking.Account).tolerance; tolerance > 0 && w.late > tolerance {
		return slotLost
	}
	if !w.budget.slotIsValid(ctx, &w.booking.Booking, w.accounts.shared) {
		return slotLost
	}
	if w.budget.newestKnown() > w.newest {
		return limitsChanged
	}
	return slotCame
}

// moveAccount books on the changed accounts. A waiter whose account is still there
// keeps its slot unless an earlier one is to be had.
func (w *waiter) moveAccount(ctx context.Context) error {
	old, accounts, due, soonest := w.booking, w.accounts, w.due, w.soonest
	if err := w.findAccounts(); err != nil {
		w.handBack(old, accounts)
		return err
	}
	if old.offline || w.accounts.Index(old.Account) < 0 {
		w.handBack(old, accounts)
		return w.book(ctx)
	}
	left := time.Until(due) - time.Microsecond
	if left <= 0 {
		return nil
	}
	r := w.request(left)
	err := w.ask(ctx, &r)
	if err == nil && w.booking.Booked {
		w.handBack(old, accounts)
		return nil
	}
	if err != nil {
		w.handBack(w.booking, w.accounts)
		if ctx.Err() != nil {
			w.handBack(old, accounts)
			return err
		}
	}
	// No earlier slot, or no answer: the one that was booked stands.
	w.booking, w.due, w.soonest = old, due, soonest
	return nil
}

// findAccounts asks which accounts there are.
func (w *waiter) findAccounts() (err error) {
	if w.pool != nil {
		w.accounts, w.changed, err = w.pool.listWithout(w.excluded)
	} else {
		w.accounts, err = w.budget.accountsOf(&w.token)
	}
	return err
}

// book books within the longest wait.
func (w *waiter) book(ctx context.Context) error {
	for {
		err := w.bookOnce(ctx)
		if err == nil || !w.budget.concede(err, w.accounts) {
			return err
		}
	}
}

func (w *waiter) bookOnce(ctx context.Context) error {
	if err := w.findAccounts(); err != nil {
		return err
	}
	allowed, byDeadline := w.longestWait(ctx)
	if w.budget.Outage != FailClosed && !w.budget.reachable(ctx) {
		if err := w.bookOffline(ctx, allowed); err != nil {
			return err
		}
		return w.booked(allowed, byDeadline)
	}
	r := w.request(allowed)
	if err := w.ask(ctx, &r); err != nil {
		if err = w.failed(ctx, r, err); err != nil {
			return err
		}
	}
	return w.booked(allowed, byDeadline)
}

// failed makes good for a booking that failed, or returns the error. A caller that
// is patient goes on asking a store that does not answer for as long as Patience
// says.
func (w *waiter) failed(ctx context.Context, r store.BookRequest, err error) error {
	if !store.Passes(err) {
		return err
	}
	b := w.budget
	b.storeFailed(err)
	switch {
	case b.Outage != FailClosed:
		// What the store may have booked all the same.
		w.handBack(w.booking, w.accounts)
		err = w.bookOffline(ctx, r.MaxWait)
	case w.waits && b.RetryStoreFor >= 0:
		// The waiter stays on its stack: backoff is handed a copy.
		persists := *w
		err = persists.retryBooking(ctx, r, err)
		*w = persists
	}
	if store.Passes(err) {
		w.handBack(w.booking, w.accounts)
	}
	return err
}

// booked returns an error if the slot lies beyond the longest wait.
func (w *waiter) booked(allowed time.Duration, byDeadline bool) error {
	if w.booking.Booked {
		return nil
	}
	return &store.ExhaustedError{
		Budget:     w.budget.Name,
		Account:    w.booking.Account,
		RetryAfter: w.booking.Slot.Sub(w.booking.Now),
		Allowed:    allowed,
		Deadline:   byDeadline,
	}
}

func (w *waiter) handBack(b booking, accounts *accountList) {
	w.budget.cancelSoon(b, accounts)
}

// cancelSoon hands a booking back. If the store cannot be reached the slot is lost
// until it has left its window: the quota is then not all used, never overspent.
func (b *Budget) cancelSoon(booked booking, accounts *accountList) {
	ctx, stop := soon(context.Background())
	defer stop()
	_ = b.cancel(ctx, booked, accounts)
}

// longestWait returns how long the caller may still wait, and whether it is the
// context's deadline that says so.
func (w *waiter) longestWait(ctx context.Context) (longest time.Duration, byDeadline bool) {
	if !w.waits {
		return 0, false
	}
	longest = store.Forever
	if w.budget.MaxWait > 0 {
		longest = max(0, w.budget.MaxWait-time.Since(w.begun))
	}
	if deadline, found := ctx.Deadline(); found {
		if left := max(0, time.Until(deadline)); left < longest {
			return left, true
		}
	}
	return longest, false
}
