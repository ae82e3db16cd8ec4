package ration

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Outage is what a budget does while its store does not answer.
type Outage int

const (
	// FailClosed sends nothing: callers wait for the store for as long as
	// Patience says, and then get an error. It is the zero value.
	FailClosed Outage = iota
	// Divide goes on with an equal share of every limit: Max divided by the
	// workers that the store last knew of. What this process has booked counts
	// against its share; what the others have does not, so in the window in
	// which the outage begins the provider may see up to twice Max. When the
	// store is back, what was spent is entered in its logs before more is booked.
	Divide
	// FailOpen sends everything at once, and enters it in the logs when the store is
	// back. The provider refuses what is too much.
	FailOpen
)

const (
	// probeEvery is how often a store that is down is asked whether it is back.
	probeEvery = time.Second
	// heartbeat is how often a worker that may have to divide tells of itself.
	heartbeat = 10 * time.Second
)

// An outage is a store's failure, as one budget knows it.
type outage struct {
	down atomic.Bool // since is not zero: to be asked after every booking

	mu          sync.Mutex      // protects all below
	since       time.Time       // zero: the store answers
	nextProbe   time.Time       // when it is asked next
	shares      *memstore.Store // what this process spends of its shares; nil: not yet
	nextAccount int             // of the account that Open charges next
}

// isTemporary reports whether err is a store's failure that asking again may mend.
func isTemporary(err error) bool {
	failed, _ := errors.AsType[*store.StoreError](err)
	return failed.Temporary()
}

// storeFailed notes that the store did not answer.
func (b *Budget) storeFailed(err error) {
	b.outage.mu.Lock()
	news := b.outage.since.IsZero()
	if news {
		b.outage.since = time.Now()
		b.outage.down.Store(true)
	}
	b.outage.nextProbe = time.Now().Add(probeEvery)
	b.outage.mu.Unlock()
	if news {
		b.notify(Event{Kind: StoreDown, Err: err})
	}
}

// storeRecovered notes that the store answers.
func (b *Budget) storeRecovered(entered int) {
	b.outage.mu.Lock()
	news := !b.outage.since.IsZero()
	b.outage.since, b.outage.shares = time.Time{}, nil
	b.outage.down.Store(false)
	b.outage.mu.Unlock()
	if news {
		b.notify(Event{Kind: StoreBack, Count: entered})
	}
}

// reachable reports whether to ask the store, and enters first what was spent
// without it. Of the callers that find it down one at a time finds out.
func (b *Budget) reachable(ctx context.Context) bool {
	b.outage.mu.Lock()
	began := b.outage.since
	down := !began.IsZero()
	if down {
		if time.Now().Before(b.outage.nextProbe) {
			b.outage.mu.Unlock()
			return false
		}
		b.outage.nextProbe = time.Now().Add(probeEvery)
	}
	b.outage.mu.Unlock()

	b.mu.Lock()
	var unentered []accountSpendings
	if b.journal.hasUnrecorded {
		unentered = b.journal.choose(func(o *journalEntry) bool { return o.booked == 0 })
		b.journal.hasUnrecorded = len(unentered) > 0
	}
	b.mu.Unlock()
	if !down && len(unentered) == 0 {
		return true
	}
	count, err := b.record(ctx, b.Store, time.Time{}, unentered, "outage", began)
	if err == nil && count == 0 {
		_, err = b.Store.Status(ctx, store.StatusRequest{Budget: b.Name})
	}
	if err != nil {
		return false
	}
	b.mu.Lock()
	b.journal.markRecorded(unentered, b.estimatedNow())
	b.mu.Unlock()
	b.storeRecovered(count)
	return true
}

// bookOffline books without the store, as Outage says.
func (w *waiter) bookOffline(ctx context.Context, r store.BookRequest) error {
	b := w.budget
	if err := r.Validate(); err != nil {
		return err
	}
	b.mu.Lock()
	r.Now = b.estimatedNow()
	workers := max(1, b.known.Workers)
	b.mu.Unlock()

	var booked store.Booking
	if b.Outage == FailOpen {
		booked = b.bookOpen(r)
	} else {
		shares, err := b.sharesFrom(ctx, r.Now)
		if err != nil {
			return err
		}
		if r.Accounts, err = divideAll(w.accounts.Accounts, workers, w.cost); err != nil {
			return err
		}
		if booked, err = shares.Book(ctx, r); err != nil {
			return err
		}
	}
	w.due = time.Now().Add(booked.Slot.Sub(booked.Now))
	w.soonest, w.booking, w.account = w.due, booking{booked, true}, w.accounts.find(booked.Account)
	if booked.Booked {
		b.mu.Lock()
		b.journal.add(w.account, w.accounts.shared, &booked, time.Time{})
		b.mu.Unlock()
	}
	return nil
}

// bookOpen charges the accounts in turn and grants at once.
func (b *Budget) bookOpen(r store.BookRequest) store.Booking {
	b.outage.mu.Lock()
	account := r.Accounts.At(b.outage.nextAccount % r.Accounts.Len())
	b.outage.nextAccount++
	b.outage.mu.Unlock()
	// The entry says no more than the scopes.
	entry := r.Accounts.Queue(r.Accounts.RelevantScopes(r.Scopes), r.Reserve) + "\x00"
	return store.Booking{ID: r.ID, Budget: r.Budget, Cost: r.Cost, Booked: true, Account: account.ID, Slot: r.Now, Now: r.Now, Entry: entry}
}

// sharesFrom returns the logs of this process's shares. At the beginning of an
// outage they hold what it booked before, and the pauses that it knows of.
func (b *Budget) sharesFrom(ctx context.Context, now time.Time) (*memstore.Store, error) {
	b.outage.mu.Lock()
	defer b.outage.mu.Unlock()
	if b.outage.shares != nil {
		return b.outage.shares, nil
	}
	b.mu.Lock()
	before := b.journal.choose(func(*journalEntry) bool { return true })
	pauses := maps.Clone(b.paused)
	b.mu.Unlock()
	shares := new(memstore.Store)
	if _, err := b.record(ctx, shares, now, before, "shares", b.outage.since); err != nil {
		return nil, err
	}
	for p, until := range pauses {
		if left := until.Sub(now).Truncate(time.Microsecond); left > 0 && p.Key == "" {
			if _, err := shares.Pause(ctx, store.PauseRequest{Budget: b.Name, Account: p.Account, For: left, Now: now}); err != nil {
				return nil, err
			}
		}
	}
	b.outage.shares = shares
	return shares, nil
}

// divide returns the accounts with a share of each limit.
func divideAll(a *store.Accounts, workers, cost int) (*store.Accounts, error) {
	list := make([]store.Account, a.Len())
	for i, account := range a.All() {
		list[i] = divide(account, workers, cost)
	}
	shared := make([]store.Account, len(a.Shared()))
	for i, account := range a.Shared() {
		shared[i] = divide(account, workers, cost)
	}
	return shareAccounts(list, shared)
}

// divide returns the account with a share of each limit. A share that is smaller
// than the cost, though Max is not, becomes as large in a longer window.
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
