// Package outage knows since when a store does not answer, and what a process may send meanwhile: its share of each limit, or all.
package outage

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/store"
)

// AskEvery is how often a process asks a store that is down whether it is back.
const AskEvery = time.Second

// An Outage is a store's failure, as one process knows it. The zero Outage is of a store that answers. It is safe for concurrent use.
type Outage struct {
	// Down reports whether the store did not answer when it was asked last. It is to be read only.
	Down atomic.Bool

	mu     sync.Mutex      // protects all below
	since  time.Time       // zero: the store answers
	next   time.Time       // when it is asked next
	shares *memstore.Store // the logs of this process's shares; nil: not yet made
	turn   int             // which account Open charges next
}

// Failed notes that the store did not answer. It reports whether the outage begins with that.
func (o *Outage) Failed() (begins bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if begins = o.since.IsZero(); begins {
		o.since = now
		o.Down.Store(true)
	}
	o.next = now.Add(AskEvery)
	return begins
}

// Answered notes that the store answers. It reports whether it had failed.
func (o *Outage) Answered() (wasDown bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wasDown = !o.since.IsZero()
	o.since, o.shares = time.Time{}, nil
	o.Down.Store(false)
	return wasDown
}

// IsTime reports whether the store is to be asked: it answers, or it is time to ask again.
func (o *Outage) IsTime() bool {
	if !o.Down.Load() {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return !time.Now().Before(o.next)
}

// Turn reports whether this caller is to ask the store, and whether that is down: then one caller does, every AskEvery.
func (o *Outage) Turn() (asks, down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return true, false
	}
	now := time.Now()
	if now.Before(o.next) {
		return false, true
	}
	o.next = now.Add(AskEvery)
	return true, true
}

// Shares returns the logs of this process's shares. At the beginning of an outage they are made, by a function that is told when that
// was; other callers wait for it.
func (o *Outage) Shares(fill func(shares *memstore.Store, since time.Time) error) (*memstore.Store, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shares == nil {
		shares := new(memstore.Store)
		if err := fill(shares, o.since); err != nil {
			return nil, err
		}
		o.shares = shares
	}
	return o.shares, nil
}

// Known returns the logs of this process's shares; nil: there are none.
func (o *Outage) Known() *memstore.Store {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shares
}

// Open charges the accounts in turn, and grants at once.
func (o *Outage) Open(r store.BookRequest) store.Booking {
	o.mu.Lock()
	account := r.Accounts.At(o.turn % r.Accounts.Len())
	o.turn++
	o.mu.Unlock()
	// The entry says no more than the scopes.
	entry := r.Accounts.Queue(r.Accounts.RelevantScopes(r.Scopes), r.Reserve) + "\x00"
	return store.Booking{ID: r.ID, Budget: r.Budget, Cost: r.Cost, Booked: true, Account: account.ID, Slot: r.Now, Now: r.Now, Entry: entry}
}
