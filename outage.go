package ration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ration-go/ration/internal/durable"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// An Outage is what callers do while the store does not answer: see [Budget.Outage]. What
// they send meanwhile is recorded in the logs when the store answers again, before anything
// else is booked.
type Outage int

const (
	// FailClosed sends nothing: callers retry the store for Budget.RetryStoreFor.
	FailClosed Outage = iota
	// Divide goes on with an equal share of every limit: Max divided by the number of
	// workers. The provider may see up to twice Max in the window in which the outage
	// begins, because a worker does not know what the others have booked.
	Divide
	// FailOpen sends everything at once: the provider refuses what is too much.
	FailOpen
)

// storeRetries is how long a caller has been retrying a booking that the store did not
// answer.
type storeRetries struct {
	pauses *backoff.ExponentialBackOff // nil: it has not begun
	named  time.Time                   // when the request got its ID
	wait   wait                        // from the first failure on, the questions included
}

// beforeRetry returns when it is time to ask again for a booking that the store did not
// answer, or why the caller gives up. It keeps the request's ID for as long as the store
// is sure to know it, so that a booking whose answer was lost is found again.
func (w *waiter) beforeRetry(ctx context.Context, r *store.BookRequest, retries *storeRetries, failed error) error {
	const sameID = 30 * time.Second
	b := w.budget
	switch {
	case b.Outage != FailClosed:
		// The next booking is made offline.
		w.cancelSoon()
		r.ID = store.NewBookingID()
		return nil
	case !w.waits || b.RetryStoreFor < 0 || w.unwanted != nil && w.unwanted():
		return failed
	case retries.pauses == nil:
		retries.pauses, retries.named = b.retryPauses(), time.Now()
		retries.wait = b.beginWait(ctx, w.traces, rationtrace.Wait{Reason: rationtrace.StoreDown, Cause: failed.Error()}, watchFrom, w.asleep)
	default:
		pause := retries.pauses.NextBackOff()
		if pause == backoff.Stop {
			return failed
		}
		_ = sleep(ctx, pause, wakers{})
	}
	if ctx.Err() != nil {
		if errors.Is(failed, ctx.Err()) {
			return failed
		}
		return fmt.Errorf("%w: %w", flight.Ended(ctx), failed)
	}
	if time.Since(retries.named) > sameID {
		w.cancelSoon()
		r.ID, retries.named = store.NewBookingID(), time.Now()
	}
	return nil
}

// retryPauses returns the pauses between two questions to a store that does not answer.
func (b *Budget) retryPauses() *backoff.ExponentialBackOff {
	longest := b.RetryStoreFor
	if longest == 0 {
		longest = defaultRetryStoreFor
	}
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(longest),
	)
}

// reachable reports whether to ask the store, after it has recorded what was sent without it.
func (b *Budget) reachable(ctx context.Context) bool {
	defer b.tell()
	return b.durable.Reach(ctx, b.fleet.State().Status.Version)
}

// bookOffline books without the store, as Divide or FailOpen says, and reports whether it did.
func (w *waiter) bookOffline(ctx context.Context, r store.BookRequest) (bool, error) {
	b, s, known := w.budget, &w.budget.durable, w.budget.fleet.State()
	if err := r.Validate(); err != nil {
		return false, err
	}

	accounts, err := b.keeper.InForceList(w.accounts)
	if err != nil {
		return false, err
	}
	var booked store.Booking
	if b.Outage == FailOpen {
		booked = s.BookOpen(r)
	} else {
		if r.Accounts, err = limits.Charged(durable.Divide(accounts.Accounts, max(1, known.Status.Workers), w.Cost, w.units)); err != nil {
			return false, err
		}
		if booked, err = s.BookShare(ctx, r, known.Pauses()); err != nil {
			return false, err
		}
	}

	w.id, w.account, w.Slot, w.now, w.entry = booked.ID, accounts.Find(booked.Account), booked.Slot, booked.Now, booked.Entry
	w.due = time.Now().Add(booked.Slot.Sub(booked.Now))
	w.soonest, w.offline = w.due, true
	if booked.Booked {
		s.EnterOffline(&booked, w.account, w.accounts.Beside(w.account.ID, w.Cost, w.units))
	}
	return booked.Booked, nil
}
