package ration

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/attempt"
	"github.com/ration-go/ration/provider"
)

// A Transport is an http.RoundTripper that sends a request when the pool's quota
// has room for it. Set it as http.Client.Transport.
//
// For every request it takes a grant from the pool, waits for its slot, attaches
// the grant's token to a copy of the request, and sends that with Base. Put it
// directly above the http.Transport: a layer below it that sends again would
// spend quota unseen, and a cache belongs above it, so that a hit spends none.
//
// Every answer is read, as Provider says. A refusal pauses what it is about, for the
// whole fleet: the token's account, all of them, or one endpoint. The request is sent
// again, if its body can be had again: at once on another account where that helps, and
// else when the pause is over. A token that is expired or revoked is set aside, and so
// is one whose account is not paid for. What an answer tells of quotas is compared with
// the log: what others have spent is entered there, and a limit that the provider
// announces is kept from then on.
//
// A server's error and a failed connection are met by sending again, after a pause that
// grows, if the request is idempotent: by its method, or by an Idempotency-Key. Every
// sending is a booking of its own. When all that has not helped the caller gets the
// provider's own answer.
//
// Only hosts that the caller chose get a token. A redirect to another host, or from
// https to http, passes through without a token, a booking or a wait.
//
// http.Client.Timeout and the request's context count the wait for the slot. If
// the slot would come after the deadline, the request fails at once with an
// [*ExhaustedError] that names both durations, and books nothing.
//
// The fields must not be changed after first use. A Transport is safe for
// concurrent use.
type Transport struct {
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// Pool is what requests are charged to. Required.
	Pool *Pool
	// Hosts are those that get a token, as in a URL: "api.example.com", or
	// "localhost:8080" for that port only. Requests to others pass through.
	// Name them whenever URLs come from elsewhere, such as a response. Nil: any
	// host that the caller itself asks, and not one that only a redirect names.
	Hosts []string
	// Attach puts the token's secret into the request, which is a copy. Nil: as
	// Provider does, or Bearer.
	Attach provider.Attach
	// Cost is what a request costs, in units. Nil: as Provider says, or 1 for every
	// request. A request whose context says so, by WithCost, costs that.
	Cost func(*http.Request) int
	// Scopes are those of a request: a limit whose Scope is one of them covers
	// it too. Nil: those of its context, by WithScopes.
	Scopes func(*http.Request) []string
	// Provider is how answers are read, and whom a refusal is about where it does not
	// say: that of a preset, or one's own. Nil: the zero Provider, which knows what
	// most APIs do.
	Provider *provider.Provider
	// Retries is how often a request that was refused or has failed is sent again.
	// Each time is a booking of its own. That another token is tried in place of one
	// that is dead does not count. Zero: 3. Negative: never.
	Retries int
	// RetryWithin is how long after the first answer a request may be sent again.
	// Zero: 6 h.
	RetryWithin time.Duration
	// AttemptTimeout bounds each sending of a request, from its slot to the last byte
	// of the answer. Zero: as long as the request's context allows.
	AttemptTimeout time.Duration
	// MaxPause bounds the pause that an answer asks for, so that one wrong answer
	// cannot stop a fleet for a day. Zero: 1 h.
	MaxPause time.Duration
	// ProbeEvery is how long a token is set aside of which the provider says that no
	// wait helps. Then one request tries it. Zero: 1 h.
	ProbeEvery time.Duration
	// Granted, unless it is nil, is called when a request's slot has come,
	// before it is sent. It must not block.
	OnGrant func(*http.Request, Grant)
	// Refused, unless it is nil, is called for every refusal that came for a
	// request on a grant, also for one that is sent again; [FeedbackOf] tells why.
	// It must not read the body.
	OnRefusal func(*http.Response, Grant)
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.serves(req) {
		return t.pass(req)
	}
	grant, err := t.take(req, nil)
	if err != nil {
		return nil, err
	}
	resp, err := t.send(req, grant)
	if err == nil && !t.needsReading(resp) {
		wayOf(resp).grant.finish(-1)
		return resp, nil
	}
	e := attempts{transport: t, req: req}
	return e.run(resp, err, grant)
}

// CloseIdleConnections passes the call on to Base, which http.Client asks of its
// outermost transport only.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// pass sends a request that gets no token as it is.
func (t *Transport) pass(req *http.Request) (*http.Response, error) {
	resp, err := t.base().RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.Request == nil {
		resp.Request = req // serves follows it
	}
	if _, found := GrantOf(resp); found {
		// The caller took the context of an earlier response.
		resp.Request = resp.Request.WithContext(&requestTrace{Context: resp.Request.Context()})
	}
	return resp, nil
}

// serves reports whether the request is to be charged and to get a token.
func (t *Transport) serves(req *http.Request) bool {
	if req.URL == nil {
		return false // Base says what is wrong with it
	}
	// req.Response is the redirect that led here. The caller chose the first
	// request of the chain: its scheme, since a redirect from https to http
	// would show the token to everyone on the way, and its host.
	first := req
	for first.Response != nil {
		if first = first.Response.Request; first == nil || first.URL == nil {
			return false
		}
	}
	if first.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return false
	}
	if t.Hosts == nil {
		return strings.EqualFold(first.URL.Host, req.URL.Host) && first.URL.Scheme == req.URL.Scheme
	}
	return slices.ContainsFunc(t.Hosts, func(host string) bool {
		return strings.EqualFold(host, req.URL.Host) || strings.EqualFold(host, req.URL.Hostname())
	})
}

// send sends a copy of the request with the grant's token.
func (t *Transport) send(req *http.Request, grant Grant) (*http.Response, error) {
	way := newDeparture(req.Context(), grant)
	given := false
	defer func() {
		if !given { // a function of the caller's has panicked
			closeBody(req)
			way.grant.finish(-1)
			grant.cancelSoon()
		}
	}()
	if t.OnGrant != nil {
		t.OnGrant(req, grant)
	}
	tried := attempt.BeginAttempt(req.Context(), t.AttemptTimeout)
	out := t.attached(req, httptrace.WithClientTrace(tried.Ctx, &way.trace), grant.Token)
	given = true
	resp, err := tried.Answered(t.base().RoundTrip(out))
	if at, times := way.left(); times > 0 {
		grant.recordSends(req.Context(), at, times)
	}
	if err != nil {
		way.grant.finish(-1)
		if _, traces := t.base().(*http.Transport); traces && !way.connected.Load() {
			grant.cancelSoon()
		}
		return nil, redact(err, grant.Token)
	}
	// The copy carries the token; the caller's own request does not.
	resp.Request = req.WithContext(way)
	return resp, nil
}

// attached returns a copy of the request with the token.
func (t *Transport) attached(req *http.Request, ctx context.Context, token Token) *http.Request {
	attach := t.Attach
	if attach == nil && t.Provider != nil {
		attach = t.Provider.Attach
	}
	if attach != nil {
		secret, _ := token.open()
		out := req.Clone(ctx)
		if out.Header == nil {
			out.Header = make(http.Header)
		}
		attach(out, secret)
		return out
	}
	// As Bearer, which changes one header: the others are not copied, nor is the
	// URL.
	out := req.WithContext(ctx)
	out.Header = make(http.Header, len(req.Header)+1)
	maps.Copy(out.Header, req.Header)
	out.Header["Authorization"] = token.bearer()
	return out
}

// closeBody does what a RoundTripper must, also where it sends nothing.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// A requestTrace is one request's way to the provider, as httptrace tells it, and the
// context of the request as its caller gets it back: one value, because every
// request has one. Its hooks may run after RoundTrip has returned.
type requestTrace struct {
	context.Context // the caller's
	grant           Grant
	feedback        *provider.Feedback // what was read in the answer; nil: it says nothing of quotas
	trace           httptrace.ClientTrace

	begun     time.Time
	connected atomic.Bool // a connection was had: from here on it may have arrived
	reused    atomic.Bool // that had carried a request before
	writes    atomic.Int32
	wrote     atomic.Int64 // nanoseconds since begun, the last time
}

func newDeparture(ctx context.Context, grant Grant) *requestTrace {
	d := &requestTrace{Context: ctx, grant: grant, begun: time.Now()}
	d.trace.GotConn = func(conn httptrace.GotConnInfo) {
		d.reused.Store(conn.Reused)
		d.connected.Store(true)
	}
	d.trace.WroteRequest = func(httptrace.WroteRequestInfo) {
		d.wrote.Store(int64(time.Since(d.begun)))
		d.writes.Add(1)
	}
	return d
}

// wayOf returns the departure of a response that send has returned.
func wayOf(resp *http.Response) *requestTrace {
	way, _ := resp.Request.Context().(*requestTrace)
	return way
}

// String is for those who print the context of a response's request.
func (d *requestTrace) String() string {
	return fmt.Sprintf("%v.WithGrant(%v)", d.Context, d.grant.Token)
}

type (
	grantKey    struct{}
	feedbackKey struct{}
)

// Value returns the grant on which the request was sent.
func (d *requestTrace) Value(key any) any {
	if key == (grantKey{}) {
		return &d.grant
	}
	if key == (feedbackKey{}) {
		if d.feedback == nil {
			return nil // not that of an earlier response, whose context this may be
		}
		return d.feedback
	}
	return d.Context.Value(key)
}

// recordSends returns when the request left at the latest, and how often. On a new
// connection it may be long on its way after it was written, while the provider
// accepts the connection: it counts as having left when RoundTrip returned, which is
// now. More than once it left if the connection was dead: http.Transport then sends
// some requests again by itself, and the provider may have counted both.
func (d *requestTrace) left() (at time.Time, times int) {
	times = int(d.writes.Load())
	switch {
	case times == 0:
		return time.Time{}, 0
	case d.reused.Load():
		return d.begun.Add(time.Duration(d.wrote.Load())), times
	}
	return time.Now(), times
}

// FeedbackOf returns what a [Transport] has read in a response, and whether there was
// anything to be read.
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
