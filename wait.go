package ration

import (
	"context"
	"errors"
	"time"

	"github.com/ration-go/ration/internal/holding"
	"github.com/ration-go/ration/internal/waiters"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A waiter is one caller between its call and its grant, which it fills in: it books, sleeps
// and, if its slot is of no use, books again. It lives on its caller's stack and stays there
// as long as nothing else refers to it.
type waiter struct {
	Grant
	pool     *Pool    // whose accounts may be charged; nil: the token's account
	excluded []string // accounts of the pool that may not be charged, in ascending order
	waits    bool     // false: only a slot that has come will do
	sleeping func()   // called when the slot that was booked lies ahead; nil: nobody
	reserve  int      // in thousandths

	begun     time.Time       // zero: there is no MaxWait
	asleep    time.Time       // when the caller first found its slot ahead; zero: it never did
	changed   <-chan struct{} // closed when the accounts change; nil: they never do
	due       time.Time       // the slot on this process's clock, at the latest
	limitNews int64           // the budget's when it booked
	wakes     int64           // the budget's when it booked, or looked at its slot last
	resumes   int64           // likewise; 0: it has not looked yet
	news      int64           // of free slots, when it booked

	place *waiters.Waiter // in the queue; nil: its slot comes soon
	hold  *holding.Hold   // what the store is told of its slot; nil: nothing
}

// regroup is how long a caller waits at least for others to cancel after the limits have
// changed, or an account was paused.
const regroup = 100 * time.Millisecond

// watchFrom is the wait from which on a caller has the store say when the status changes. A caller
// that waits for less books again, or is gone, before it could hear of much.
const watchFrom = 100 * time.Millisecond

// take waits for a slot of the token's account. On an error the grant is zero.
func (w *waiter) take(ctx context.Context) (err error) {
	if w.accounts, err = w.budget.accountsOf(&w.Token); err == nil {
		err = w.wait(ctx)
	}
	if err != nil {
		w.Grant = Grant{}
	}
	return err
}

// wait books a slot and returns when it has come. On an error nothing is booked.
func (w *waiter) wait(ctx context.Context) (err error) {
	if w.scopes, w.reserve, err = w.budget.bookOptions(ctx); err != nil {
		return err
	}
	w.traces = w.budget.tracesOf(ctx)
	if w.budget.MaxWait > 0 {
		w.begun = time.Now()
	}
	if err := w.book(ctx); err != nil {
		return err
	}
	for {
		outcome := w.sleepUntilSlot(ctx)
		if outcome == completed {
			if w.leave(); !w.isLate() {
				w.holder = store.BookingID{} // the slot is the caller's own: nobody takes it back
				return nil
			}
			outcome = slotMissed
		}
		if outcome == accountsChanged || outcome == slotOffered {
			if err := w.lookForEarlier(ctx, outcome == slotOffered); err != nil {
				return err
			}
			continue
		}
		if outcome == limitsChanged && w.keepsLimits(ctx) {
			continue // another account's have changed
		}
		if outcome == slotMissed {
			w.cancelLate()
		} else {
			// Nothing was sent: another caller gets the slot before this one books again.
			w.cancelSoon()
		}
		w.traces.rebooking(ctx, w, outcome)
		// All who wait cancel before one of them books, or they would queue behind each
		// other's old slots.
		switch outcome {
		case limitsChanged:
			_ = sleep(ctx, w.untilTurn(), wakers{})
		case slotResumed:
			_ = sleep(ctx, w.untilTurn()/4, wakers{})
		case slotPaused:
			_ = sleep(ctx, min(w.untilTurn(), time.Until(w.due)), wakers{})
		}
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if err := w.rebook(ctx); err != nil {
			return err
		}
	}
}

// sleepUntilSlot sleeps until the slot, or until something wakes the caller earlier.
func (w *waiter) sleepUntilSlot(ctx context.Context) outcome {
	if !w.Slot.After(w.now) {
		if ctx.Err() != nil {
			return contextEnded
		}
		if w.budget.anySpent.Load() {
			w.budget.noteRoom(w.account.ID)
		}
		return completed
	}
	if w.asleep.IsZero() {
		w.asleep = time.Now()
	}
	if w.sleeping != nil {
		w.sleeping()
	}
	if w.place = nil; w.isTold() || time.Until(w.due) >= watchFrom {
		w.joinQueue()
		defer w.leaveQueue()
	}
	if w.pool != nil && w.pool.sourced.Load() {
		defer w.pool.askAhead(ctx, w.account.ID, w.due).Stop()
	}
	if b, account := w.budget, w.account; account.edition.Version > 0 {
		if time.Until(w.due) > doubtAfter {
			defer time.AfterFunc(doubtAfter, func() { b.doubtLearned(account) }).Stop()
		}
		if stop := b.raiseWhileWaiting(account, w.due); stop != nil {
			defer stop()
		}
	}
	why := w.why(ctx)
	w.noteSpent(why)
	wait := w.budget.beginWait(ctx, w.traces, why, time.Until(w.due))
	defer func() { w.Waits = wait.end(w.Waits) }()
	confirmed := w.accounts.local != nil // its answer is there at once
	for how := woken; how != completed; {
		wake := w.budget.nextWake() // before the look, or a change after it would wake nobody
		if how = completed; w.budget.wakes.Load() != w.wakes {
			how = w.lookAtSlot()
		}
		if how == completed && !confirmed {
			if how = sleep(ctx, time.Until(w.due)-w.budget.askBefore(), w.wakers(wake)); how == completed {
				confirmed, how = true, woken
				w.budget.confirmFor(ctx, w.due)
			}
		} else if how == completed {
			how = sleep(ctx, time.Until(w.due), w.wakers(wake))
		}
		if how != completed && how != woken {
			return how
		}
	}
	switch valid, held := w.slotIsValid(ctx), w.isHeld(ctx); {
	case !held:
		return slotTaken
	case !valid:
		return slotLost
	case w.budget.limitNews.Load() > w.limitNews:
		return limitsChanged
	}
	return completed
}

// leave measures how late the caller is for its slot, which has come. It is the last step before the caller
// returns: whatever may block comes before it, or the caller would be later than it says.
func (w *waiter) leave() {
	now := time.Now()
	w.Late = 0
	if w.accounts.local == nil || w.Slot.After(w.now) { // a store in this process answers at once
		w.Late = max(0, now.Sub(w.due))
	}
	if !w.asleep.IsZero() {
		w.Waited = now.Sub(w.asleep)
	}
}

// isLate reports whether the caller has its slot so late that the calls of the next window could
// follow it too closely.
func (w *waiter) isLate() bool { return w.account.tolerance > 0 && w.Late > w.account.tolerance }

// book books a slot within the longest wait. While the store does not answer it retries,
// or books offline, as Budget.Outage says.
func (w *waiter) book(ctx context.Context) error {
	b := w.budget
	allowed, byDeadline := w.longestWait(ctx)
	var r store.BookRequest
	w.request(&r, allowed)
	var retries storeRetries
	behind := 0 // the changes of limits that it has come too late for
	for {
		var booked bool
		var err error
		if b.Outage != FailClosed && !b.reachable(ctx) {
			booked, err = w.bookOffline(ctx, r)
		} else {
			booked, err = w.ask(ctx, &r)
		}
		switch {
		case booked:
			w.traces.booked(ctx, w)
			return nil
		case err == nil:
			why := w.why(ctx)
			w.noteSpent(why)
			return &store.ExhaustedError{Budget: b.Name, Account: w.account.ID, RetryAfter: w.Slot.Sub(w.now),
				Allowed: allowed, Deadline: byDeadline, Wait: why}
		case behind < askAtMost && (errors.Is(err, errBehind) || b.isOverridden(err, w.accounts)):
			behind++
			if err := w.findAccounts(); err != nil {
				return err
			}
			r = store.BookRequest{}
			w.request(&r, allowed)
		case isTemporary(err):
			b.storeFailed(err)
			if err := w.beforeRetry(ctx, &r, &retries, err); err != nil {
				w.cancelSoon() // the store may have booked it all the same
				return err
			}
		default:
			return err
		}
		allowed, byDeadline = w.longestWait(ctx)
		r.MaxWait = allowed
	}
}

// rebook finds the accounts again and books.
func (w *waiter) rebook(ctx context.Context) error {
	if err := w.findAccounts(); err != nil {
		return err
	}
	return w.book(ctx)
}

// waitWithin sleeps for a time, without a slot, or until something is resumed after the budget's
// resumes were so many, and adds to the waits. If the caller may not wait that long it returns an
// *ExhaustedError at once.
func (b *Budget) waitWithin(ctx context.Context, length time.Duration, resumes int64, why rationtrace.Wait, waits *[]rationtrace.Wait) error {
	w := waiter{Grant: Grant{budget: b}, waits: true, begun: time.Now()}
	if allowed, byDeadline := w.longestWait(ctx); length > allowed {
		return &store.ExhaustedError{Budget: b.Name, RetryAfter: length, Allowed: allowed, Deadline: byDeadline, Wait: why}
	}
	return b.sleepUnlessResumed(ctx, length, resumes, why, waits)
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

// why returns what the caller waits for until the slot that it has booked, or would.
func (w *waiter) why(ctx context.Context) rationtrace.Wait {
	why := rationtrace.Wait{Budget: w.budget.Name, Account: w.account.ID}
	if paused := w.pause(); paused.Until.After(w.now) && !w.Slot.Before(paused.Until) {
		why.Reason, why.Until, why.Cause = rationtrace.Pause, paused.Until, paused.Cause
		return why
	}
	why.Reason, why.Until, why.Limit = rationtrace.Quota, w.Slot, w.bindingLimit(ctx)
	return why
}
