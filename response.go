package ration

import (
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/endpoint"
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
		b, req, call := grant.budget, resp.Request, grant.call()
		apart := b.keeper.Read(req.Context(), &call, f.Windows, req.URL.Host+" "+endpoint.Of(req), t.Cost != nil || a.provider.Cost != nil)
		if apart && f.Scope == "" {
			f.Scope = provider.ScopeEndpoint // it pauses no other
		}
		b.tell()
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
