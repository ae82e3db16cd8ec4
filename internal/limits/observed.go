package limits

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
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
func (k *Keeper) reconcilerOf(account *Account) *reconciler {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.learned.Get(account.ID)
	if l == nil {
		return nil
	}
	return l.reconciler
}

// reconcilerFor returns the account's reconciler, which it makes if there is none.
func (k *Keeper) reconcilerFor(account *Account) *reconciler {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.learnedOf(account)
	if l.reconciler == nil {
		l.reconciler = new(reconciler)
	}
	return l.reconciler
}

// adoptAnnounced has the fleet adopt the limits that the provider has announced, if they
// differ. A lower limit is adopted at once; a higher one not soon
// after another, in case responses contradict each other. One step is tenfold at most.
func (r *reconciler) adoptAnnounced(k *Keeper, account *Account, observed []observe.Observation) {
	const seldom = time.Minute
	limits := slices.Clone(account.WithoutMargin)
	lower, higher := false, false
	given := k.Rules().of(account.given, account.inherits)
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
	next.WithoutMargin, next.origin = limits, pace.Provider
	if k.learn(account, next) {
		r.comparison.Forget()
		k.Owner.Learned(account.ID, account.WithoutMargin, limits, "")
	}
}

// atMost returns an announced limit, or what an operator has set in its place if that is lower.
func atMost(announced limit.Limit, given effective, at int) limit.Limit {
	if given.origin == pace.Operator && at < len(given.WithoutMargin) && given.WithoutMargin[at].Capacity() < announced.Capacity() {
		return given.WithoutMargin[at]
	}
	return announced
}

// recordResets sends the store the ends of the windows that begin with a call.
func (r *reconciler) recordResets(ctx context.Context, k *Keeper, account *Account, observed []observe.Observation, now time.Time) {
	for _, o := range observed {
		if !account.Limits[o.Limit].FirstUse || !o.Reset.Known {
			continue
		}
		end := now.Add(o.Reset.Value).Truncate(time.Microsecond)
		if r.resets.IsNews(o, end) {
			_ = k.Store.Reset(ctx, store.ResetRequest{Account: account.Account, At: end, Within: o.ResetWithin()})
		}
	}
}

// reconcile has the store record the units that the provider has counted and the log lacks,
// if there may be any.
func (r *reconciler) reconcile(ctx context.Context, k *Keeper, account *Account, call *Call, observed []observe.Observation, now time.Time) {
	request, ask := r.comparison.Compare(store.ReconcileRequest{Budget: k.Budget, Account: account.Account, Scopes: call.Scopes},
		observe.Call{Slot: call.Slot, Cost: call.Cost, Total: call.Total}, observed, now)
	for ask {
		reply, err := k.Store.Reconcile(ctx, request)
		var missing int
		if request, missing, ask = r.comparison.Answered(request, call.Total, reply, err); missing > 0 {
			k.Owner.External(account.ID, missing)
		}
	}
}

// AddReports adds what responses have said of an account's limits.
func (k *Keeper) AddReports(u *store.Usage, account *Account) {
	r := k.reconcilerOf(account)
	SplitPace(u)
	for j := range u.Limits {
		u.Limits[j].Limit = account.WithoutMargin[j]
		if r != nil {
			said := r.reports.Of(j)
			u.Limits[j].Reported, u.Limits[j].ReportedAt = said.Left, said.At
		}
	}
}

// SplitPace tells the pace from the limits beside which it is kept.
func SplitPace(u *store.Usage) {
	if last := len(u.Limits) - 1; last > 0 && pace.Is(u.Limits[last].Limit) {
		u.Paces, u.Limits = []limit.Limit{pace.Shown(u.Limits[last].Limit)}, u.Limits[:last]
	}
}
