package ration

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/internal/fleet"
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
	if f.Refused || f.Cooldown.Known {
		a.cause = causeOf(resp, &f, grant)
	}
	if f.Refused {
		grant.budget.rates.Refused.Add(1)
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

// How far apart slots are behind a pause that was cut to MaxPause, of an account and of all: one request tries whether it is
// over, and the next leaves so much later if there is no response until then. A pause of all accounts cannot be ended by
// itself once it was tried, so those who have waited for it keep that distance.
const (
	triedFor    = time.Minute
	allTriedFor = 2 * time.Second
)

// keyTriedFor is how long the others wait for the request that tries such a pause of a part.
const keyTriedFor = 10 * time.Second

// claimTrial reports whether the caller is the one of the fleet that tries whether the pause of a part is over, whose end has
// come: the others wait until it may have heard.
func (b *Budget) claimTrial(ctx context.Context, over cooldown.Pause) bool {
	ctx, stop := b.durable.Soon(ctx)
	defer stop()
	return b.fleet.ClaimTrial(ctx, store.PauseRequest{Account: over.Account, Key: string(over.Key), For: keyTriedFor, Replaces: over.Until,
		Cause: causeFor("one request tries whether this is over: " + over.Cause)})
}

// afterTrial is how long a request rests that has tried such a pause in vain: the others cancel their slots before it books
// again, or it would get the same as one of them.
const afterTrial = time.Second

// spacingAfterPause returns the time between the slots of callers that have waited for the
// end of a pause. They leave ten times as fast as the limits allow in the long run, without
// a burst.
func spacingAfterPause(limits []limit.Limit) time.Duration {
	least := fleet.MostSpacing
	for _, l := range limits {
		least = min(least, l.Window/time.Duration(l.Max)/10)
	}
	return least.Truncate(time.Microsecond)
}

// sharedScopes returns the scope that each shared account stands for.
func (b *Budget) sharedScopes() []cooldown.Shared {
	all := make([]cooldown.Shared, len(b.Shared))
	for i, account := range b.Shared {
		all[i] = cooldown.Shared{ID: account.ID, Scope: account.Scope}
	}
	return all
}

// describe returns a response's status and to which request, its URL without its query and the token's secret,
// which some APIs want in the URL and others repeat; and what hides the secret.
func describe(resp *http.Response, grant Grant) (said string, hidden *censor.Censor) {
	secret, _ := grant.Token.open()
	return fmt.Sprintf("%d %s from %s %s", resp.StatusCode, http.StatusText(resp.StatusCode), cmp.Or(resp.Request.Method, http.MethodGet), urlOf(resp.Request, grant.Token)),
		censor.New("SECRET", secret)
}

// causeOf says to people which response makes a pause, and what it asks for.
func causeOf(resp *http.Response, f *provider.Feedback, grant Grant) string {
	said, _ := describe(resp, grant)
	switch {
	case f.Wait.Known:
		said += ", which asks for " + f.Wait.Value.String()
	case f.Cooldown.Known:
		said += ", which asks for " + f.Cooldown.Value.String()
	default:
		said += ", which names no time"
	}
	return said
}

// mostCause is the length of what is told of a cause, in bytes.
const mostCause = 500

// causeFor returns a cause with the worker that tells of it, in one line.
func causeFor(cause string) string {
	by := " (told by " + workerName() + ")"
	cause = strings.ToValidUTF8(cause[:min(len(cause), mostCause-len(by))], "")
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, cause+by)
}
