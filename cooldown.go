package ration

import (
	"context"
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// handleResponse reads what an answer says, and lets the fleet know.
func (t *Transport) handleResponse(resp *http.Response, grant Grant) provider.Feedback {
	arrived := time.Now()
	f := t.provider().ReadResponse(resp, arrived)
	way := wayOf(resp)
	way.feedback = &f
	if f.Refused && t.OnRefusal != nil {
		t.OnRefusal(resp, grant)
	}
	way.grant.finish(t.reconcile(resp.Request, &f, grant))
	return f
}

// pauseTarget pauses, in the whole fleet, what an answer is about, and reports whether the
// store knows.
func (t *Transport) pauseTarget(req *http.Request, f *provider.Feedback, grant Grant, length time.Duration) bool {
	if length = min(length, t.maxPause()).Truncate(time.Microsecond); length <= 0 {
		return true
	}
	ctx, stop := soon(req.Context())
	defer stop()
	b := t.Pool.budget
	far := cooldown.TargetOf(cooldown.ScopeOf(f, t.provider().Scope), req, f.Object, grant.scopes, b.sharedScopes())
	if f.Reason == provider.ReasonOverload && f.Scope == "" {
		far = cooldown.Target{Keys: []cooldown.Key{cooldown.EndpointKey(req)}}
	}
	if len(far.Keys) > 0 {
		account := ""
		if far.Account {
			account = grant.account.ID
		}
		for _, m := range far.Keys {
			b.pauseKey(ctx, account, m, length)
		}
		return true
	}
	spread := apart(grant.account.Account)
	accounts := far.Shared
	switch {
	case far.Account:
		accounts = []string{grant.account.ID}
	case len(far.Shared) == 0:
		accounts, spread = []string{""}, spread/time.Duration(grant.accounts.Len())
	}
	known := true
	for _, account := range accounts {
		_, err := b.pause(ctx, store.PauseRequest{Account: account, For: length, Apart: spread})
		known = known && err == nil
	}
	return known
}

// pauseKey pauses a part of what is asked of the provider: an endpoint, an object or a
// scope. While the store does not answer it is this process that keeps to it.
func (b *Budget) pauseKey(ctx context.Context, account string, key cooldown.Key, length time.Duration) {
	r := store.PauseRequest{Account: account, Key: string(key), For: length}
	if _, err := b.pause(ctx, r); err != nil {
		until := b.storeNow().Add(length)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notePause(store.Pause{Account: account, Key: r.Key, Until: until})
	}
}

// apart is how far apart the slots are to be of those who wait for the end of a pause:
// they leave ten times as fast as the limits allow in the long run, and no burst does.
func apart(a store.Account) time.Duration {
	least := time.Second
	for _, l := range a.Limits {
		least = min(least, l.Window/time.Duration(l.Max)/10)
	}
	return least.Truncate(time.Microsecond)
}

// quarantine keeps a token from being used, in the whole fleet.
func (t *Transport) quarantine(req *http.Request, grant Grant, reason provider.Reason, length time.Duration) {
	t.Pool.quarantine(req.Context(), grant.Token, reason, length)
}

// countUnauthorized takes in that a token is not authorised, and no more. It is set aside for longer
// each time.
func (t *Transport) countUnauthorized(req *http.Request, grant Grant) {
	t.Pool.countFailureAndQuarantine(req.Context(), grant.Token, func(strikes int) time.Duration {
		return min(t.probeEvery(), firstProbe<<min(strikes-2, 16))
	})
}

// needsReading reports whether there is something to be read in an answer. Most say nothing
// of quotas.
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

// unknownProvider reads what most APIs say.
var unknownProvider provider.Provider

// sharedScopes returns what the shared accounts stand for.
func (b *Budget) sharedScopes() []cooldown.Shared {
	all := make([]cooldown.Shared, len(b.Shared))
	for i, account := range b.Shared {
		all[i] = cooldown.Shared{ID: account.ID, Scope: account.Scope}
	}
	return all
}
