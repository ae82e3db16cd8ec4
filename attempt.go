package ration

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/ration-go/ration/provider"
)

// A requestTrace follows one attempt on its way to the provider, by httptrace. It is also the
// context of the response's request, from which GrantOf and FeedbackOf read: one value,
// because every request needs one. Its hooks may run after RoundTrip has returned.
type requestTrace struct {
	context.Context            // the caller's
	mu              sync.Mutex // protects grant once there is a response
	grant           Grant
	feedback        *provider.Feedback // nil: the response was not read
	hooks           httptrace.ClientTrace

	host      string // that the request is sent to
	begun     time.Time
	settled   int         // sends that the log has
	connected atomic.Bool // there was a connection: the request may have arrived
	reused    atomic.Bool // the connection had carried a request before
	writes    atomic.Int32
	wrote     atomic.Int64 // when the request was last written, in nanoseconds since begun
}

func newRequestTrace(req *http.Request, grant Grant) *requestTrace {
	trace := &requestTrace{Context: req.Context(), grant: grant, host: req.URL.Host, begun: time.Now()}
	trace.hooks.GotConn = func(conn httptrace.GotConnInfo) {
		trace.bookResend()
		trace.reused.Store(conn.Reused)
		trace.connected.Store(true)
	}
	trace.hooks.WroteRequest = func(httptrace.WroteRequestInfo) {
		trace.wrote.Store(int64(time.Since(trace.begun)))
		trace.writes.Add(1)
	}
	return trace
}

// traceOf returns the trace of a response that send has returned.
func traceOf(resp *http.Response) *requestTrace {
	trace, _ := resp.Request.Context().(*requestTrace)
	return trace
}

// bookResend waits for a slot before http.Transport sends the request again by itself, because its
// connection was dead: the provider may have counted what was sent before. If there is no slot, because the
// context ends, the request is recorded afterwards.
func (r *requestTrace) bookResend() {
	if int(r.writes.Load()) == r.settled || r.grant.offline {
		return
	}
	r.recordSends()
	first := &r.grant
	w := waiter{Grant: Grant{Token: first.Token, Cost: first.Cost, budget: first.budget}, waits: true}
	if w.take(WithScopes(r.Context, first.scopes...)) == nil {
		w.probe = first.probe
		r.grant = w.Grant
	} else {
		r.settled-- // one that is still to be recorded
	}
}

// recordSends corrects the log if the request may have arrived so late after its slot that a call of the
// next window could follow it too closely, or if it was sent more than once without a slot. It is called
// when RoundTrip has returned, or sends the request again.
func (r *requestTrace) recordSends() {
	writes := int(r.writes.Load())
	times := writes - r.settled
	if r.settled = writes; times <= 0 || r.grant.offline {
		return
	}
	tolerance, slot := r.grant.account.Tolerance, r.grant.soonestSlot()
	sent, arrived := r.sentAndArrived(time.Now())
	after := arrived.Sub(slot)
	late := tolerance > 0 && (sent.Sub(slot) > tolerance || after > 2*tolerance) // the whole margin
	if late || times > 1 {
		r.grant.recordSends(r.Context, after, times, late)
	}
}

// sentAndArrived returns when the request was sent and when it had arrived, at the latest. The response, which
// has come now, may have been slow because the request was: what it took beyond the quickest of its host
// counts. A provider that takes its time to answer must not cost much of the quota, so no more counts than
// a part of the shortest window.
//
// After it was written on a new connection a request may be under way for long, while the
// provider accepts the connection: then it counts as sent when the response came.
func (r *requestTrace) sentAndArrived(now time.Time) (sent, arrived time.Time) {
	if !r.reused.Load() {
		return now, now
	}
	sent = r.begun.Add(time.Duration(r.wrote.Load()))
	if r.grant.account.MostDelay == 0 {
		return sent, sent
	}
	delay := r.grant.budget.delays.Of(r.host, now.Sub(sent), now)
	return sent, sent.Add(min(delay, r.grant.account.MostDelay))
}

// String describes the context of a response's request without the token's secret.
func (r *requestTrace) String() string {
	return fmt.Sprintf("%v.WithGrant(%v)", r.Context, r.grant.Token)
}

type (
	grantKey    struct{}
	feedbackKey struct{}
)

// Value returns the grant on which the request was sent, and what its response said.
func (r *requestTrace) Value(key any) any {
	if key == (grantKey{}) {
		grant := r.grantNow()
		return &grant
	}
	if key == (feedbackKey{}) {
		if r.feedback == nil {
			return nil // and not that of an earlier response, whose context this may be
		}
		return r.feedback
	}
	return r.Context.Value(key)
}

// GrantOf returns the grant on which a response's request was sent. It reports false if the
// request passed through without a token, or if the response is nil or not a Transport's.
func GrantOf(resp *http.Response) (Grant, bool) {
	if resp == nil || resp.Request == nil {
		return Grant{}, false
	}
	g, _ := resp.Request.Context().Value(grantKey{}).(*Grant)
	if g == nil || g.budget == nil {
		return Grant{}, false
	}
	return *g, true
}

// FeedbackOf returns what a [Transport] has read in a response: whether and why the provider
// throttled it, for how long, and what is left of its limits. It reports false if there was
// nothing to read, as in most successes.
func FeedbackOf(resp *http.Response) (provider.Feedback, bool) {
	if resp == nil || resp.Request == nil {
		return provider.Feedback{}, false
	}
	f, found := resp.Request.Context().Value(feedbackKey{}).(*provider.Feedback)
	if !found {
		return provider.Feedback{}, false
	}
	return *f, true
}

func (t *Transport) attach() provider.Attach {
	if t.Attach == nil && t.Provider != nil {
		return t.Provider.Attach
	}
	return t.Attach
}

// withToken returns a copy of the request with the token, whose sending the hooks follow.
func (t *Transport) withToken(ctx context.Context, req *http.Request, hooks *httptrace.ClientTrace, token Token) (*http.Request, error) {
	attach := t.attach()
	if attach == nil {
		// As provider.Bearer, which changes one header: neither the other headers' values nor
		// the URL are copied.
		out := req.WithContext(httptrace.WithClientTrace(ctx, hooks))
		out.Header = make(http.Header, len(req.Header)+1)
		maps.Copy(out.Header, req.Header)
		out.Header["Authorization"] = token.bearer()
		if value := out.Header["Authorization"][0]; len(value) > 14 && strings.EqualFold(value[7:14], "Bearer ") || strings.ContainsFunc(value, unicode.IsControl) {
			return nil, provider.Bearer(out, value[7:]) // which says what is wrong
		}
		return out, nil
	}
	secret, _ := token.open()
	out := req.Clone(ctx) // without the hooks: requests that Attach makes are not this one
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if err := attach(out, secret); err != nil {
		return nil, fmt.Errorf("ration: Attach failed: %w", err)
	}
	before := req.Header["Authorization"]
	if len(before) > 0 && !t.ReplaceAuthorization && !slices.Equal(before, out.Header["Authorization"]) {
		return nil, errAuthorization
	}
	return out.WithContext(httptrace.WithClientTrace(out.Context(), hooks)), nil
}

// rewind returns the request with its body at the beginning, and whether that is possible.
// The first attempt has read a body without GetBody: sent again it would be empty.
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

// detach lets a response that the caller may still get hold no connection meanwhile, if all of its
// body was read.
func detach(resp *http.Response) {
	if resp == nil {
		return
	}
	if body, is := resp.Body.(interface{ Detach() io.ReadCloser }); is {
		resp.Body = body.Detach()
	} else if resp.ContentLength == 0 { // it was not read, because it is empty
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(resp.Body)
	}
}

// discard closes a response that the caller does not get. It does not drain it: throttled
// responses are rare, and the body may never end.
func discard(resp *http.Response) {
	if resp != nil {
		_ = resp.Body.Close()
	}
}

// closeBody closes the request's body, as a RoundTripper must even if it sends nothing.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
