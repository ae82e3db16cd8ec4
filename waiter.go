package ration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// A waiter is one caller's way from a booking to a grant.
type waiter struct {
	budget *Budget
	cost   int
	// source returns the accounts that may be charged, and a channel that is
	// closed when they change; nil if they never do.
	source func() (*Accounts, <-chan struct{}, error)

	accounts *Accounts
	changed  <-chan struct{}
	booking  Booking
	due      time.Time // the slot on this process's clock
	late     time.Duration
}

// handBackWithin bounds how long a caller that gives up waits for its slot to be
// handed back. The store goes on with it afterwards.
const handBackWithin = 250 * time.Millisecond

func (w *waiter) grant(t Token) Grant {
	return Grant{Token: t, Cost: w.cost, Slot: w.booking.Slot, Late: w.late,
		budget: w.budget, booking: w.booking, accounts: w.accounts}
}

// try books a slot that has come.
func (w *waiter) try(ctx context.Context) error {
	if err := w.find(); err != nil {
		return err
	}
	if err := w.ask(ctx, w.request(0)); err != nil {
		return w.abandon(err)
	}
	if !w.booking.Booked {
		return w.exhausted(0, false)
	}
	return nil
}

// wait books a slot and returns when it has come.
func (w *waiter) wait(ctx context.Context) error {
	begun := time.Now()
	if err := w.book(ctx, begun); err != nil {
		return err
	}
	for {
		switch w.sleep(ctx) {
		case slotCame:
			return nil
		case contextEnded:
			w.handBack(w.booking, w.accounts)
			return context.Cause(ctx)
		case accountsChanged:
			if err := w.move(ctx, begun); err != nil {
				return err
			}
		case slotLost:
			// Its holder was too late, or the account was paused: nothing was
			// sent, so the slot goes back before another is booked.
			w.handBack(w.booking, w.accounts)
			if err := w.book(ctx, begun); err != nil {
				return err
			}
		}
	}
}

// An outcome is how a caller's sleep ended.
type outcome int

const (
	slotCame outcome = iota
	slotLost
	contextEnded
	accountsChanged
)

// sleep sleeps until the slot, or until something happens before.
func (w *waiter) sleep(ctx context.Context) outcome {
	if w.booking.Slot.After(w.booking.Now) {
		timer := time.NewTimer(time.Until(w.due))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.changed:
			return accountsChanged
		case <-ctx.Done():
			return contextEnded
		}
	}
	if ctx.Err() != nil {
		return contextEnded
	}
	w.late = time.Since(w.due)
	if !w.booking.Slot.After(w.booking.Now) {
		return slotCame
	}
	account := w.accounts.At(w.accounts.find(w.booking.Account))
	if tolerance := account.tolerance(); tolerance > 0 && w.late > tolerance {
		return slotLost
	}
	if w.budget.pausedUntil(ctx, w.booking.Account).After(w.booking.Slot) {
		return slotLost
	}
	return slotCame
}

// move books on the changed accounts. A waiter whose account is still there
// keeps its slot unless an earlier one is to be had.
func (w *waiter) move(ctx context.Context, begun time.Time) error {
	old, accounts := w.booking, w.accounts
	due := w.due
	if err := w.find(); err != nil {
		w.handBack(old, accounts)
		return err
	}
	if w.accounts.find(old.Account) < 0 {
		w.handBack(old, accounts)
		return w.book(ctx, begun)
	}
	left := time.Until(due) - time.Microsecond
	if left <= 0 {
		return nil
	}
	err := w.ask(ctx, w.request(left))
	if err == nil && w.booking.Booked {
		w.handBack(old, accounts)
		return nil
	}
	if err != nil && ctx.Err() != nil {
		w.handBack(old, accounts)
		return err
	}
	// No earlier slot, or no answer: the one that was booked stands.
	w.booking, w.due = old, due
	return nil
}

// find asks which accounts there are.
func (w *waiter) find() (err error) {
	w.accounts, w.changed, err = w.source()
	return err
}

// book books within the longest wait, and goes on asking a store that does not
// answer for as long as Patience says.
func (w *waiter) book(ctx context.Context, begun time.Time) error {
	if err := w.find(); err != nil {
		return err
	}
	longest, byDeadline := w.longestWait(ctx, begun)
	r := w.request(longest)
	err := w.ask(ctx, r)
	if passes(err) && w.budget.Patience >= 0 {
		err = w.persist(ctx, begun, r, err)
	}
	if err != nil {
		return w.abandon(err)
	}
	if !w.booking.Booked {
		return w.exhausted(longest, byDeadline)
	}
	return nil
}

// persist asks until the store answers. It asks with the same ID for as long as
// the store is sure to know it, so that an answer that was lost is found again.
func (w *waiter) persist(ctx context.Context, begun time.Time, r BookRequest, err error) error {
	const sameID = 30 * time.Second
	patience := w.budget.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	policy := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(patience),
	)
	named := time.Now()
	again := func() error {
		if time.Since(named) > sameID {
			w.handBack(Booking{ID: r.ID, Budget: r.Budget}, w.accounts)
			r.ID, named = NewBookingID(), time.Now()
		}
		r.MaxWait, _ = w.longestWait(ctx, begun)
		err = w.ask(ctx, r)
		if err != nil && !passes(err) {
			return backoff.Permanent(err)
		}
		return err
	}
	if stopped := backoff.Retry(again, backoff.WithContext(policy, ctx)); stopped != nil {
		w.booking = Booking{ID: r.ID, Budget: r.Budget}
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return err
	}
	return nil
}

// ask asks the store once.
func (w *waiter) ask(ctx context.Context, r BookRequest) error {
	booking, err := w.budget.Store.Book(ctx, r)
	if err != nil {
		w.booking = Booking{ID: r.ID, Budget: r.Budget}
		return err
	}
	// The wait is counted from the answer: then the caller leaves after its
	// slot, by as long as the answer took to come.
	w.due = time.Now().Add(booking.Slot.Sub(booking.Now))
	w.booking = booking
	w.budget.noticed(ctx, booking)
	return nil
}

func (w *waiter) request(longest time.Duration) BookRequest {
	return BookRequest{ID: NewBookingID(), Budget: w.budget.Name, Accounts: w.accounts,
		Cost: w.cost, MaxWait: longest, Now: w.budget.clock()}
}

// abandon hands back what a store that failed may have booked all the same.
func (w *waiter) abandon(err error) error {
	if passes(err) {
		w.handBack(w.booking, w.accounts)
	}
	return err
}

// handBack hands a booking back. If the store cannot be reached the slot is lost
// until it has left its window: the quota is then not all used, never overspent.
func (w *waiter) handBack(b Booking, accounts *Accounts) {
	ctx, stop := context.WithTimeout(context.Background(), handBackWithin)
	defer stop()
	_ = w.budget.Store.Cancel(ctx, CancelRequest{Booking: b, Accounts: accounts, Now: w.budget.clock()})
}

// longestWait returns how long the caller may still wait, and whether it is the
// context's deadline that says so.
func (w *waiter) longestWait(ctx context.Context, begun time.Time) (longest time.Duration, byDeadline bool) {
	longest = Forever
	if w.budget.MaxWait > 0 {
		longest = max(0, w.budget.MaxWait-time.Since(begun))
	}
	if deadline, found := ctx.Deadline(); found {
		if left := max(0, time.Until(deadline)); left < longest {
			return left, true
		}
	}
	return longest, false
}

func (w *waiter) exhausted(allowed time.Duration, byDeadline bool) error {
	return &ExhaustedError{
		Budget:     w.budget.Name,
		Account:    w.booking.Account,
		RetryAfter: w.booking.Slot.Sub(w.booking.Now),
		Allowed:    allowed,
		Deadline:   byDeadline,
	}
}

// passes reports whether the store failed in a way that asking again can mend.
func passes(err error) bool {
	failed, found := errors.AsType[*StoreError](err)
	return found && !failed.Permanent
}
