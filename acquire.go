package ration

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/inflight"
	"github.com/ration-go/ration/store"
)

// take takes a grant for the request, from other accounts than the barred ones, or
// closes the request's body. It holds the request back while it is a part of what is
// paused in the whole fleet.
func (t *Transport) take(req *http.Request, barred []string) (grant Grant, err error) {
	taken := false
	defer func() {
		if !taken { // also where a function of the caller's panics
			closeBody(req)
		}
	}()
	if t.Pool == nil {
		return Grant{}, errors.New("ration: Transport.Pool is nil: set it to ration.NewPool(budget, tokens...)")
	}
	if t.Pool.budget == nil {
		return Grant{}, t.Pool.budget.check()
	}
	ctx, cost, scopes := req.Context(), t.cost(req), t.scopes(req)
	if t.Scopes != nil {
		ctx = WithScopes(ctx, scopes...)
	}
	for {
		now, free, err := t.waitForPauses(ctx, req, scopes, barred)
		if err != nil {
			return Grant{}, err
		}
		grant, err := t.takeSmoothed(ctx, cost, now, free)
		switch {
		case err == nil && !t.excludes(req, grant):
			taken = true
			return grant, nil
		case err == nil:
			// The pause was made while the request waited for its slot.
			t.Pool.endProbe(grant.Token)
			grant.finish(-1)
			grant.cancelSoon()
		case errors.Is(err, errAllExcluded) && len(now) > len(barred):
			// One of the pauses has just begun.
		case free > 0 && ctx.Err() == nil && outOfTime(err):
			// An account that is paused for the request is free before the others.
			if err := t.Pool.budget.sleepUntil(ctx, free); err != nil {
				return Grant{}, err
			}
		default:
			return Grant{}, err
		}
	}
}

// smoothedAccounts is how many accounts a pool may have of which the full ones are left
// out of the store's choice: the store may keep an index for each list of accounts, so in
// a large pool a call is held back only if every account is full.
const smoothedAccounts = 16

// takeSmoothed takes a grant as takeWithin does, and counts its call as in flight. While
// external usage is seen it takes none of an account whose calls in flight may use up what
// is left: it waits until one of them has ended.
func (t *Transport) takeSmoothed(ctx context.Context, cost int, excluded []string, within time.Duration) (Grant, error) {
	b := t.Pool.budget
	if !b.reconciles.Load() {
		return t.takeWithin(ctx, cost, excluded, within, nil)
	}
	var candidates []string
	if b.smoother.Narrowed() {
		accounts, _, err := t.Pool.listWithout(excluded)
		if err != nil {
			return Grant{}, err
		}
		for i := range accounts.List {
			candidates = append(candidates, accounts.List[i].ID)
		}
	}
	for deadline := time.Now().Add(inflight.LongestHold); ; {
		grant, full, err := t.takeAdmitted(ctx, cost, excluded, candidates, within, deadline)
		if len(full) == 0 || ctx.Err() != nil || !outOfTime(err) {
			return grant, err
		}
		candidates = full // those that have room are spent
	}
}

// takeAdmitted takes a grant when one of the candidates has room for a call, and returns
// those that have none; without candidates every account has.
func (t *Transport) takeAdmitted(
	ctx context.Context, cost int, excluded, candidates []string, within time.Duration, deadline time.Time,
) (Grant, []string, error) {
	var booking *inflight.Booking
	var full []string
	var err error
	smoother := &t.Pool.budget.smoother
	if len(candidates) > 0 {
		if booking, full, err = smoother.Admit(ctx, candidates, deadline); err != nil {
			return Grant{}, nil, ended(ctx)
		}
		defer booking.Release()
	}
	if len(candidates) > smoothedAccounts {
		full = nil
	}
	if len(full) > 0 {
		excluded = append(full, excluded...)
		if within <= 0 || within > inflight.LongestHold {
			within = inflight.LongestHold
		}
	}
	grant, err := t.takeWithin(ctx, cost, excluded, within, booking.Release)
	if err == nil {
		smoother.Start(grant.account.ID)
		grant.counted = true
	}
	return grant, full, err
}

// finish says that the grant's call is not in flight any more, and how many units its
// response left; negative: that is not known.
func (g *Grant) finish(left int) {
	if g.counted {
		g.counted = false
		g.budget.smoother.Finish(g.account.ID, left)
	}
}

// takeWithin takes a grant whose slot is not later than that; zero: any.
func (t *Transport) takeWithin(ctx context.Context, cost int, excluded []string, within time.Duration, sleeping func()) (Grant, error) {
	if within > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, within)
		defer stop()
	}
	return t.Pool.take(ctx, cost, excluded, sleeping)
}

// outOfTime reports whether no slot came within the time that was allowed.
func outOfTime(err error) bool {
	return errors.Is(err, store.ErrExhausted) || errors.Is(err, context.DeadlineExceeded)
}

// waitForPauses waits for the end of what keeps the request back on every account. It returns
// the accounts that it is not to be charged to, and when the first of those that are
// paused is free again; zero: none is.
func (t *Transport) waitForPauses(ctx context.Context, req *http.Request, scopes, barred []string) ([]string, time.Duration, error) {
	b := t.Pool.budget
	for {
		pauses := b.keyPauses.Load()
		if pauses == nil || t.Pool.excludesAll(barred) {
			return barred, 0, nil
		}
		stored := b.storeNow()
		some, free, until := pauses.Excluded(cooldown.KeysOf(req, scopes), stored)
		if until.IsZero() {
			if len(some) == 0 {
				return barred, 0, nil
			}
			some = append(some, barred...)
			if !t.Pool.excludesAll(some) {
				return some, free.Sub(stored), nil
			}
			until = free
		}
		if err := b.sleepUntil(ctx, until.Sub(stored)); err != nil {
			return nil, 0, err
		}
	}
}

// excludes reports whether what the request is a part of is paused on the grant's account.
func (t *Transport) excludes(req *http.Request, grant Grant) bool {
	b := t.Pool.budget
	pauses := b.keyPauses.Load()
	if pauses == nil {
		return false
	}
	some, _, until := pauses.Excluded(cooldown.KeysOf(req, grant.scopes), b.storeNow())
	return !until.IsZero() || slices.Contains(some, grant.account.ID)
}

// sleepUntil waits so long, for no slot. A wait beyond the longest is an error at once.
func (b *Budget) sleepUntil(ctx context.Context, wait time.Duration) error {
	exhausted := &store.ExhaustedError{Budget: b.Name, RetryAfter: wait}
	if deadline, found := ctx.Deadline(); found && time.Until(deadline) < wait {
		exhausted.Allowed, exhausted.Deadline = time.Until(deadline), true
		return exhausted
	}
	if b.MaxWait > 0 && b.MaxWait < wait {
		exhausted.Allowed = b.MaxWait
		return exhausted
	}
	return sleep(ctx, wait)
}

// sleep waits so long, or returns why it stopped before.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// cost returns what the request costs.
func (t *Transport) cost(req *http.Request) int {
	switch a := requestOptionsOf(req.Context()); {
	case a != nil && a.hasCost:
		return a.cost
	case t.Cost != nil:
		return t.Cost(req)
	case t.Provider != nil && t.Provider.Cost != nil:
		return t.Provider.Cost(req)
	}
	return 1
}

// scopes returns those of the request.
func (t *Transport) scopes(req *http.Request) []string {
	if t.Scopes != nil {
		return t.Scopes(req)
	}
	if a := requestOptionsOf(req.Context()); a != nil {
		return a.scopes
	}
	return nil
}
