package ration

import (
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// handleResponse reads a response, calls OnRefusal if the response was throttled, and
// reconciles the log with what the provider counted.
func (a *attempts) handleResponse(resp *http.Response, grant Grant) provider.Feedback {
	t := a.transport
	f := a.provider.ReadResponse(resp, time.Now())
	trace := traceOf(resp)
	trace.feedback = &f
	if f.Refused || f.Cooldown.Known {
		a.cause = causeOf(resp, &f, grant)
	}
	if f.Refused {
		grant.budget.rates.refused.Add(1)
		grant.traces.refused(a.req, &grant, resp.StatusCode, &f, a.cause)
		if t.OnRefusal != nil {
			t.OnRefusal(resp, grant)
		}
	}
	if len(f.Windows) > 0 && !grant.offline {
		t.reconcile(resp.Request, &f, grant)
	}
	return f
}

// pauseTarget pauses the accounts, endpoints or objects that a throttled response affects,
// for the whole fleet, for as long as the response asks and MaxPause allows. It reports whether the store has recorded the
// pause of the accounts.
func (a *attempts) pauseTarget(f *provider.Feedback, scope provider.Scope, grant Grant, asked time.Duration) bool {
	length := min(asked, a.maxPause).Truncate(time.Microsecond)
	if length <= 0 {
		return true
	}
	b := a.transport.Pool.budget
	ctx, stop := b.durable.Soon(a.req.Context())
	defer stop()
	target := cooldown.TargetOf(scope, a.req, f.Object, grant.scopes, b.sharedScopes())
	if f.Reason == provider.ReasonOverload && f.Scope == "" {
		target = cooldown.Target{Keys: []cooldown.Key{cooldown.EndpointKey(a.req)}}
	}
	if len(target.Keys) > 0 {
		account := ""
		if target.Account {
			account = grant.account.ID
		}
		for _, key := range target.Keys {
			apart := time.Duration(0)
			if asked > a.maxPause {
				apart = triedFor
			}
			b.fleet.PauseAnyway(ctx, store.PauseRequest{Account: account, Key: string(key), For: length, Apart: apart, Cause: causeFor(a.cause)})
		}
		return true
	}
	spacing := spacingAfterPause(grant.account.Limits)
	ofAll := spacing / time.Duration(grant.accounts.Len())
	if asked > a.maxPause {
		spacing, ofAll = triedFor, allTriedFor
	}
	accounts := target.Shared
	switch {
	case target.Account:
		accounts = []string{grant.account.ID}
	case len(target.Shared) == 0:
		accounts, spacing = []string{""}, ofAll
	}
	recorded := true
	for _, account := range accounts {
		_, err := b.fleet.Pause(ctx, store.PauseRequest{Account: account, For: length, Apart: spacing, Cause: causeFor(a.cause)})
		recorded = recorded && err == nil
	}
	return recorded
}

// needsReading reports whether a response may say anything about quotas or tokens. Most say
// nothing.
func (t *Transport) needsReading(resp *http.Response) bool {
	p := t.provider()
	return resp.StatusCode >= 400 || p.ReadSuccessBody || t.Pool.hasSuspects.Load() || t.Pool.budget.fleet.State().Tried || p.MentionsLimits(resp.Header)
}

func (t *Transport) provider() *provider.Provider {
	if t.Provider == nil {
		return &unknownProvider
	}
	return t.Provider
}

// unknownProvider reads the headers and codes that most APIs use.
var unknownProvider provider.Provider

// reconcile compares what a response says about the account's limits with the log and with
// the limits themselves. It sets the scope of a response whose limit is its endpoint's own.
func (t *Transport) reconcile(req *http.Request, f *provider.Feedback, grant Grant) {
	b := t.Pool.budget
	if len(grant.units) > 0 {
		t.reconcileMeters(req, f.Windows, grant)
	}
	account, understood := b.understand(grant.account)
	p := t.provider()
	observed := observe.Limits(f.Windows, account.limits, grant.scopes, t.Cost != nil || p.Cost != nil)
	if len(observed) == 0 {
		if n := observe.Unclear(f.Windows, account.limits); n > 0 && b.reconcilerFor(account).unclear.Swap(n) != n {
			b.tell(Event{Kind: LimitUnclear, Account: account.ID, Count: int(n), Ours: account.limits})
		}
		return
	}
	ctx, stop := b.durable.Soon(req.Context())
	defer stop()
	r := b.reconcilerFor(account)
	now := b.durable.Now()
	observed, apart := r.announcements.Take(req.URL.Host+" "+endpoint.Of(req), observed, account.limits, now)
	if apart && f.Scope == "" {
		f.Scope = provider.ScopeEndpoint // it pauses no other
	}
	if len(observed) == 0 {
		return
	}
	if understood {
		r.adoptAnnounced(b, account, observed)
	}
	r.reports.Note(observed, now)
	r.recordResets(ctx, b, account, observed, now)
	r.reconcile(ctx, b, account, grant, observed, now)
}

// reconcileMeters compares what a response says of other units with the logs of the account's meters. What a limit of these is
// it does not learn.
func (t *Transport) reconcileMeters(req *http.Request, windows []provider.Window, grant Grant) {
	b := t.Pool.budget
	ctx, stop := b.durable.Soon(req.Context())
	defer stop()
	now := b.durable.Now()
	for i, units := range grant.units {
		meter := grant.accounts.meter(i, grant.account.ID)
		observed := observe.Limits(windowsOf(windows, &grant.accounts.meters[i]), meter.limits, grant.scopes, false)
		if units == 0 || len(observed) == 0 {
			continue
		}
		r, of := b.reconcilerFor(meter), grant
		of.Cost, of.total = units, 0
		r.reports.Note(observed, now)
		r.recordResets(ctx, b, meter, observed, now)
		r.reconcile(ctx, b, meter, of, observed, now)
	}
}

// windowsOf returns the windows of what a meter counts, as those of a meter, which counts nothing else. A window of a unit has its
// name, or counts it and has none: of tokens there may be several. One of a part of the API is what is counted per key: a provider
// may count several values together, as Discord does the routes of a bucket, and then each of their meters follows.
func windowsOf(windows []provider.Window, m *meter) (of []provider.Window) {
	for _, w := range windows {
		if m.unit != "" && w.Unit != "" && (w.Name == m.unit || w.Name == "" && w.Unit == m.unit) {
			w.Name, w.Unit = "", ""
			of = append(of, w)
		}
		if part := w.Scope.Has(provider.ScopeEndpoint) || w.Scope.Has(provider.ScopeBucket); part && m.unit == "" {
			w.Name, w.Scope = "", ""
			of = append(of, w)
		}
	}
	return of
}

// refusedBy returns what a call was charged to whose limits it exceeded, and with how many units: the account, unless the response
// is about a part of the API that a meter counts, or about a meter's unit. Nil: it is about a part that nothing counts.
func (g *Grant) refusedBy(f *provider.Feedback, scope provider.Scope) (charged *budgetAccount, units int) {
	if scope.HasShared() || scope.HasObject() {
		return nil, 0 // another limit than the account's
	}
	part := scope.Has(provider.ScopeEndpoint) || scope.Has(provider.ScopeBucket)
	binding := f.Binding()
	for i, n := range g.units {
		m := &g.accounts.meters[i]
		ofUnit := binding != nil && m.unit != "" && len(windowsOf([]provider.Window{*binding}, m)) > 0
		if n > 0 && (ofUnit || part && m.unit == "") {
			return g.accounts.meter(i, g.account.ID), n
		}
	}
	if part {
		return nil, 0
	}
	return g.account, g.Cost
}
