package ration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ration-go/ration/store"
)

// A waiter is one caller between its call and its grant: it books, sleeps and, if its
// slot is of no use, books again. It lives on its caller's stack and stays there as long
// as nothing else refers to it.
type waiter struct {
	budget   *Budget
	pool     *Pool    // whose accounts may be charged; nil: the token's account
	excluded []string // accounts of the pool that may not be charged, in ascending order
	token    Token
	cost     int
	waits    bool   // false: only a slot that has come will do
	sleeping func() // called when the slot that was booked lies ahead; nil: nobody
	options  bookOptions

	begun    time.Time // zero: there is no MaxWait
	accounts *accountList
	changed  <-chan struct{} // closed when the accounts change; nil: they never do
	booking  booking
	account  *budgetAccount // the charged one
	due      time.Time      // the slot on this process's clock, at the latest
	soonest  time.Time      // and at the soonest
	late     time.Duration
	newest   int   // the highest revision that the worker knew when it booked
	wakes    int64 // the budget's when it booked, or looked at its slot last
}

// regroup is how long a caller waits for others to cancel after the limits have changed, or
// an account was paused.
const regroup = 100 * time.Millisecond

// watchFrom is the wait from which on a caller has the store say when the status changes. Who
// waits for less books again, or is gone, before it could hear of much.
const watchFrom = 100 * time.Millisecond

// wait books a slot and returns when it has come. On an error nothing is booked.
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
		outcome := w.sleepUntilSlot(ctx)
		if outcome == completed {
			return nil
		}
		if outcome == accountsChanged {
			if err := w.moveAccount(ctx); err != nil {
				return err
			}
			continue
		}
		// Nothing was sent: another caller gets the slot before this one books again.
		w.budget.cancelSoon(w.booking, w.accounts)
		// All who wait cancel before one of them books, or they would queue behind each
		// other's old slots.
		switch outcome {
		case limitsChanged:
			_ = sleep(ctx, regroup, nil, nil)
		case slotPaused:
			_ = sleep(ctx, w.untilTurn(), nil, nil)
		}
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if err := w.rebook(ctx); err != nil {
			return err
		}
	}
}

func (w *waiter) grant() Grant {
	return Grant{Token: w.token, Cost: w.cost, Slot: w.booking.Slot, Late: w.late,
		budget: w.budget, soonest: w.soonest, id: w.booking.ID, account: w.account, entry: w.booking.Entry, total: w.booking.Total,
		now: w.booking.Now, offline: w.booking.offline, accounts: w.accounts, scopes: w.options.scopes}
}

// An outcome is how a caller's sleep ended.
type outcome int

const (
	completed       outcome = iota
	slotLost                // the caller woke too late, or the account was paused meanwhile
	slotPaused              // the account was paused beyond the slot, which lies ahead
	contextEnded            // the caller gives up
	accountsChanged         // the pool's tokens changed
	limitsChanged           // the fleet has other limits
	woken                   // the status changed, perhaps to no effect on this caller
)

// sleep is the one way in which callers wait: for a time, until their context ends, or until
// one of the channels is closed. A nil channel wakes nobody.
func sleep(ctx context.Context, length time.Duration, accounts, status <-chan struct{}) outcome {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-accounts:
		return accountsChanged
	case <-status:
		return woken
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return contextEnded
	}
	return completed
}

// waitWithin sleeps for a time, without a slot. If the caller may not wait that long it
// returns an *ExhaustedError at once.
func (b *Budget) waitWithin(ctx context.Context, length time.Duration) error {
	w := waiter{budget: b, waits: true, begun: time.Now()}
	if allowed, byDeadline := w.longestWait(ctx); length > allowed {
		return &store.ExhaustedError{Budget: b.Name, RetryAfter: length, Allowed: allowed, Deadline: byDeadline}
	}
	if sleep(ctx, length, nil, nil) == contextEnded {
		return ended(ctx)
	}
	return nil
}

// sleepUntilSlot sleeps until the slot, or until something wakes the caller earlier.
func (w *waiter) sleepUntilSlot(ctx context.Context) outcome {
	if !w.booking.Slot.After(w.booking.Now) {
		if ctx.Err() != nil {
			return contextEnded
		}
		return completed
	}
	if w.sleeping != nil {
		w.sleeping()
	}
	if time.Until(w.due) >= watchFrom {
		w.budget.watch.Begin(w.budget.watchStore)
		defer w.budget.watch.End()
	}
	for how := woken; how != completed; {
		wake := w.budget.nextWake() // before the look, or a change after it would wake nobody
		if how = completed; w.budget.wakes.Load() != w.wakes {
			how = w.lookAtSlot()
		}
		if how == completed {
			how = sleep(ctx, time.Until(w.due), w.changed, wake)
		}
		if how != completed && how != woken {
			return how
		}
	}
	w.late = time.Since(w.due)
	if tolerance := w.account.tolerance; tolerance > 0 && w.late > tolerance {
		return slotLost
	}
	if !w.budget.slotIsValid(ctx, &w.booking.Booking, w.accounts.shared) {
		return slotLost
	}
	if int(w.budget.newestRevision.Load()) > w.newest {
		return limitsChanged
	}
	return completed
}

// lookAtSlot returns completed if the slot is still of use after the changes since the caller
// booked or looked last, and otherwise why not.
func (w *waiter) lookAtSlot() outcome {
	b := w.budget
	w.wakes = b.wakes.Load()
	if int(b.newestRevision.Load()) > w.newest {
		return limitsChanged
	}
	switch {
	case b.pausedUntil(&w.booking.Booking, w.accounts.shared).After(w.booking.Slot):
		return slotPaused
	case w.pool != nil && !w.pool.has(w.booking.Account):
		return accountsChanged
	}
	return completed
}

// untilTurn returns how long a caller whose slot lies in a pause waits before it books again:
// regroup, and up to as long again by where in the pause its slot lies, so that all book in
// the order of their slots. Nobody waits beyond its slot.
func (w *waiter) untilTurn() time.Duration {
	left := time.Until(w.due)
	length := left + w.budget.pausedUntil(&w.booking.Booking, w.accounts.shared).Sub(w.booking.Slot)
	behind := time.Duration(float64(regroup) * float64(left) / float64(length))
	return min(left, regroup+behind.Truncate(time.Microsecond))
}

// moveAccount books on the changed accounts. A caller whose account is still there keeps
// its slot unless it gets an earlier one.
func (w *waiter) moveAccount(ctx context.Context) error {
	b, old := w.budget, *w
	if err := w.findAccounts(); err != nil {
		b.cancelSoon(old.booking, old.accounts)
		return err
	}
	account := w.accounts.find(old.booking.Account)
	if old.booking.offline || account == nil {
		b.cancelSoon(old.booking, old.accounts)
		return w.book(ctx)
	}
	left := time.Until(old.due) - time.Microsecond
	if left <= 0 {
		return nil
	}
	r := w.request(left)
	err := w.ask(ctx, &r)
	if err == nil && w.booking.Booked {
		b.cancelSoon(old.booking, old.accounts)
		return nil
	}
	if err != nil {
		b.cancelSoon(w.booking, w.accounts)
		if ctx.Err() != nil {
			b.cancelSoon(old.booking, old.accounts)
			return err
		}
	}
	// There is no earlier slot, or no answer.
	w.booking, w.account, w.due, w.soonest = old.booking, account, old.due, old.soonest
	return nil
}

// findAccounts finds the accounts that may be charged now.
func (w *waiter) findAccounts() (err error) {
	if w.pool != nil {
		w.accounts, w.changed, err = w.pool.list(w.excluded)
	} else {
		w.accounts, err = w.budget.accountsOf(&w.token)
	}
	return err
}

// rebook finds the accounts again and books.
func (w *waiter) rebook(ctx context.Context) error {
	if err := w.findAccounts(); err != nil {
		return err
	}
	return w.book(ctx)
}

// book books a slot within the longest wait. While the store does not answer it retries,
// or books offline, as Budget.Outage says.
func (w *waiter) book(ctx context.Context) error {
	b := w.budget
	allowed, byDeadline := w.longestWait(ctx)
	r := w.request(allowed)
	var retries storeRetries
	for {
		var err error
		if b.Outage != FailClosed && !b.reachable(ctx) {
			err = w.bookOffline(ctx, r)
		} else {
			err = w.ask(ctx, &r)
		}
		switch {
		case err == nil && w.booking.Booked:
			return nil
		case err == nil:
			return &store.ExhaustedError{Budget: b.Name, Account: w.booking.Account, RetryAfter: w.booking.Slot.Sub(w.booking.Now),
				Allowed: allowed, Deadline: byDeadline}
		case b.concede(err, w.accounts):
			if err := w.findAccounts(); err != nil {
				return err
			}
			r = w.request(allowed)
		case isTemporary(err):
			b.storeFailed(err)
			if err := w.beforeRetry(ctx, &r, &retries, err); err != nil {
				b.cancelSoon(w.booking, w.accounts) // the store may have booked it all the same
				return err
			}
		default:
			return err
		}
		allowed, byDeadline = w.longestWait(ctx)
		r.MaxWait = allowed
	}
}

// longestWait returns how long the caller may still wait, and whether it is the context's
// deadline that bounds the wait.
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

// cancelWithin bounds how long a caller that gives up waits for the store. The store goes
// on afterwards.
const cancelWithin = 250 * time.Millisecond

// soon returns a context for a short call of the store, which is made even if the caller has
// given up.
func soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
}

// cancelSoon cancels a booking on which nothing was sent. If the store cannot be reached
// the slot counts until it has left its window: some quota is then unused, and none is
// overspent.
func (b *Budget) cancelSoon(booked booking, accounts *accountList) {
	ctx, stop := soon(context.Background())
	defer stop()
	_ = b.cancel(ctx, booked, accounts)
}

// ended returns the error of a context that has ended, with its cause if that is another.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
