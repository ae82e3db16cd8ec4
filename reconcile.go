package ration

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/headroom"
	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// reconcile compares what a response says about the account's limits with the log and with
// the limits themselves. It returns how many units are left by the provider's count;
// negative: unknown. It sets the scope of a response whose limit is its endpoint's own.
func (t *Transport) reconcile(req *http.Request, f *provider.Feedback, grant Grant) (left int) {
	b := t.Pool.budget
	account, p := b.inForce(grant.account), t.provider()
	observed := observe.Limits(f.Windows, account.full, grant.scopes, t.Cost != nil || p.Cost != nil, p)
	if len(observed) == 0 {
		return -1
	}
	ctx, stop := b.soon(req.Context())
	defer stop()
	r := b.reconcilerFor(account)
	now := b.storeNow()
	observed, apart := r.announcements.Take(cooldown.Endpoint(req), observed, account.full, now)
	if apart && f.Scope == "" {
		f.Scope = provider.ScopeEndpoint // it pauses no other
	}
	if len(observed) == 0 {
		return -1
	}
	if !r.adoptAnnounced(b, account, observed) {
		r.reduceHeadroom(b, account)
	}
	r.reports.Note(observed, now)
	r.recordResets(ctx, b, account, observed, now)
	r.reconcile(ctx, b, account, grant, observed, now)
	return slices.MinFunc(observed, func(x, y observe.Observation) int { return x.Left - y.Left }).Left
}

// adoptAnnounced has the fleet adopt the limits that the provider has announced, if they
// differ, and reports whether it did. A lower limit is adopted at once; a higher one not soon
// after another, in case responses contradict each other. One step is tenfold at most.
func (r *reconciler) adoptAnnounced(b *Budget, account *budgetAccount, observed []observe.Observation) bool {
	const seldom = time.Minute
	full := slices.Clone(account.full)
	told, lower, higher := false, false, false
	for _, o := range observed {
		old := full[o.Limit]
		full[o.Limit] = o.Toward(old)
		told = told || o.Announced()
		lower = lower || full[o.Limit].Capacity() < old.Capacity()
		higher = higher || full[o.Limit].Capacity() > old.Capacity()
	}
	limits := headroom.Leave(full, account.headroom())
	if slices.Equal(full, account.limits) {
		limits = full // another worker learned them at once: they are no headroom of the limits before
	}
	switch {
	case told && account.source == fromFleet:
		// Only now is it known whether another worker left headroom.
		limits = full
		if _, may := headroom.Of(account.limits, full); may {
			limits = account.limits
		}
	case !lower && !higher:
		return false
	case !lower && time.Since(account.since) < seldom && !r.announcements.Answered():
		return false
	}
	if !b.learn(account, limits, full) {
		return false
	}
	r.comparison.Forget()
	b.notify(Event{Kind: LimitLearned, Account: account.ID, Ours: account.limits, Theirs: full})
	return true
}

// recordResets sends the store the ends of the windows that begin with a call.
func (r *reconciler) recordResets(ctx context.Context, b *Budget, account *budgetAccount, observed []observe.Observation, now time.Time) {
	for _, o := range observed {
		if !account.Limits[o.Limit].FirstUse || !o.Reset.Known {
			continue
		}
		end := now.Add(o.Reset.Value).Truncate(time.Microsecond)
		if r.resets.IsNews(o, end) {
			_ = tells(ctx, b, "reset", b.Store.Reset, store.ResetRequest{Budget: b.Name, Account: account.Account, At: end, Within: o.ResetWithin()})
		}
	}
}

// reconcile has the store record the units that the provider has counted and the log lacks,
// if there may be any.
func (r *reconciler) reconcile(ctx context.Context, b *Budget, account *budgetAccount, grant Grant, observed []observe.Observation, now time.Time) {
	request, ask := r.comparison.Compare(store.ReconcileRequest{Budget: b.Name, Account: account.Account, Scopes: grant.scopes},
		observe.Call{Slot: grant.Slot, Cost: grant.Cost, Total: grant.total}, observed, now)
	longest := observe.Longest(account.Limits)
	if r.comparison.Expects(now) {
		b.smoother.Narrow(account.ID, longest/observe.ReplyShare)
	}
	for ask {
		reply, err := asks(ctx, b, "reconcile", b.Store.Reconcile, request)
		var missing int
		if request, missing, ask = r.comparison.Answered(request, grant.total, reply, err); missing > 0 {
			b.notify(Event{Kind: ExternalUsage, Account: account.ID, Count: missing})
			account = b.inForce(account)
			share, changed := r.sharing.Missing(account.headroom(), longest, time.Now())
			if changed {
				setHeadroom(b, account, share)
			}
		}
	}
}
