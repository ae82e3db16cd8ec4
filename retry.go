package ration

import (
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
	"github.com/ration-go/ration/provider"
)

const (
	// Where an answer does not say how long, the first pause is this long, if not
	// longer by what is known of the provider, and up to a half more; it doubles with
	// each of the same request.
	firstPause = time.Second
	// The longest pause of a request that is its own, and nobody else's.
	longestOwnPause = time.Minute
)

// An attempts is one request's way through refusals and failures. It begins with the
// first of them: most requests need none.
type attempts struct {
	transport           *Transport
	req                 *http.Request // as the caller made it
	left                int           // how often it may be sent again
	startedAt           time.Time
	pauses              backoff.BackOff
	least               time.Duration // the first of pauses, without what is added by chance
	excluded            []string      // accounts that are not to be tried again
	unauthorized        []Grant       // those on which it was not authorised, and no more: one of each token
	unauthorizedAnswers int           // answers that said so
}

// A decision is what comes after an answer, or a failure.
type decision struct {
	retry        bool
	wait         time.Duration // that is the request's own: beside what the store keeps
	free         bool          // it does not count as one of Transport.Retries
	keepResponse bool          // the caller is to have the answer if no token is left
}

// run takes what came of the first sending, sends again as long as that may help, and
// returns what the caller is to have.
func (e *attempts) run(resp *http.Response, err error, grant Grant) (*http.Response, error) {
	t, ctx := e.transport, e.req.Context()
	e.left, e.startedAt = t.retries(), time.Now()
	panics := true // as a function of the caller's may
	defer func() {
		if panics {
			discard(resp)
		}
	}()
	for {
		var next decision
		if err != nil {
			t.Pool.endProbe(grant.Token)
			next = e.afterFailure(err)
		} else {
			next = e.afterAnswer(resp, grant)
		}
		if !next.retry || !next.free && e.left <= 0 || time.Since(e.startedAt)+next.wait > t.retryWithin() {
			panics = false
			return resp, err
		}
		again, replayable := rewind(e.req)
		if !replayable {
			panics = false
			return resp, err
		}
		if !next.free {
			e.left--
		}
		failed := pass(ctx, next.wait)
		if failed != nil {
			closeBody(again)
		} else {
			grant, failed = e.take(again)
		}
		if failed != nil {
			panics = false
			// The caller is better served by the provider's answer than by ours,
			// unless it has itself stopped waiting or no token is of any use.
			switch {
			case ctx.Err() != nil:
				failed = ended(ctx)
			case next.keepResponse || !errors.Is(failed, ErrNoToken):
				return resp, err
			}
			discard(resp)
			return nil, failed
		}
		discard(resp)
		resp = nil
		resp, err = t.send(again, grant)
	}
}

// take takes a grant for the next sending, if that is soon enough.
func (e *attempts) take(again *http.Request) (Grant, error) {
	t := e.transport
	ctx, stop := context.WithDeadline(again.Context(), e.startedAt.Add(t.retryWithin()))
	defer stop()
	return t.take(again.WithContext(ctx), e.excluded)
}

// afterFailure decides after a failure to which there is no answer.
func (e *attempts) afterFailure(err error) decision {
	if e.req.Context().Err() != nil || !idempotent(e.req) || !outlasts(err) {
		return decision{}
	}
	return decision{retry: true, wait: e.pause(0, longestOwnPause)}
}

// afterAnswer takes in what an answer says, for all, and decides what it means for the
// request.
func (e *attempts) afterAnswer(resp *http.Response, grant Grant) decision {
	t := e.transport
	f := t.handleResponse(resp, grant)
	switch {
	case f.DeadToken:
		t.quarantine(e.req, grant, provider.ReasonDeadToken, t.probeEvery())
		return decision{retry: true, free: true}
	case f.Reason == provider.ReasonUnauthorized:
		return e.afterUnauthorized(grant)
	case f.Reason == provider.ReasonBilling:
		t.quarantine(e.req, grant, provider.ReasonBilling, t.probeEvery())
		return decision{}
	case resp.StatusCode >= 500:
		t.Pool.endProbe(grant.Token) // it may not have been looked at
	default:
		t.Pool.tokenWorked(grant.Token)
		if resp.StatusCode < 400 && !f.Refused {
			e.quarantineUnauthorized(grant.Token)
		}
	}
	switch {
	case f.Refused:
		return e.afterRefusal(&f, grant)
	case f.Retryable && idempotent(e.req):
		return decision{retry: true, wait: e.pause(0, longestOwnPause)}
	case f.Cooldown.Known && f.Cooldown.Value > 0:
		t.pauseTarget(e.req, &f, grant, f.Cooldown.Value)
	}
	return decision{}
}

// afterRefusal pauses what was refused, and decides whether the request waits for that
// or goes another way.
func (e *attempts) afterRefusal(f *provider.Feedback, grant Grant) decision {
	t := e.transport
	wait := f.Wait.Value
	if !f.Wait.Known {
		wait = e.pause(f.MinWait, t.maxPause())
		if f.MaxWait > 0 {
			wait = min(wait, f.MaxWait)
		}
	}
	wait = min(wait, t.maxPause())
	next := decision{retry: f.Retryable}
	switch f.Reason {
	case provider.ReasonConcurrency:
		next.wait = wait // too many at once says nothing of a rate
	case provider.ReasonOverload:
		next.retry = next.retry && idempotent(e.req)
		if !f.Wait.Known || !t.pauseTarget(e.req, f, grant, wait) {
			next.wait = wait
		}
	default:
		if !t.pauseTarget(e.req, f, grant, wait) {
			next.wait = wait // the request at least keeps the pause
		}
		if f.Reason == provider.ReasonQuota && !grant.offline {
			t.leaveHeadroom(f, grant)
		}
	}
	return next
}

// afterUnauthorized decides after a bare 401. It may be the token, which another one
// shows; if none does, one answer alone is believed to be about what was asked for.
func (e *attempts) afterUnauthorized(grant Grant) decision {
	t := e.transport
	if !e.isUnauthorized(grant.Token) {
		e.unauthorized = append(e.unauthorized, grant)
		t.countUnauthorized(e.req, grant)
	}
	if e.unauthorizedAnswers++; e.unauthorizedAnswers >= mostDoubtful || !t.Pool.hasOtherTokens(grant.account.ID, e.isUnauthorized) {
		e.excluded = append(e.excluded, grant.account.ID)
	}
	return decision{retry: true, free: true, keepResponse: true}
}

const (
	// A token that is only said not to be authorised is tried again soon at first.
	firstProbe = time.Minute
	// After so many answers no account is tried twice.
	mostDoubtful = 8
)

// isUnauthorized reports whether a token was not authorised to do what the request is to do.
func (e *attempts) isUnauthorized(t Token) bool {
	return slices.ContainsFunc(e.unauthorized, func(grant Grant) bool { return grant.Token.id == t.id })
}

// quarantineUnauthorized sets aside what was not authorised to do what another token was.
func (e *attempts) quarantineUnauthorized(other Token) {
	for _, grant := range e.unauthorized {
		if grant.Token.id != other.id {
			e.transport.quarantine(e.req, grant, provider.ReasonUnauthorized, firstProbe)
		}
	}
}

// pause returns the next pause of a request that is told none.
func (e *attempts) pause(least, longest time.Duration) time.Duration {
	if least = max(least, firstPause); least > e.least {
		e.least = least
		e.pauses = backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(least*5/4),
			backoff.WithRandomizationFactor(0.2), // so from least to half as much again
			backoff.WithMultiplier(2),
			backoff.WithMaxInterval(e.transport.maxPause()),
			backoff.WithMaxElapsedTime(0),
		)
	}
	return min(max(e.pauses.NextBackOff(), least), longest)
}

// pass waits, or returns why it does not.
func pass(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	if deadline, found := ctx.Deadline(); found && time.Until(deadline) < wait {
		return context.DeadlineExceeded
	}
	return sleep(ctx, wait)
}

// discard lets go of an answer that its caller does not get. It is not drained: a
// refusal is rare, and its body may never end.
func discard(resp *http.Response) {
	if resp != nil {
		_ = resp.Body.Close()
	}
}

// idempotent reports whether to send a request twice is to send it once.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}

// outlasts reports whether a failure may be over when the request is sent again.
func outlasts(err error) bool {
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
	return slices.ContainsFunc([]string{"server closed idle connection", "connection broken", "http2: "},
		func(text string) bool { return strings.Contains(err.Error(), text) })
}

const (
	defaultRetries     = 3
	defaultRetryWithin = 6 * time.Hour
	defaultMaxPause    = time.Hour
	defaultProbeEvery  = time.Hour
)

// retries is how often a request is sent again.
func (t *Transport) retries() int {
	if t.Retries == 0 {
		return defaultRetries
	}
	return t.Retries
}

func (t *Transport) maxPause() time.Duration { return positive(t.MaxPause, defaultMaxPause) }

func (t *Transport) retryWithin() time.Duration { return positive(t.RetryWithin, defaultRetryWithin) }

func (t *Transport) probeEvery() time.Duration { return positive(t.ProbeEvery, defaultProbeEvery) }

func positive(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// rewind returns a request with the body at its beginning, and whether that can
// be had. A body without GetBody was spent by the first attempt: sent again it
// would be empty.
func rewind(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := req.WithContext(req.Context())
	again.Body = body
	return again, true
}
