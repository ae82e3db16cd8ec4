package ration

import (
	"sync/atomic"

	"github.com/ration-go/ration/internal/observe"
)

// A reconciler is what a worker knows of one account's usage: by its own bookings, by the
// store's replies and by the provider's responses.
type reconciler struct {
	reports       observe.Reports
	announcements observe.Announcements
	comparison    observe.Comparison
	resets        observe.Resets
	pacing        pacing
	unclear       atomic.Int64 // what LimitUnclear told of last; 0: nothing
}

// reconcilerOf returns the account's reconciler; nil if no response has said anything about
// its limits.
func (b *Budget) reconcilerOf(account *budgetAccount) *reconciler {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.learned.Get(account.ID)
	if l == nil {
		return nil
	}
	return l.reconciler
}

// reconcilerFor returns the account's reconciler, which it makes if there is none.
func (b *Budget) reconcilerFor(account *budgetAccount) *reconciler {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.learnedOf(account)
	if l.reconciler == nil {
		l.reconciler = new(reconciler)
	}
	return l.reconciler
}
