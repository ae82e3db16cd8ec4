package ration

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/pace"
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

// noteSpent tells once that the account has no room for long.
func (w *waiter) noteSpent(why rationtrace.Wait) {
	b := w.budget
	if why.Reason != rationtrace.Quota || w.Slot.Sub(w.now) < spentFrom {
		return
	}
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent.Sweep(func(_ spentKey, until time.Time) bool { return w.now.Sub(until) > spentFor })
	key := spentKey{w.account.ID, w.values}
	if b.spent.Get(key).IsZero() {
		b.emit(Event{Kind: QuotaSpent, Account: w.account.ID, Until: w.Slot, Cause: why.String()})
	}
	b.spent.Set(key, w.Slot)
	b.anySpent.Store(true)
}

// noteRoom tells that an account has room again for requests with these values, if it had none.
func (b *Budget) noteRoom(account, values string) {
	key := spentKey{account, values}
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.spent.Get(key).IsZero() {
		b.spent.Remove(key)
		b.anySpent.Store(b.spent.Len() > 0)
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
	b.mu.Lock()
	known, asks := b.bound, now.Sub(b.bound.at) >= time.Second
	if asks {
		b.bound.at = now
	}
	b.mu.Unlock()
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
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound = binding
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
