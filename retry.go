package ration

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

const (
	// firstPause is the least first pause of one request alone if the response does not say how long to wait. It
	// may be half as long again, and doubles with each pause of the same request.
	firstPause = time.Second
	// longestOwnPause bounds a pause of one request alone, which the fleet does not keep.
	longestOwnPause = time.Minute
)

// An attempts is the attempt sequence of one request. It begins after the first attempt
// if that did not simply succeed: most requests need none.
type attempts struct {
	transport  *Transport
	provider   *provider.Provider
	req        *http.Request // as the caller made it
	policy     *RetryPolicy
	count      int       // how many attempts were made
	retries    int       // how many are left
	deadline   time.Time // no retry begins after it
	pauses     backoff.BackOff
	minPause   time.Duration     // the first of pauses, without its random part
	rests      backoff.BackOff   // the policy's; nil: not begun, or it has none
	feedback   provider.Feedback // of the last response
	excluded   []string          // accounts that are not tried again
	rejected   []rejection       // one of each token that was rejected
	rejections int               // how many there were
	unserved   bool              // the last response rejected the token
	cause      string            // of the pause that the last response makes
	paused     time.Duration     // how long what the last response is about cools down
	renewed    []string          // IDs of tokens whose source was asked because of a response
}

func newAttempts(t *Transport, req *http.Request) *attempts {
	policy := &t.Retries
	if o := requestOptionsOf(req.Context()); o != nil && o.retries != nil {
		policy = o.retries
	}
	return &attempts{transport: t, provider: t.provider(), req: req, policy: policy, retries: cmp.Or(policy.Max, defaultRetries),
		deadline: time.Now().Add(positive(policy.Within, defaultRetryWithin))}
}

// A decision is what to do after a response or a failure.
type decision struct {
	retry        bool
	wait         time.Duration // before the retry, beside the pauses that the store keeps
	pause        time.Duration // that the store keeps
	decidable    bool          // the policy may decide otherwise
	free         bool          // the retry does not count as one of RetryPolicy.Max
	keepResponse bool          // the caller gets the response if no token is left
}

// run takes the outcome of the first attempt, retries while that may help, and returns what
// the caller should get.
func (a *attempts) run(resp *http.Response, err error, grant Grant) (*http.Response, error) {
	t, ctx := a.transport, a.req.Context()
	returned := false // a function of the caller's may panic
	defer func() {
		if !returned {
			discard(resp)
		} else if a.unserved {
			t.Pool.reject(ctx, a.rejected, false, t.longestCooldown())
		}
	}()
	for {
		var next decision
		if err != nil {
			t.Pool.endProbe(ctx, grant)
			next = a.afterFailure(err, grant)
		} else {
			next = a.afterResponse(resp, grant)
		}
		if a.count++; next.decidable && a.policy.Decide != nil {
			a.decide(&next, resp, err)
		}
		if !next.retry || !next.free && a.retries <= 0 || time.Now().Add(next.wait).After(a.deadline) {
			returned = true
			return resp, err
		}
		again, replayable := rewind(a.req)
		if o := requestOptionsOf(ctx); !replayable || o != nil && o.grant != nil { // a grant is good for one request
			returned = true
			return resp, err
		}
		if !next.free {
			a.retries--
		}
		detach(resp)
		if grant.held != nil {
			grant.held.Return() // the call has ended, though its response is not discarded
		}
		grant.traces.retrying(a.req, &grant, resp, err, next.wait, a.retries)
		var failed error
		if grant, failed = a.take(again, next.wait); failed != nil {
			returned = true
			// The provider's response serves the caller better than an error of ours,
			// unless the caller's context has ended or no token is of any use.
			switch {
			case ctx.Err() != nil:
				failed = flight.Ended(ctx)
			case next.keepResponse || !errors.Is(failed, ErrNoToken):
				return resp, err
			}
			discard(resp)
			return nil, failed
		}
		grant.resends = a.count
		discard(resp)
		resp = nil
		if resp, err = t.send(again, grant); err == nil && a.provider.Spent != nil {
			grant = traceOf(resp).grant
		}
	}
}

// take waits before a retry and takes a grant for it, both before the deadline. If it fails
// it has closed the body.
func (a *attempts) take(again *http.Request, wait time.Duration) (Grant, error) {
	ctx, stop := context.WithDeadline(again.Context(), a.deadline)
	defer stop()
	var waits []rationtrace.Wait
	if wait > 0 {
		deadline, _ := ctx.Deadline()
		b := a.transport.Pool.budget
		if time.Until(deadline) < wait || b.sleepUnless(ctx, wait, time.Time{}, b.fleet.Resumed(b.fleet.State()), rationtrace.Wait{Reason: rationtrace.Retry, Cause: a.cause}, &waits) != nil {
			closeBody(again)
			return Grant{}, context.DeadlineExceeded // or the caller's context has ended, which run sees
		}
	}
	return a.transport.take(again.WithContext(ctx), a.excluded, waits)
}

// afterFailure decides after a failure without a response.
func (a *attempts) afterFailure(err error, grant Grant) decision {
	a.feedback = provider.Feedback{}
	if a.req.Context().Err() != nil {
		return decision{}
	}
	retry := a.repeatable() && temporary(err)
	if retry && a.coolHost(grant, err.Error(), err) {
		return a.cooled()
	}
	return a.rest(retry)
}

// cooled decides that a request waits whose subject cools down. That is none of its own failures.
func (a *attempts) cooled() decision {
	return decision{retry: a.policy.Max >= 0, free: true, pause: a.paused, decidable: true}
}

// rest decides that the request rests for a while and is tried again, if it may be.
func (a *attempts) rest(retry bool) decision {
	next := decision{retry: retry, decidable: true}
	switch {
	case !retry:
	case a.policy.Pauses == nil:
		next.wait = a.pause(0, longestOwnPause)
	default:
		if a.rests == nil {
			a.rests = a.policy.Pauses()
		}
		if next.wait = a.rests.NextBackOff(); next.wait == backoff.Stop {
			next.retry, next.wait = false, 0
		}
	}
	return next
}

// decide lets the policy change what is done.
func (a *attempts) decide(next *decision, resp *http.Response, err error) {
	left := a.retries > 0 || next.free
	r := Retry{Response: resp, Feedback: a.feedback, Err: err, Attempts: a.count, Pause: next.pause, Again: next.retry && left, Wait: next.wait}
	a.policy.Decide(a.req, &r)
	next.retry, next.wait = r.Again && left, max(0, r.Wait)
}

// repeatable reports whether the request may be sent again though it may have been carried out.
func (a *attempts) repeatable() bool { return a.policy.NotIdempotent || idempotent(a.req) }

// afterResponse lets the fleet know what a response says, and decides what it means for the
// request.
func (a *attempts) afterResponse(resp *http.Response, grant Grant) decision {
	t := a.transport
	if a.count > 0 && len(a.rejected) == 0 && !t.Pool.hasSuspects.Load() && !a.provider.NeedsReading(resp) { // the first does: RoundTrip has looked
		t.Pool.wasServed(a.req, &grant, false)
		return decision{}
	}

	f := a.handleResponse(resp, grant)
	a.feedback = f
	if (f.DeadToken || resp.StatusCode == http.StatusUnauthorized) && a.renew(grant) {
		return decision{retry: true, free: true, keepResponse: true}
	}
	d := cooldown.Decide(&f, resp.StatusCode, t.MaxCooldown)
	a.unserved = d.Outcome == cooldown.Rejects
	switch {
	case a.unserved:
		return a.afterRejection(newRejection(resp, grant, &f))
	case d.Outcome == cooldown.IsUnpaid:
		t.Pool.quarantineUnpaid(a.req.Context(), grant, t.longestCooldown())
		return decision{}
	case resp.StatusCode >= 500:
		t.Pool.endProbe(a.req.Context(), grant) // the provider may not have checked the token
	case f.Refused:
		t.Pool.wasServed(a.req, &grant, true)
	default:
		t.Pool.wasServed(a.req, &grant, false)
		if resp.StatusCode < 400 {
			a.contradict(grant.Token)
		}
	}

	c := cooling{told: d.Told, length: d.Length, longest: d.Longest, took: time.Since(traceOf(resp).begun)}
	switch {
	case d.Outcome == cooldown.Cools:
		return a.afterThrottled(&f, grant, &c)
	case d.Outcome == cooldown.Rests:
		return a.afterTooMuch(resp, &f, grant, &c)
	case d.Outcome == cooldown.Fails || slices.Contains(a.policy.Statuses, resp.StatusCode):
		if a.repeatable() && isGateway(resp.StatusCode) && a.coolHost(grant, causeOf(resp, &f, grant), nil) {
			return a.cooled()
		}
		return a.rest(a.repeatable())
	case d.Outcome == cooldown.Spends:
		c.kind = store.PauseSpent
		fallthrough
	case d.Outcome == cooldown.Asks:
		a.pauseTarget(&f, cooldown.ScopeOf(&f, a.provider.Scope, false), grant, &c)
	}
	return decision{}
}

// alone returns how long the request rests by itself.
func (a *attempts) alone(f *provider.Feedback, c *cooling) time.Duration {
	if c.told {
		return c.length
	}
	return a.pause(f.MinWait, c.longest)
}

// afterTooMuch decides after a response that there is too much at once, which says nothing about a rate: the request rests alone, or its
// host cools down.
func (a *attempts) afterTooMuch(resp *http.Response, f *provider.Feedback, grant Grant, c *cooling) decision {
	next := decision{retry: f.Retryable, decidable: true}
	if f.Reason == provider.ReasonConcurrency {
		next.wait, next.free = a.alone(f, c), grant.held != nil
		grant.held.Refused() // the fleet has fewer in flight from now on
		return next
	}
	if !a.repeatable() {
		next.retry = false
		a.pauseTarget(f, cooldown.ScopeOf(f, a.provider.Scope, false), grant, c)
		return next
	}
	if isGateway(resp.StatusCode) && a.coolHost(grant, a.cause, nil) {
		return a.cooled()
	}
	next.wait = a.alone(f, c)
	return next
}

// afterThrottled has what the response is about cool down, and decides whether the request waits for that or retries elsewhere.
func (a *attempts) afterThrottled(f *provider.Feedback, grant Grant, c *cooling) decision {
	b := a.transport.Pool.budget
	next := decision{retry: f.Retryable && (f.Reason != provider.ReasonOverload || a.repeatable()), decidable: true}
	several := f.Reason == provider.ReasonSecondary && b.fleet.Secondary.Refused(grant.account.ID, time.Now())
	scope := cooldown.ScopeOf(f, a.provider.Scope, several)
	if scope == "" && f.Reason != provider.ReasonOverload {
		c.endpoint = cooldown.EndpointKey(a.req)
		scope = a.scopeByEvidence(f, c.endpoint, grant)
	}
	if recorded := a.pauseTarget(f, scope, grant, c); !recorded || a.paused <= 0 {
		next.wait = a.alone(f, c) // at least this request keeps the pause
	} else if next.retry {
		next = a.cooled()
	}
	if f.Reason == provider.ReasonQuota && !grant.offline {
		call := grant.call()
		b.keeper.Refused(f, &call, scope)
	}
	return next
}

// isGateway reports whether a status says that what is behind the host was not reached.
func isGateway(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// afterRejection decides after a response that rejected the token. Another token may be served,
// which tells whether this one is at fault.
func (a *attempts) afterRejection(r rejection) decision {
	if !a.isRejected(r.grant.Token) {
		a.rejected = append(a.rejected, r)
	}
	if a.rejections++; a.rejections >= mostRejections || !a.transport.Pool.hasOtherTokens(r.grant.account.ID, a.isRejected) {
		a.excluded = append(a.excluded, r.grant.account.ID)
	}
	return decision{retry: len(a.rejected) < mostTokens, free: true, keepResponse: true}
}

// mostRejections is how many rejections end the trying of other tokens of an account.
const mostRejections = 8

// isRejected reports whether a token was rejected for the request.
func (a *attempts) isRejected(t Token) bool {
	return slices.ContainsFunc(a.rejected, func(r rejection) bool { return r.grant.Token.id == t.id })
}

// contradict notes that the request was served with a token, against those that were rejected.
func (a *attempts) contradict(served Token) {
	if len(a.rejected) == 0 {
		return
	}
	others := slices.DeleteFunc(slices.Clone(a.rejected), func(r rejection) bool { return r.grant.Token.id == served.id })
	a.transport.Pool.reject(a.req.Context(), others, true, a.transport.longestCooldown())
}

// pause returns the request's next pause if the response does not say how long to wait.
func (a *attempts) pause(least, longest time.Duration) time.Duration {
	if least = max(least, firstPause); least > a.minPause {
		a.minPause = least
		a.pauses = backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(least*5/4),
			backoff.WithRandomizationFactor(0.2), // so from least to half as much again
			backoff.WithMultiplier(2),
			backoff.WithMaxInterval(a.transport.longestCooldown()),
			backoff.WithMaxElapsedTime(0),
		)
	}
	return min(max(a.pauses.NextBackOff(), least), longest)
}

// idempotent reports whether a request has the same effect if it is sent twice.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}

// temporary reports whether a failure may be over when the request is retried.
func temporary(err error) bool {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return false
	}
	if lookup, found := errors.AsType[*net.DNSError](err); found {
		return !lookup.IsNotFound
	}
	if _, network := errors.AsType[net.Error](err); network {
		return true
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	// net/http has no names for these.
	return slices.ContainsFunc([]string{"server closed idle connection", "connection broken", "http2: ", "stream error: "},
		func(text string) bool { return strings.Contains(err.Error(), text) })
}

const (
	defaultRetries     = 3
	defaultRetryWithin = 6 * time.Hour
)

// positive returns a duration if it is positive, or else the other.
func positive(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
