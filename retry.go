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

// An errand is one request's way through refusals and failures. It begins with the
// first of them: most requests need none.
type errand struct {
	transport *Transport
	req       *http.Request // as the caller made it
	left      int           // how often it may be sent again
	began     time.Time
	pauses    backoff.BackOff
	least     time.Duration // the first of pauses, without what is added by chance
	barred    []string      // accounts that are not to be tried again
	doubted   []Grant       // those on which it was not authorised, and no more: one of each token
	doubtful  int           // answers that said so
}

// A move is what comes after an answer, or a failure.
type move struct {
	again bool
	wait  time.Duration // that is the request's own: beside what the store keeps
	free  bool          // it does not count as one of Transport.Retries
	kept  bool          // the caller is to have the answer if no token is left
}

// run takes what came of the first sending, sends again as long as that may help, and
// returns what the caller is to have.
func (e *errand) run(resp *http.Response, err error, grant Grant) (*http.Response, error) {
	t, ctx := e.transport, e.req.Context()
	e.left, e.began = t.retries(), time.Now()
	panics := true // as a function of the caller's may
	defer func() {
		if panics {
			discard(resp)
		}
	}()
	for {
		var next move
		if err != nil {
			t.Pool.unknown(grant.Token)
			next = e.afterFailure(err)
		} else {
			next = e.afterAnswer(resp, grant)
		}
		if !next.again || !next.free && e.left <= 0 || time.Since(e.began)+next.wait > t.retryWithin() {
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
			case next.kept || !errors.Is(failed, ErrNoToken):
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
func (e *errand) take(again *http.Request) (Grant, error) {
	t := e.transport
	ctx, stop := context.WithDeadline(again.Context(), e.began.Add(t.retryWithin()))
	defer stop()
	return t.take(again.WithContext(ctx), e.barred)
}

// afterFailure decides after a failure to which there is no answer.
func (e *errand) afterFailure(err error) move {
	if e.req.Context().Err() != nil || !idempotent(e.req) || !outlasts(err) {
		return move{}
	}
	return move{again: true, wait: e.pause(0, longestOwnPause)}
}

// afterAnswer takes in what an answer says, for all, and decides what it means for the
// request.
func (e *errand) afterAnswer(resp *http.Response, grant Grant) move {
	t := e.transport
	f := t.hear(resp, grant)
	switch {
	case f.DeadToken:
		t.setAside(e.req, grant, provider.ReasonDeadToken, t.probeEvery())
		return move{again: true, free: true}
	case f.Reason == provider.ReasonUnauthorized:
		return e.afterUnauthorized(grant)
	case f.Reason == provider.ReasonBilling:
		t.setAside(e.req, grant, provider.ReasonBilling, t.probeEvery())
		return move{}
	case resp.StatusCode >= 500:
		t.Pool.unknown(grant.Token) // it may not have been looked at
	default:
		t.Pool.served(grant.Token)
		if resp.StatusCode < 400 && !f.Refused {
			e.convict(grant.Token)
		}
	}
	switch {
	case f.Refused:
		return e.afterRefusal(&f, grant)
	case f.Retryable && idempotent(e.req):
		return move{again: true, wait: e.pause(0, longestOwnPause)}
	case f.Hold.Known && f.Hold.Value > 0:
		t.silence(e.req, &f, grant, f.Hold.Value)
	}
	return move{}
}

// afterRefusal pauses what was refused, and decides whether the request waits for that
// or goes another way.
func (e *errand) afterRefusal(f *provider.Feedback, grant Grant) move {
	t := e.transport
	wait := f.Wait.Value
	if !f.Wait.Known {
		wait = e.pause(f.AtLeast, t.maxPause())
		if f.AtMost > 0 {
			wait = min(wait, f.AtMost)
		}
	}
	wait = min(wait, t.maxPause())
	next := move{again: f.Retryable}
	switch f.Reason {
	case provider.ReasonConcurrency:
		next.wait = wait // too many at once says nothing of a rate
	case provider.ReasonOverload:
		next.again = next.again && idempotent(e.req)
		if !f.Wait.Known || !t.silence(e.req, f, grant, wait) {
			next.wait = wait
		}
	default:
		if !t.silence(e.req, f, grant, wait) {
			next.wait = wait // the request at least keeps the pause
		}
		if f.Reason == provider.ReasonQuota && !grant.away {
			t.foresee(f, grant)
		}
	}
	return next
}

// afterUnauthorized decides after a bare 401. It may be the token, which another one
// shows; if none does, one answer alone is believed to be about what was asked for.
func (e *errand) afterUnauthorized(grant Grant) move {
	t := e.transport
	if !e.doubts(grant.Token) {
		e.doubted = append(e.doubted, grant)
		t.strike(e.req, grant)
	}
	if e.doubtful++; e.doubtful >= mostDoubtful || !t.Pool.others(grant.account, e.doubts) {
		e.barred = append(e.barred, grant.account)
	}
	return move{again: true, free: true, kept: true}
}

const (
	// A token that is only said not to be authorised is tried again soon at first.
	firstProbe = time.Minute
	// After so many answers no account is tried twice.
	mostDoubtful = 8
)

// doubts reports whether a token was not authorised to do what the request is to do.
func (e *errand) doubts(t Token) bool {
	return slices.ContainsFunc(e.doubted, func(grant Grant) bool { return grant.Token.id == t.id })
}

// convict sets aside what was not authorised to do what another token was.
func (e *errand) convict(other Token) {
	for _, grant := range e.doubted {
		if grant.Token.id != other.id {
			e.transport.setAside(e.req, grant, provider.ReasonUnauthorized, firstProbe)
		}
	}
}

// pause returns the next pause of a request that is told none.
func (e *errand) pause(least, longest time.Duration) time.Duration {
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
