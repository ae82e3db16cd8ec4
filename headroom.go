package ration

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/headroom"
	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// If a competing client spends a token too, a window is full earlier than the log says, by
// what that client spends between two responses. Responses report it too late for the
// calls in flight. So while external usage is seen the fleet leaves headroom: it uses less
// than the whole limit, first a little less, and leaves twice as much after each throttled
// response that the log did not foresee. It uses the whole limit again after some windows
// without external usage.

// headroom returns the share of the full limits that is left to competing clients.
func (e *effective) headroom() float64 {
	share, _ := headroom.Of(e.limits, e.full)
	return share
}

// wasRefused has the fleet use less of an account's limits, because a response was throttled for a quota
// of that scope though the log had capacity left. If responses tell what is left, competing clients
// spend the rest; if none has, the limits are too high.
func (b *Budget) wasRefused(scope provider.Scope, g *Grant) {
	if scope.HasShared() || scope.HasObject() {
		return // another limit than the account's was exceeded
	}
	account, understood := b.understand(g.account)
	r := b.reconcilerFor(account)
	switch {
	case !understood:
	case r.reports.Any():
		r.leaveHeadroom(b, account)
	case !scope.Has(provider.ScopeEndpoint) && slices.Equal(g.account.limits, account.limits):
		r.lower(b, account) // and not for calls that were booked before the last change
	}
}

// leaveHeadroom has the fleet leave more of the account's limits to competing clients.
func (r *reconciler) leaveHeadroom(b *Budget, account *budgetAccount) {
	longest := observe.Longest(account.Limits)
	r.comparison.Expect(b.storeNow().Add(longest))
	if share, changed := r.sharing.Refused(account.headroom(), longest, time.Now()); changed {
		setHeadroom(b, account, share)
	}
}

// reduceHeadroom leaves less of the limits after some windows without external usage, if they
// are known to be lower for that.
func (r *reconciler) reduceHeadroom(b *Budget, account *budgetAccount) {
	share := account.headroom()
	if share == 0 {
		return
	}
	longest, now := observe.Longest(account.Limits), time.Now()
	if r.sharing.Ends(share, account.since, longest, now) {
		r.comparison.Expect(b.storeNow().Add(longest)) // a little of it hides among the calls in flight
	}
	if share, changed := r.sharing.Quiet(share, account.since, longest, now); changed {
		setHeadroom(b, account, share)
	}
}

// setHeadroom has the fleet adopt the account's full limits, each lower by the share.
func setHeadroom(b *Budget, account *budgetAccount, share float64) {
	limits := headroom.Leave(account.full, share)
	if changed, _ := b.learn(account, headroom.Controller, limits, account.full); changed {
		b.notify(Event{Kind: HeadroomChanged, Account: account.ID, Ours: account.full, Theirs: limits})
	}
}

// Limits that are refused where no response tells what is left are too high: the fleet uses less of them, and tries more
// after a time without refusals.

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
