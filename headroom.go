package ration

import (
	"slices"
	"time"

	"github.com/ration-go/ration/internal/headroom"
	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/provider"
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
