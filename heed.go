package ration

import (
	"net/http"
	"time"
)

// hear reads what an answer says, and lets the fleet know.
func (t *Transport) hear(resp *http.Response, grant Grant) Feedback {
	arrived := time.Now()
	f := t.provider().ReadResponse(resp, arrived)
	way := wayOf(resp)
	way.feedback = &f
	if f.Refused && t.Refused != nil {
		t.Refused(resp, grant)
	}
	way.back(t.tell(resp.Request, &f, grant))
	return f
}

// silence pauses, in the whole fleet, what an answer is about, and reports whether the
// store knows.
func (t *Transport) silence(req *http.Request, f *Feedback, grant Grant, length time.Duration) bool {
	if length = min(length, t.maxPause()).Truncate(time.Microsecond); length <= 0 {
		return true
	}
	ctx, stop := soon(req.Context())
	defer stop()
	b := t.Pool.budget
	far := reachOf(scopeOf(f, t.provider().Scope), req, f.Object, grant.scopes, b.Shared)
	if f.Reason == ReasonOverload && f.Scope == "" {
		far = reach{matters: []matter{endpointOf(req)}}
	}
	if len(far.matters) > 0 {
		account := ""
		if far.account {
			account = grant.account
		}
		for _, m := range far.matters {
			b.pauseHere(ctx, m.pauseID(account), length)
		}
		return true
	}
	spread := apart(grant.accounts.list[grant.accounts.find(grant.account)])
	accounts := far.shared
	switch {
	case far.account:
		accounts = []string{grant.account}
	case len(far.shared) == 0:
		accounts, spread = []string{""}, spread/time.Duration(grant.accounts.Len())
	}
	known := true
	for _, account := range accounts {
		_, err := b.pause(ctx, account, length, spread)
		known = known && err == nil
	}
	return known
}

// apart is how far apart the slots are to be of those who wait for the end of a pause:
// they leave ten times as fast as the limits allow in the long run, and no burst does.
func apart(a Account) time.Duration {
	least := time.Second
	for _, l := range a.Limits {
		least = min(least, l.Window/time.Duration(l.Max)/10)
	}
	return least.Truncate(time.Microsecond)
}

// setAside keeps a token from being used, in the whole fleet.
func (t *Transport) setAside(req *http.Request, grant Grant, reason Reason, length time.Duration) {
	t.Pool.setAside(req.Context(), grant.Token, reason, length)
}

// strike takes in that a token is not authorised, and no more. It is set aside for longer
// each time.
func (t *Transport) strike(req *http.Request, grant Grant) {
	t.Pool.strikeAndSetAside(req.Context(), grant.Token, func(strikes int) time.Duration {
		return min(t.probeEvery(), firstProbe<<min(strikes-2, 16))
	})
}

// speaks reports whether there is something to be read in an answer. Most say nothing
// of quotas.
func (t *Transport) speaks(resp *http.Response) bool {
	p := t.provider()
	return resp.StatusCode >= 400 || p.InBody || t.Pool.doubts.Load() || p.mentioned(resp.Header)
}

func (t *Transport) provider() *Provider {
	if t.Provider == nil {
		return &unknownProvider
	}
	return t.Provider
}

// unknownProvider reads what most APIs say.
var unknownProvider Provider
