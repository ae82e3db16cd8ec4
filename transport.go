package ration

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// A Transport is an http.RoundTripper that sends a request when the pool's quota
// has room for it. Set it as http.Client.Transport.
//
// For every request it takes a grant from the pool, waits for its slot, attaches
// the grant's token to a copy of the request, and sends that with Base. Put it
// directly above the http.Transport: a layer below it that sends again would
// spend quota unseen, and a cache belongs above it, so that a hit spends none.
//
// A 429 pauses the token's account for the whole fleet, and the request is sent
// again on the token that is free first, if its body can be had again. When that
// has failed Retries times, or the next slot would come too late, the caller gets
// the provider's own response.
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
	// Attach puts the token's secret into the request, which is a copy. Nil:
	// Bearer.
	Attach Attach
	// Cost is what a request costs, in units. Nil: 1 for every request. A
	// request whose context says so, by WithCost, costs that.
	Cost func(*http.Request) int
	// Scopes are those of a request: a limit whose Scope is one of them covers
	// it too. Nil: those of its context, by WithScopes.
	Scopes func(*http.Request) []string
	// Retries is how often a refused request is sent again. Each time is a
	// booking of its own. Zero: 3. Negative: never.
	Retries int
	// MaxPause bounds the pause that a Retry-After asks for, so that one wrong
	// answer cannot stop a fleet for a day. Zero: 1 h.
	MaxPause time.Duration
	// Granted, unless it is nil, is called when a request's slot has come,
	// before it is sent. It must not block.
	Granted func(*http.Request, Grant)
	// Refused, unless it is nil, is called for every 429 that came for a
	// request on a grant, also for one that is sent again. It must not read
	// the body.
	Refused func(*http.Response, Grant)
}

const (
	defaultRetries  = 3
	defaultMaxPause = time.Hour
	// Without a Retry-After the first pause is about this long; it doubles
	// with each refusal of the same request.
	firstPause = time.Second
)

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.serves(req) {
		return t.pass(req)
	}
	grant, err := t.take(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	var pauses backoff.BackOff
	for left := t.retries(); ; left-- {
		resp, err := t.send(req, grant)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusTooManyRequests {
			return resp, nil
		}
		if t.Refused != nil {
			t.Refused(resp, grant)
		}
		if pauses == nil {
			pauses = t.pauses()
		}
		// Also after the last try: it is for the fleet.
		t.pause(req, resp, grant, pauses.NextBackOff())
		if left <= 0 {
			return resp, nil
		}
		again, replayable := rewind(req)
		if !replayable {
			return resp, nil
		}
		grant, err = t.take(req)
		if err != nil {
			// The caller is better served by the provider's answer than by
			// ours, unless it has itself stopped waiting.
			closeBody(again)
			if ctxErr := req.Context().Err(); ctxErr != nil {
				_ = resp.Body.Close()
				return nil, err
			}
			return resp, nil
		}
		// Not drained: a refusal is rare, and its body may never end.
		_ = resp.Body.Close()
		req = again
	}
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
		resp.Request = resp.Request.WithContext(&departure{Context: resp.Request.Context()})
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

func (t *Transport) take(req *http.Request) (Grant, error) {
	ctx, cost := req.Context(), 1
	if a := askingOf(ctx); a != nil && a.costs {
		cost = a.cost
	} else if t.Cost != nil {
		cost = t.Cost(req)
	}
	if t.Scopes != nil {
		ctx = WithScopes(ctx, t.Scopes(req)...)
	}
	if t.Pool == nil {
		return Grant{}, errors.New("ration: Transport.Pool is nil: set it to ration.NewPool(budget, tokens...)")
	}
	return t.Pool.Take(ctx, cost)
}

// send sends a copy of the request with the grant's token.
func (t *Transport) send(req *http.Request, grant Grant) (*http.Response, error) {
	way := newDeparture(req.Context(), grant)
	out := t.attached(req, httptrace.WithClientTrace(req.Context(), &way.trace), grant.Token)
	if t.Granted != nil {
		t.Granted(req, grant)
	}
	resp, err := t.base().RoundTrip(out)
	if at, times := way.left(); times > 0 {
		grant.left(req.Context(), at, times)
	}
	if err != nil {
		if _, traces := t.base().(*http.Transport); traces && !way.connected.Load() {
			t.handBack(grant)
		}
		return nil, redact(err, grant.Token)
	}
	// The copy carries the token; the caller's own request does not.
	resp.Request = req.WithContext(way)
	return resp, nil
}

// attached returns a copy of the request with the token.
func (t *Transport) attached(req *http.Request, ctx context.Context, token Token) *http.Request {
	if t.Attach != nil {
		secret, _ := token.open()
		out := req.Clone(ctx)
		if out.Header == nil {
			out.Header = make(http.Header)
		}
		t.Attach(out, secret)
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
