package ration

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/rationtrace"
)

// spentFrom is the wait from which on people are told that a quota is spent: of shorter ones there are too
// many.
const spentFrom = time.Minute

// spentFor is how long after an account has room again it is known that it had none.
const spentFor = 24 * time.Hour

// A spentKey is an account, and the values of what its limits count apart: one route may be spent while another has room.
type spentKey struct{ account, values string }

// A spent is what a budget knows of quotas that have no room for long. The zero spent knows none.
type spent struct {
	any atomic.Bool // whether until has any account

	mu    sync.Mutex                     // protects all below, and is taken before no other lock but that of events
	until sweep.Map[spentKey, time.Time] // of which QuotaSpent was told
	bound boundBy
}

// noteSpent tells once that the account has no room for long.
func (w *waiter) noteSpent(why rationtrace.Wait) {
	b := w.budget
	if why.Reason != rationtrace.Quota || w.Slot.Sub(w.now) < spentFrom {
		return
	}
	defer b.tell()
	b.spent.mu.Lock()
	defer b.spent.mu.Unlock()
	b.spent.until.Sweep(func(_ spentKey, until time.Time) bool { return w.now.Sub(until) > spentFor })
	key := spentKey{w.account.ID, w.values}
	if b.spent.until.Get(key).IsZero() {
		b.emit(Event{Kind: QuotaSpent, Account: w.account.ID, Until: w.Slot, Cause: why.String()})
	}
	b.spent.until.Set(key, w.Slot)
	b.spent.any.Store(true)
}

// noteRoom tells that an account has room again for requests with these values, if it had none.
func (b *Budget) noteRoom(account, values string) {
	key := spentKey{account, values}
	defer b.tell()
	b.spent.mu.Lock()
	defer b.spent.mu.Unlock()
	if !b.spent.until.Get(key).IsZero() {
		b.spent.until.Remove(key)
		b.spent.any.Store(b.spent.until.Len() > 0)
		b.emit(Event{Kind: QuotaBack, Account: account})
	}
}

// A boundBy is the limit for which callers waited for an account when the store was asked last.
type boundBy struct {
	account, limit string
	at             time.Time
}

// bindingLimit returns the limit for which the caller waits. Of several the store is asked, once a second
// by all callers, if the wait is so long that nobody notices; otherwise it is not known.
func (w *waiter) bindingLimit(ctx context.Context) string {
	b := w.budget
	covers := func(scope string) bool { return scope == "" || slices.Contains(w.scopes, scope) }
	var only *limit.Limit
	found := 0
	count := func(limits []limit.Limit) {
		for i := range limits {
			if covers(limits[i].Scope) {
				found, only = found+1, &limits[i]
			}
		}
	}
	count(w.account.WithoutMargin)
	for i := range w.accounts.Shared {
		count(w.accounts.Shared[i].WithoutMargin)
	}
	paced := ""
	if n := len(w.account.WithoutMargin); len(w.account.Limits) > n {
		paced = "pace " + pace.Text(w.account.Limits[n])
	}
	if found == 1 && len(w.units) == 0 && paced == "" {
		return only.String()
	}
	if w.offline || w.Slot.Sub(w.now) < time.Second || len(w.accounts.Shared) > 0 {
		return paced
	}

	now := time.Now()
	b.spent.mu.Lock()
	known, asks := b.spent.bound, now.Sub(b.spent.bound.at) >= time.Second
	if asks {
		b.spent.bound.at = now
	}
	b.spent.mu.Unlock()
	switch {
	case asks:
	case known.account == w.account.ID:
		return known.limit
	default:
		return ""
	}

	one, err := b.keeper.List(w.accounts.Rules, *w.account)
	if err == nil {
		one, err = one.WithValues(w.values)
	}
	if err != nil {
		return ""
	}
	soon, stop := b.durable.Soon(ctx)
	defer stop()
	all, err := b.usage(soon, one)
	if err != nil {
		return ""
	}

	binding := boundBy{account: w.account.ID, limit: paced, at: now}
	var latest time.Time
	for _, u := range all[0].Limits {
		if covers(u.Limit.Scope) && u.Remaining < w.unitsOf(u.Limit.Unit) && u.FreeAt.After(latest) {
			latest, binding.limit = u.FreeAt, u.Limit.String()
		}
	}
	b.spent.mu.Lock()
	defer b.spent.mu.Unlock()
	b.spent.bound = binding
	return binding.limit
}

// unitsOf returns how many of a unit the caller books.
func (w *waiter) unitsOf(unit string) int {
	for i := range w.accounts.Meters {
		if w.accounts.Meters[i].Unit == unit && unit != "" {
			return w.units[i]
		}
	}
	return w.Cost
}
