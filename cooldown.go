package ration

import (
	"context"
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/limit"
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
	if f.Refused && t.OnRefusal != nil {
		t.OnRefusal(resp, grant)
	}
	left := -1
	if len(f.Windows) > 0 && !grant.offline {
		left = t.reconcile(resp.Request, &f, grant)
	}
	trace.grant.finish(left)
	return f
}

// pauseTarget pauses the accounts, endpoints or objects that a throttled response affects,
// for the whole fleet. It reports whether the store has recorded the pause of the accounts.
func (a *attempts) pauseTarget(f *provider.Feedback, scope provider.Scope, grant Grant, length time.Duration) bool {
	if length = length.Truncate(time.Microsecond); length <= 0 {
		return true
	}
	b := a.transport.Pool.budget
	ctx, stop := b.soon(a.req.Context())
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
			b.pauseKey(ctx, account, key, length)
		}
		return true
	}
	spacing := spacingAfterPause(grant.account.Limits)
	accounts := target.Shared
	switch {
	case target.Account:
		accounts = []string{grant.account.ID}
	case len(target.Shared) == 0:
		accounts, spacing = []string{""}, spacing/time.Duration(grant.accounts.Len())
	}
	recorded := true
	for _, account := range accounts {
		_, err := b.pause(ctx, store.PauseRequest{Account: account, For: length, Apart: spacing})
		recorded = recorded && err == nil
	}
	return recorded
}

// pauseKey pauses an endpoint, an object or a scope, on one account or, if that is empty, on
// all. If the store does not answer, only this process keeps the pause.
func (b *Budget) pauseKey(ctx context.Context, account string, key cooldown.Key, length time.Duration) {
	r := store.PauseRequest{Account: account, Key: string(key), For: length}
	if _, err := b.pause(ctx, r); err != nil {
		until := b.storeNow().Add(length)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notePause(store.Pause{Account: account, Key: r.Key, Until: until}, until.Add(-length))
	}
}

// pause has the store pause an account or a key of this budget, and notes the pause here.
func (b *Budget) pause(ctx context.Context, r store.PauseRequest) (time.Time, error) {
	r.Budget = b.Name
	reply, err := b.Store.Pause(ctx, r)
	if err != nil {
		return time.Time{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isNews(reply) { // or a resumption may have ended it meanwhile
		b.notePause(store.Pause{Account: r.Account, Key: r.Key, Until: reply.Until}, b.storeNow())
	}
	b.noteVersion(reply)
	return reply.Until, nil
}

// spacingAfterPause returns the time between the slots of callers that have waited for the
// end of a pause. They leave ten times as fast as the limits allow in the long run, without
// a burst.
func spacingAfterPause(limits []limit.Limit) time.Duration {
	least := time.Second
	for _, l := range limits {
		least = min(least, l.Window/time.Duration(l.Max)/10)
	}
	return least.Truncate(time.Microsecond)
}

// needsReading reports whether a response may say anything about quotas or tokens. Most say
// nothing.
func (t *Transport) needsReading(resp *http.Response) bool {
	p := t.provider()
	return resp.StatusCode >= 400 || p.ReadSuccessBody || t.Pool.hasSuspects.Load() || p.MentionsLimits(resp.Header)
}

func (t *Transport) provider() *provider.Provider {
	if t.Provider == nil {
		return &unknownProvider
	}
	return t.Provider
}

// unknownProvider reads the headers and codes that most APIs use.
var unknownProvider provider.Provider

// sharedScopes returns the scope that each shared account stands for.
func (b *Budget) sharedScopes() []cooldown.Shared {
	all := make([]cooldown.Shared, len(b.Shared))
	for i, account := range b.Shared {
		all[i] = cooldown.Shared{ID: account.ID, Scope: account.Scope}
	}
	return all
}
