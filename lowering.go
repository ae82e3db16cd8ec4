package ration

import (
	"context"
	"time"

	"github.com/ration-go/ration/internal/headroom"
	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// leastUsed is the share of a limit that must be used for a refusal to be about it.
const leastUsed = 0.08

// lower has the fleet use less of an account's limits, which are too high.
func (r *reconciler) lower(b *Budget, account *budgetAccount) {
	longest := observe.Longest(account.limits)
	if !r.lowering.Refused(account.limits, longest, time.Now()) {
		return
	}
	b.lengthenWindow(account)
	index, used := b.mostUsed(account)
	b.mu.Lock()
	used -= r.lowering.Unserved(longest, time.Now()) * max(1, b.known.Workers)
	b.mu.Unlock()
	undo := r.lowering.Keep()
	setLowered(b, account, r.lowering.Lower(account.limits, account.full, longest, index, used), undo)
}

// mostUsed returns the index of the account's limit of which the largest share is used, since that is most
// likely the one that was exceeded, and the units in use; negative: the share is small, or the store does not answer.
func (b *Budget) mostUsed(account *budgetAccount) (index, used int) {
	index, most := -1, leastUsed
	for i, l := range b.usageOf(account) {
		if share := float64(l.Used+l.Ahead) / float64(l.Limit.Capacity()); share >= most {
			index, used, most = i, l.Used, share
		}
	}
	return index, used
}

// lengthenWindow has the account's window that began with a call end no sooner than that of the provider
// can, which has refused one: a whole window from now. Otherwise ours, which begins anew with the refused
// call, would be out of step from then on, and two of ours would fall into one of the provider's.
func (b *Budget) lengthenWindow(account *budgetAccount) {
	var window time.Duration
	for _, l := range account.Limits {
		switch {
		case l.FirstUse && window > 0:
			return // nobody knows which of them was exceeded
		case l.FirstUse:
			window = l.Window
		}
	}
	if window == 0 {
		return
	}
	ctx, stop := b.soon(context.Background())
	defer stop()
	at := b.storeNow().Add(window).Truncate(time.Microsecond)
	_ = tells(ctx, b, "reset", b.Store.Reset, store.ResetRequest{Budget: b.Name, Account: account.Account, At: at})
}

// raiseLowered raises limits that this worker or another has lowered, if nothing was refused for long.
func (b *Budget) raiseLowered(g *Grant) {
	if !b.reconciles.Load() && !b.adopts.Load() || g.offline {
		return
	}
	if account, understood := b.understand(g.account); understood {
		b.raiseAccount(account)
	}
}

// raiseAccount is raiseLowered for an account whose limits this worker understands.
func (b *Budget) raiseAccount(account *budgetAccount) {
	if r := b.reconcilerOf(account); r != nil && r.lowering.IsLow() {
		account = b.inForce(account)
		undo := r.lowering.Keep()
		setLowered(b, account, r.lowering.Raise(account.limits, account.full, observe.Longest(account.limits), account.since, time.Now()), undo)
	}
}

// raiseWhileWaiting raises lowered limits that hold a caller back until an instant, as soon as a served call would. The
// caller stops it.
func (b *Budget) raiseWhileWaiting(account *budgetAccount, due time.Time) (stop func() bool) {
	r := b.reconcilerOf(account)
	if r == nil || account.origin == headroom.UnknownOrigin {
		return nil
	}
	in := r.lowering.RaiseIn(observe.Longest(account.limits), account.since, time.Now())
	if in < 0 || !time.Now().Add(in).Before(due) {
		return nil
	}
	return time.AfterFunc(in, func() { b.raiseAccount(account) }).Stop
}

// setLowered has the fleet adopt limits, if there are any, in place of the account's full ones. If the store does not answer
// the lowering is as before, and goes on with the next response.
func setLowered(b *Budget, account *budgetAccount, limits []limit.Limit, undo func()) {
	if limits == nil {
		return
	}
	changed, err := b.learn(account, headroom.Controller, limits, account.full)
	if err != nil {
		undo()
	}
	if changed {
		b.notify(Event{Kind: HeadroomChanged, Account: account.ID, Ours: account.full, Theirs: limits,
			Cause: "the provider refuses calls, and does not say what it allows"})
	}
}
