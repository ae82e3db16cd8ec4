package ration

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/observe"
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
		grant.traces.refused(a.req, &grant, resp.StatusCode, &f, a.cause)
		if t.OnRefusal != nil {
			t.OnRefusal(resp, grant)
		}
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
			b.pauseKey(ctx, store.PauseRequest{Account: account, Key: string(key), For: length, Cause: a.cause})
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
		_, err := b.pause(ctx, store.PauseRequest{Account: account, For: length, Apart: spacing, Cause: a.cause})
		recorded = recorded && err == nil
	}
	return recorded
}

// pauseKey pauses an endpoint, an object or a scope, on one account or, if that is empty, on
// all. If the store does not answer, only this process keeps the pause.
func (b *Budget) pauseKey(ctx context.Context, r store.PauseRequest) {
	if _, err := b.pause(ctx, r); err != nil {
		until := b.storeNow().Add(r.For)
		defer b.tell()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notePause(store.Pause{Account: r.Account, Key: r.Key, Until: until, Cause: r.Cause}, until.Add(-r.For))
	}
}

// describe returns a response's status and to which URL, without its query and the token's secret,
// which some APIs want in the URL and others repeat; and what hides the secret.
func describe(resp *http.Response, grant Grant) (said string, hidden *censor.Censor) {
	secret, _ := grant.Token.open()
	u := url.URL{Scheme: resp.Request.URL.Scheme, Host: resp.Request.URL.Host, Path: resp.Request.URL.Path}
	hidden = censor.New("SECRET", secret)
	return hidden.Text(fmt.Sprintf("%d %s from %v", resp.StatusCode, http.StatusText(resp.StatusCode), &u)), hidden
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

// workerName names this process to people.
var workerName = sync.OnceValue(func() string {
	return fmt.Sprintf("%.100s, process %d", cmp.Or(hostName(), "a worker"), os.Getpid())
})

// hostName returns the name of this machine; empty: nobody knows.
var hostName = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return strings.ToValidUTF8(host, "")
})

// pause has the store pause an account or a key of this budget, and notes the pause here.
func (b *Budget) pause(ctx context.Context, r store.PauseRequest) (time.Time, error) {
	r.Budget, r.Cause = b.Name, causeFor(r.Cause)
	reply, err := asks(ctx, b, "pause", b.Store.Pause, r)
	if err != nil {
		return time.Time{}, err
	}
	if reply.Version == reply.Before {
		r.Cause = "" // a longer pause is in force, by another cause
	}
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isNews(reply) { // or a resumption may have ended it meanwhile
		b.notePause(store.Pause{Account: r.Account, Key: r.Key, Until: reply.Until, Cause: r.Cause}, b.storeNow())
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

// reconcile compares what a response says about the account's limits with the log and with
// the limits themselves. It returns how many units are left by the provider's count;
// negative: unknown. It sets the scope of a response whose limit is its endpoint's own.
func (t *Transport) reconcile(req *http.Request, f *provider.Feedback, grant Grant) (left int) {
	b := t.Pool.budget
	understood := b.understand(grant.account)
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
	if understood && !r.adoptAnnounced(b, account, observed) {
		r.reduceHeadroom(b, account)
	}
	r.reports.Note(observed, now)
	r.recordResets(ctx, b, account, observed, now)
	r.reconcile(ctx, b, account, grant, observed, now)
	return slices.MinFunc(observed, func(x, y observe.Observation) int { return x.Left - y.Left }).Left
}
