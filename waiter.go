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
	demand demand
	// source returns the accounts that may be charged, and a channel that is
	// closed when they change; nil if they never do.
	source func() (*Accounts, <-chan struct{}, error)

	accounts *Accounts
	changed  <-chan struct{}
	booking  Booking
	due      time.Time // the slot on this process's clock, at the latest
	soonest  time.Time // and at the soonest
	late     time.Duration
	newest   int // revision that the budget knew when the slot was booked
}

// handBackWithin bounds how long a caller that gives up waits for its slot to be
// handed back. The store goes on with it afterwards.
const handBackWithin = 250 * time.Millisecond

func (w *waiter) grant(t Token) Grant {
	return Grant{Token: t, Cost: w.cost, Slot: w.booking.Slot, Late: w.late,
		budget: w.budget, soonest: w.soonest, booking: w.booking, accounts: w.accounts, scopes: w.demand.scopes}
}

// try books a slot that has come.
func (w *waiter) try(ctx context.Context) error {
	return w.book(ctx, func() (time.Duration, bool) { return 0, false }, false)
}

// wait books a slot and returns when it has come.
func (w *waiter) wait(ctx context.Context) error {
	begun := time.Now()
	longest := func() (time.Duration, bool) { return w.longestWait(ctx, begun) }
	if err := w.book(ctx, longest, true); err != nil {
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
			if err := w.move(ctx, longest); err != nil {
				return err
			}
		case slotLost:
			// Its holder was too late, or the account was paused: nothing was
			// sent, so the slot goes back before another is booked.
			w.handBack(w.booking, w.accounts)
			if err := w.book(ctx, longest, true); err != nil {
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
			if err := w.book(ctx, longest, true); err != nil {
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
	if w.booking.Slot.After(w.booking.Now) {
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
	paused := w.budget.pausedUntil(ctx, w.booking.Account)
	for _, shared := range w.accounts.Shared() {
		if until := w.budget.pausedUntil(ctx, shared.ID); until.After(paused) {
			paused = until
		}
	}
	if paused.After(w.booking.Slot) || w.budget.isVoid(w.booking) {
		return slotLost
	}
	if w.budget.hasNewer(w.newest) {
		return limitsChanged
	}
	return slotCame
}

// A bound tells how long a caller may still wait, and whether it is the context's
// deadline that says so.
type bound func() (longest time.Duration, byDeadline bool)

// move books on the changed accounts. A waiter whose account is still there
// keeps its slot unless an earlier one is to be had.
func (w *waiter) move(ctx context.Context, longest bound) error {
	old, accounts, due, soonest := w.booking, w.accounts, w.due, w.soonest
	if err := w.find(); err != nil {
		w.handBack(old, accounts)
		return err
	}
	if old.away || w.accounts.find(old.Account) < 0 {
		w.handBack(old, accounts)
		return w.book(ctx, longest, true)
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

// find asks which accounts there are.
func (w *waiter) find() (err error) {
	w.accounts, w.changed, err = w.source()
	return err
}

// book books within the longest wait. A caller that is patient goes on asking a
// store that does not answer for as long as Patience says.
func (w *waiter) book(ctx context.Context, longest bound, patient bool) error {
	if err := w.find(); err != nil {
		return err
	}
	b := w.budget
	allowed, byDeadline := longest()
	if b.Outage != HoldBack && !b.reachable(ctx) {
		if err := w.alone(ctx, allowed); err != nil {
			return err
		}
		return w.booked(allowed, byDeadline)
	}
	r := w.request(allowed)
	err := w.ask(ctx, r)
	if passes(err) {
		b.fell(err)
		switch {
		case b.Outage != HoldBack:
			// What the store may have booked all the same.
			w.handBack(w.booking, w.accounts)
			err = w.alone(ctx, allowed)
		case patient && b.Patience >= 0:
			err = w.persist(ctx, longest, r, err)
		}
	}
	if err != nil {
		if passes(err) {
			w.handBack(w.booking, w.accounts)
		}
		return err
	}
	return w.booked(allowed, byDeadline)
}

// booked returns an error if the slot lies beyond the longest wait.
func (w *waiter) booked(allowed time.Duration, byDeadline bool) error {
	if w.booking.Booked {
		return nil
	}
	return &ExhaustedError{
		Budget:     w.budget.Name,
		Account:    w.booking.Account,
		RetryAfter: w.booking.Slot.Sub(w.booking.Now),
		Allowed:    allowed,
		Deadline:   byDeadline,
	}
}

// persist asks until the store answers. It asks with the same ID for as long as
// the store is sure to know it, so that an answer that was lost is found again.
func (w *waiter) persist(ctx context.Context, longest bound, r BookRequest, err error) error {
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
		r.MaxWait, _ = longest()
		err = w.ask(ctx, r)
		if err != nil && !passes(err) {
			return backoff.Permanent(err)
		}
		return err
	}
	if stopped := backoff.Retry(again, backoff.WithContext(policy, ctx)); stopped != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			return fmt.Errorf("%w: %w", ended(ctx), err)
		}
		return err
	}
	return nil
}

// askAgain bounds how often a booking is asked for again because a log was lost or
// a clock has stepped.
const askAgain = 4

// ask asks the store once, and again after what it has lost is mended.
func (w *waiter) ask(ctx context.Context, r BookRequest) error {
	b := w.budget
	var (
		booking Booking
		err     error
		asked   time.Time
	)
	for left := askAgain; left > 0; left-- {
		b.reckon(&r)
		if left == 1 {
			r.Expect = time.Time{} // the way is too slow to compare clocks over
		}
		asked = time.Now()
		booking, err = b.Store.Book(ctx, r)
		if err == nil && booking.Ahead {
			r.Ahead = b.compare(booking.Now)
			continue
		}
		if err != nil || !booking.Lost {
			break
		}
		if err = b.refresh(ctx); err != nil {
			break
		}
	}
	if err == nil && (booking.Lost || booking.Ahead) {
		err = &StoreError{Op: "book", Err: errors.New("the store loses its logs again and again")}
	}
	if err != nil {
		w.booking = Booking{ID: r.ID, Budget: r.Budget}
		return err
	}
	at := w.accounts.find(booking.Account)
	if at < 0 {
		return &StoreError{Op: "book", Permanent: true, Err: fmt.Errorf("account %q was not asked for", booking.Account)}
	}
	// The store read its clock between the question and the answer. The wait is
	// counted from the answer, so that the caller does not leave before its
	// slot; how late it left at the most, from the question.
	wait := booking.Slot.Sub(booking.Now)
	w.due, w.soonest = time.Now().Add(wait), asked.Add(wait)
	w.booking = booking
	b.answered(ctx, booking, w.accounts, w.accounts.At(at))
	w.newest = max(w.newest, booking.Ruling.Revision)
	return nil
}

func (w *waiter) request(longest time.Duration) BookRequest {
	b := w.budget
	b.mu.Lock()
	revision := b.revision()
	w.newest = b.newest()
	b.mu.Unlock()
	return BookRequest{ID: NewBookingID(), Budget: b.Name, Accounts: w.accounts, Scopes: w.demand.scopes,
		Keep: w.demand.keep, Revision: revision, Cost: w.cost, MaxWait: longest, Now: b.clock()}
}

// handBack hands a booking back. If the store cannot be reached the slot is lost
// until it has left its window: the quota is then not all used, never overspent.
func (w *waiter) handBack(b Booking, accounts *Accounts) {
	ctx, stop := context.WithTimeout(context.Background(), handBackWithin)
	defer stop()
	_ = w.budget.handBack(ctx, b, accounts)
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

// passes reports whether the store failed in a way that asking again can mend.
func passes(err error) bool {
	failed, found := errors.AsType[*StoreError](err)
	return found && !failed.Permanent
}
