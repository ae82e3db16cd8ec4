package ration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/internal/outage"
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

// heartbeat is how often a worker tells the store that it is there: workers that have to divide
// count each other, and operators want to see them.
const heartbeat = 10 * time.Second

// askBefore returns how long before its slot a caller asks for the status if that is too old when
// the slot comes, so that the answer is there by then: a store that is far away would make the
// caller late.
func (b *Budget) askBefore() time.Duration {
	away := b.clocks.Away.Value()
	return away + away/4 + time.Millisecond
}

// confirmFor asks for the status if it is too old at an instant of this process's clock.
func (b *Budget) confirmFor(ctx context.Context, due time.Time) {
	b.mu.Lock()
	stale := due.Sub(b.confirmedAt) > confirmAfter
	b.mu.Unlock()
	if stale && b.mayAnswer() {
		_ = b.refresh(ctx) // or confirmStatus does
	}
}

// storeRetries is how long a caller has been retrying a booking that the store did not
// answer.
type storeRetries struct {
	pauses *backoff.ExponentialBackOff // nil: it has not begun
	named  time.Time                   // when the request got its ID
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
	default:
		pause := retries.pauses.NextBackOff()
		if pause == backoff.Stop {
			return failed
		}
		wait := b.beginWait(ctx, w.traces, rationtrace.Wait{Reason: rationtrace.StoreDown, Cause: failed.Error()}, watchFrom)
		_ = sleep(ctx, pause, wakers{})
		w.Waits = wait.end(w.Waits)
	}
	if ctx.Err() != nil {
		if errors.Is(failed, ctx.Err()) {
			return failed
		}
		return fmt.Errorf("%w: %w", ended(ctx), failed)
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

// reachable reports whether to ask the store, after it has recorded what was sent without
// it. While the store is down, one caller now and then tries it.
func (b *Budget) reachable(ctx context.Context) bool {
	mine, down := b.outage.Turn()
	if !mine {
		return false
	}
	recorded := 0
	for {
		one := b.journal.Unrecorded()
		if len(one.List) == 0 {
			break
		}
		count, err := b.record(ctx, b.recordInStore, time.Time{}, one.List, "outage", one.Since)
		if err != nil {
			return false
		}
		recorded += count
		b.journal.Recorded(one, b.estimatedNow())
	}
	if down && recorded == 0 {
		if _, err := asks(ctx, b, "status", b.Store.Status, store.StatusRequest{Budget: b.Name, Known: b.version.Load()}); err != nil {
			return false
		}
	}
	if down || recorded > 0 {
		b.storeRecovered(recorded)
		b.tell()
	}
	return true
}

// bookOffline books without the store, as Divide or FailOpen says, and reports whether it did.
func (w *waiter) bookOffline(ctx context.Context, r store.BookRequest) (bool, error) {
	b := w.budget
	if err := r.Validate(); err != nil {
		return false, err
	}
	r.Now, r.KnownCard = b.estimatedNow(), 0 // a share has no card
	b.mu.Lock()
	workers := max(1, b.known.Workers)
	b.mu.Unlock()

	accounts, err := b.inForceList(w.accounts)
	if err != nil {
		return false, err
	}
	var booked store.Booking
	if b.Outage == FailOpen {
		booked = b.outage.Open(r)
	} else {
		shares, err := b.sharesFrom(ctx, r.Now)
		if err != nil {
			return false, err
		}
		if r.Accounts, err = chargedAccounts(outage.Divide(accounts.Accounts, workers, w.Cost, w.units)); err != nil {
			return false, err
		}
		if booked, err = shares.Book(ctx, r); err != nil {
			return false, err
		}
	}
	w.id, w.account, w.Slot, w.now, w.entry = booked.ID, accounts.find(booked.Account), booked.Slot, booked.Now, booked.Entry
	w.due = time.Now().Add(booked.Slot.Sub(booked.Now))
	w.soonest, w.offline = w.due, true
	if booked.Booked {
		b.journal.Add(w.account, w.accounts.beside(w.account.ID, w.Cost, w.units), &booked, time.Time{})
	}
	return booked.Booked, nil
}

// sharesFrom returns the logs of this process's shares. At the beginning of an outage they
// hold what the process has booked, and the pauses that it knows of.
func (b *Budget) sharesFrom(ctx context.Context, now time.Time) (*memstore.Store, error) {
	return b.outage.Shares(func(shares *memstore.Store, since time.Time) error {
		b.mu.Lock()
		pauses := maps.Collect(b.paused.All())
		b.mu.Unlock()
		if _, err := b.record(ctx, shares.Record, now, b.journal.All(), "shares", since); err != nil {
			return err
		}
		for account, pause := range pauses {
			if left := pause.Until.Sub(now).Truncate(time.Microsecond); left > 0 {
				if _, err := shares.Pause(ctx, store.PauseRequest{Budget: b.Name, Account: account, For: left, Now: now}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
