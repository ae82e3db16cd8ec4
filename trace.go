package ration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/provider"
)

// A requestTrace follows one attempt on its way to the provider, by httptrace. It is also the
// context of the response's request, from which GrantOf and FeedbackOf read: one value,
// because every request needs one. Its hooks may run after RoundTrip has returned.
type requestTrace struct {
	context.Context // the caller's
	grant           Grant
	feedback        *provider.Feedback // nil: the response was not read
	hooks           httptrace.ClientTrace

	begun     time.Time
	settled   int         // sends that the log has
	connected atomic.Bool // there was a connection: the request may have arrived
	reused    atomic.Bool // the connection had carried a request before
	writes    atomic.Int32
	wrote     atomic.Int64 // when the request was last written, in nanoseconds since begun
}

func newRequestTrace(ctx context.Context, grant Grant) *requestTrace {
	trace := &requestTrace{Context: ctx, grant: grant, begun: time.Now()}
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
		w.counted, w.probe = first.counted, first.probe
		r.grant = w.Grant
	} else {
		r.settled-- // one that is still to be recorded
	}
}

// recordSends corrects the log if the request was sent so late after its slot that a call of the next
// window could follow it too closely, or more than once without a slot. It is called when RoundTrip has
// returned, or sends the request again.
//
// After it was written on a new connection a request may be under way for long, while the
// provider accepts the connection: it counts as sent now.
func (r *requestTrace) recordSends() {
	writes := int(r.writes.Load())
	times := writes - r.settled
	if r.settled = writes; times <= 0 || r.grant.offline {
		return
	}
	sentAt := time.Now()
	if r.reused.Load() {
		sentAt = r.begun.Add(time.Duration(r.wrote.Load()))
	}
	tolerance := r.grant.account.tolerance
	after := sentAt.Sub(r.grant.soonestSlot())
	late := tolerance > 0 && after > tolerance
	if late || times > 1 {
		r.grant.recordSends(r.Context, after, times, late)
	}
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
		return &r.grant
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
