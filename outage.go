package ration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/limit"
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

const (
	// probeEvery is how often a worker asks a store that is down whether it is back.
	probeEvery = time.Second
	// heartbeat is how often a worker tells the store that it is there: workers that have to divide
	// count each other, and operators want to see them.
	heartbeat = 10 * time.Second
)

// An outage is a store's failure, as one budget knows it.
type outage struct {
	down atomic.Bool // since is not zero; read after every booking

	mu          sync.Mutex      // protects all below
	since       time.Time       // zero: the store answers
	nextProbe   time.Time       // when a worker asks it next
	shares      *memstore.Store // the logs of this process's shares; nil: not yet made
	nextAccount int             // that FailOpen charges
}

// askBefore returns how long before its slot a caller asks for the status if that is too old when
// the slot comes, so that the answer is there by then: a store that is far away would make the
// caller late.
func (b *Budget) askBefore() time.Duration {
	away := b.away.Value()
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
// it. While the store is down, one caller every probeEvery tries it.
func (b *Budget) reachable(ctx context.Context) bool {
	b.outage.mu.Lock()
	down := !b.outage.since.IsZero()
	if down {
		if time.Now().Before(b.outage.nextProbe) {
			b.outage.mu.Unlock()
			return false
		}
		b.outage.nextProbe = time.Now().Add(probeEvery)
	}
	b.outage.mu.Unlock()

	recorded := 0
	for {
		b.mu.Lock()
		one := b.journal.beginRecording()
		b.mu.Unlock()
		if len(one.list) == 0 {
			break
		}
		count, err := b.record(ctx, b.recordInStore, time.Time{}, one.list, "outage", one.since)
		if err != nil {
			return false
		}
		recorded += count
		b.mu.Lock()
		b.journal.endRecording(one, b.estimatedNow())
		b.mu.Unlock()
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
		booked = b.bookOpen(r)
	} else {
		shares, err := b.sharesFrom(ctx, r.Now)
		if err != nil {
			return false, err
		}
		if r.Accounts, err = divideAll(accounts.Accounts, workers, w.Cost, w.units); err != nil {
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
		b.mu.Lock()
		b.journal.add(w.account, w.accounts.beside(w.account.ID, w.Cost, w.units), &booked, time.Time{})
		b.mu.Unlock()
	}
	return booked.Booked, nil
}

// bookOpen charges the accounts in turn and grants at once, as FailOpen says.
func (b *Budget) bookOpen(r store.BookRequest) store.Booking {
	b.outage.mu.Lock()
	account := r.Accounts.At(b.outage.nextAccount % r.Accounts.Len())
	b.outage.nextAccount++
	b.outage.mu.Unlock()
	// The entry says no more than the scopes.
	entry := r.Accounts.Queue(r.Accounts.RelevantScopes(r.Scopes), r.Reserve) + "\x00"
	return store.Booking{ID: r.ID, Budget: r.Budget, Cost: r.Cost, Booked: true, Account: account.ID, Slot: r.Now, Now: r.Now, Entry: entry}
}

// sharesFrom returns the logs of this process's shares. At the beginning of an outage they
// hold what the process has booked, and the pauses that it knows of.
func (b *Budget) sharesFrom(ctx context.Context, now time.Time) (*memstore.Store, error) {
	b.outage.mu.Lock()
	defer b.outage.mu.Unlock()
	if b.outage.shares != nil {
		return b.outage.shares, nil
	}
	b.mu.Lock()
	before := b.journal.choose(func(*journalEntry) bool { return true })
	pauses := maps.Collect(b.paused.All())
	b.mu.Unlock()
	shares := new(memstore.Store)
	if _, err := b.record(ctx, shares.Record, now, before, "shares", b.outage.since); err != nil {
		return nil, err
	}
	for account, pause := range pauses {
		if left := pause.Until.Sub(now).Truncate(time.Microsecond); left > 0 {
			if _, err := shares.Pause(ctx, store.PauseRequest{Budget: b.Name, Account: account, For: left, Now: now}); err != nil {
				return nil, err
			}
		}
	}
	b.outage.shares = shares
	return shares, nil
}

// divideAll returns the accounts with a share of each limit.
func divideAll(a *store.Accounts, workers, cost int, units []int) (*store.Accounts, error) {
	list := make([]store.Account, a.Len())
	for i, account := range a.All() {
		list[i] = divide(account, workers, cost)
	}
	shared := make([]store.Account, len(a.Shared()))
	for i, account := range a.Shared() {
		shared[i] = divide(account, workers, cost)
	}
	meters := make([]store.Meter, len(a.Meters()))
	for i, meter := range a.Meters() {
		meters[i] = store.Meter{Unit: meter.Unit, Limits: divide(store.Account{Limits: meter.Limits}, workers, units[i]).Limits}
	}
	return chargedAccounts(list, shared, meters)
}

// divide returns the account with a share of each limit. If a share is smaller than the
// cost, it is enlarged to the cost and its window lengthened as much.
func divide(a store.Account, workers, cost int) store.Account {
	limits := make([]limit.Limit, len(a.Limits))
	for i, l := range a.Limits {
		share := l.Max / workers
		if least := max(1, cost); share < least {
			share = min(least, l.Max)
			longer := float64(l.Window) * float64(workers) * float64(share) / float64(l.Max)
			l.Window = time.Duration(min(longer, float64(limit.MaxWindow))).Truncate(time.Microsecond)
			l.Resolution = 0
		}
		l.Max = share
		if l.Burst > 0 {
			l.Burst = min(share, max(1, cost, l.Burst/workers))
		}
		limits[i] = l
	}
	return store.Account{ID: a.ID, Limits: limits}
}
