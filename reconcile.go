package ration

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// adoptAnnounced has the fleet adopt the limits that the provider has announced, if they
// differ. A lower limit is adopted at once; a higher one not soon
// after another, in case responses contradict each other. One step is tenfold at most.
func (r *reconciler) adoptAnnounced(b *Budget, account *budgetAccount, observed []observe.Observation) {
	const seldom = time.Minute
	limits := slices.Clone(account.limits)
	lower, higher := false, false
	given := b.currentRules().of(account.given, account.inherits)
	for _, o := range observed {
		old := limits[o.Limit]
		limits[o.Limit] = atMost(o.Toward(old), given, o.Limit)
		lower = lower || limits[o.Limit].Capacity() < old.Capacity()
		higher = higher || limits[o.Limit].Capacity() > old.Capacity()
	}
	if !lower && (!higher || time.Since(account.since) < seldom && !r.announcements.Answered()) {
		return
	}
	next := account.effective
	next.limits, next.origin = limits, pace.Provider
	if b.learn(account, next) {
		r.comparison.Forget()
		b.tell(Event{Kind: LimitLearned, Account: account.ID, Ours: account.limits, Theirs: limits})
	}
}

// atMost returns an announced limit, or what an operator has set in its place if that is lower.
func atMost(announced limit.Limit, given effective, at int) limit.Limit {
	if given.origin == pace.Operator && at < len(given.limits) && given.limits[at].Capacity() < announced.Capacity() {
		return given.limits[at]
	}
	return announced
}

// recordResets sends the store the ends of the windows that begin with a call.
func (r *reconciler) recordResets(ctx context.Context, b *Budget, account *budgetAccount, observed []observe.Observation, now time.Time) {
	for _, o := range observed {
		if !account.Limits[o.Limit].FirstUse || !o.Reset.Known {
			continue
		}
		end := now.Add(o.Reset.Value).Truncate(time.Microsecond)
		if r.resets.IsNews(o, end) {
			_ = b.durable.Reset(ctx, store.ResetRequest{Account: account.Account, At: end, Within: o.ResetWithin()})
		}
	}
}

// reconcile has the store record the units that the provider has counted and the log lacks,
// if there may be any.
func (r *reconciler) reconcile(ctx context.Context, b *Budget, account *budgetAccount, grant Grant, observed []observe.Observation, now time.Time) {
	request, ask := r.comparison.Compare(store.ReconcileRequest{Budget: b.Name, Account: account.Account, Scopes: grant.scopes},
		observe.Call{Slot: grant.Slot, Cost: grant.Cost, Total: grant.total}, observed, now)
	for ask {
		reply, err := b.durable.Reconcile(ctx, request)
		var missing int
		if request, missing, ask = r.comparison.Answered(request, grant.total, reply, err); missing > 0 {
			b.tell(Event{Kind: ExternalUsage, Account: account.ID, Count: missing})
		}
	}
}
