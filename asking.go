package ration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// askAgain bounds how often a booking is asked for again because a log was lost or
// a clock has stepped.
const askAgain = 4

// ask asks the store once, and again after what it has lost is mended.
func (w *waiter) ask(ctx context.Context, r *BookRequest) error {
	b := w.budget
	forgets := b.forgets()
	var (
		err   error
		asked time.Time
	)
	for left := askAgain; left > 0; left-- {
		if forgets || b.now != nil {
			asked = time.Now()
		}
		if forgets {
			b.reckon(r, asked)
		}
		if left == 1 {
			r.Expect = time.Time{} // the way is too slow to compare clocks over
		}
		if memory, is := b.Store.(*MemoryStore); is {
			err = memory.book(ctx, r, &w.booking)
		} else {
			w.booking, err = b.Store.Book(ctx, *r)
		}
		if err == nil && w.booking.Ahead {
			r.Ahead = b.compare(w.booking.Now)
			continue
		}
		if err != nil || !w.booking.Lost {
			break
		}
		if err = b.refresh(ctx); err != nil {
			break
		}
	}
	if err == nil && (w.booking.Lost || w.booking.Ahead) {
		err = &StoreError{Op: "book", Err: errors.New("the store loses its logs again and again")}
	}
	if err != nil {
		w.booking = Booking{ID: r.ID, Budget: r.Budget}
		return err
	}
	at := w.accounts.find(w.booking.Account)
	if at < 0 {
		return &StoreError{Op: "book", Permanent: true, Err: fmt.Errorf("account %q was not asked for", w.booking.Account)}
	}
	// The wait is counted from where the store's clock stood at the latest, so that the
	// caller does not leave before its slot; how late it left at the most, from where it
	// stood at the soonest. A MemoryStore tells when it was.
	arrived := w.booking.read
	if arrived.IsZero() {
		arrived = time.Now()
		w.soonest, w.due = b.clocks.place(w.booking.Now, asked, arrived)
	} else {
		w.soonest, w.due = arrived, arrived
	}
	if wait := w.booking.Slot.Sub(w.booking.Now); wait > 0 {
		w.soonest, w.due = w.soonest.Add(wait), w.due.Add(wait)
	}
	b.answered(ctx, &w.booking, w.accounts, at, arrived)
	w.newest = max(w.newest, w.booking.Ruling.Revision)
	return nil
}

func (w *waiter) request(longest time.Duration) BookRequest {
	b := w.budget
	w.newest = b.newest()
	return BookRequest{ID: NewBookingID(), Budget: b.Name, Accounts: w.accounts, Scopes: w.demand.scopes,
		Keep: w.demand.keep, Revision: w.revision, Cost: w.cost, MaxWait: longest, Now: b.clock()}
}

// persist asks until the store answers. It asks with the same ID for as long as
// the store is sure to know it, so that an answer that was lost is found again.
func (w *waiter) persist(ctx context.Context, r BookRequest, err error) error {
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
		r.MaxWait, _ = w.longestWait(ctx)
		err = w.ask(ctx, &r)
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

// passes reports whether the store failed in a way that asking again can mend.
func passes(err error) bool {
	failed, found := errors.AsType[*StoreError](err)
	return found && !failed.Permanent
}
