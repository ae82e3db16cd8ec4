package ration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ration-go/ration/internal/attempt"
	"github.com/ration-go/ration/internal/hosts"
	"github.com/ration-go/ration/internal/rates"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A Transport is an http.RoundTripper that sends a request when the pool's quota has room
// for it. Set it as http.Client.Transport.
//
// For each request it takes a grant from the pool, waits for the grant's slot, attaches the
// grant's token to a copy of the request, and sends the copy with Base. Put it directly
// above the http.Transport: a layer below it that retries would spend quota unseen. A
// cache belongs above it, so that a hit spends none.
//
// It reads every response as Provider describes. After a throttled response, such as a 429, what it is about
// cools down for the whole fleet: an account, all accounts or one endpoint. Then one request probes it, and behind that the others leave by a
// slow start. The request is retried if its body can be read again: at once if another account can take it, and
// otherwise when the cooldown is over, which costs it none of its retries. A token whose account is not paid for is quarantined. The quota that a response reports is compared with the
// log: units that a competing client has spent are recorded, and if the provider announces
// another limit the fleet adopts it.
//
// No 401 condemns a token by itself. The request is tried with up to three tokens: if none is
// served, its caller gets the provider's response. A token is quarantined if another one is
// served the same request, after bare 401s two such requests, or if the provider calls it
// invalid for 20 requests in a row without serving it. Then one request of the whole fleet probes
// it, after 1 s and at ever longer intervals up to MaxCooldown; a success ends the quarantine.
//
// After a server error or a failed connection the request is retried, after a pause that
// grows, if it is idempotent: by its method, or by an Idempotency-Key. A host that nobody reaches cools down. Every attempt books
// a slot of its own. If no attempt succeeds the caller gets the provider's own response.
//
// Only hosts that the caller chose get a token. A redirect to another host, or from https
// to http, is followed without a token, a booking or a wait.
//
// http.Client.Timeout and the request's context include the wait for the slot. If the slot
// would come after the deadline the request fails at once with an [*ExhaustedError] that
// names both durations, and books nothing.
//
// The fields must not be changed, nor a Transport copied, after first use. A Transport is safe for concurrent use.
type Transport struct {
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// Pool holds the tokens whose quota the requests spend. Required.
	Pool *Pool
	// Hosts get a token, and no other host does: each as in a URL, "api.example.com", or
	// "localhost:8080" for that port only. Name them whenever URLs come from elsewhere,
	// such as a response. Nil: the host of the original request, never one reached only by
	// redirect. A redirect takes a token to http on the same host only, if it came from
	// there, and a chain of redirects that has gone elsewhere gets none any more.
	Hosts []string
	// Attach puts the token's secret into a copy of the request. Nil: the Provider's
	// Attach, or provider.Bearer.
	Attach provider.Attach
	// ReplaceAuthorization replaces the Authorization header of a request that already has
	// one when its turn comes. Zero: such a request is an error, because a layer above that
	// attaches a token of its own does not know the one whose quota is booked.
	ReplaceAuthorization bool
	// Cost is what a request costs, in units. [WithCost] overrides it for one request.
	// Nil: the Provider's Cost, or 1.
	Cost func(*http.Request) int
	// Units are what a request has of each unit that a limit with a Unit counts: {"tokens": 900}. [WithUnits] overrides it
	// for one request. A unit that the map lacks is none. Nil: the Provider's Units, or only WithUnits says it.
	Units func(*http.Request) map[string]int
	// Scopes are the scopes of a request: a limit with one of them as its Scope covers the
	// request too. Nil: those that [WithScopes] has put into the request's context. The
	// Provider's own scopes are added.
	Scopes func(*http.Request) []string
	// Provider describes how to read responses: a preset, or your own. Nil: the zero
	// Provider, which reads the headers and codes that most APIs use.
	Provider *provider.Provider
	// Retries says what is tried again, how often and when. [WithRetries] replaces it for one
	// request. Zero: throttled responses, server errors and failed connections, 3 times within 6 h.
	Retries RetryPolicy
	// AttemptTimeout bounds each attempt, from its slot to the last byte of the response.
	// Zero: no bound but the request's context.
	AttemptTimeout time.Duration
	// MaxCooldown is how long anything is left alone that was refused, at most, so that one wrong response cannot stop a fleet for a
	// day: an account, an endpoint, a rejected token. Then one request of the fleet tries it, and the others wait for its response. A
	// cooldown whose length is not told is 1 s, and each that follows without a success twice as long; a token that
	// is not paid for is quarantined for MaxCooldown at once. Zero: 1 h, and until midnight where the Provider documents that a quota
	// comes back then.
	MaxCooldown time.Duration
	// OnGrant is called when a request's slot has come, before the request is sent. It must
	// not block. Nil: nothing is called.
	OnGrant func(*http.Request, Grant)
	// OnRefusal is called for every throttled response, also if the request is retried;
	// [FeedbackOf] returns why the provider throttled it. It must not read the body. Nil:
	// nothing is called.
	OnRefusal func(*http.Response, Grant)

	checked atomic.Bool // whether its fields can be meant
}

// A RetryPolicy says which requests a [Transport] tries again after a throttled response, a server error
// or a failed connection. Each attempt books a slot of its own, and a request whose body cannot be read
// again is not repeated. Another attempt because a token is invalid is not one of these. The zero
// RetryPolicy is the default. It must not be changed after first use.
type RetryPolicy struct {
	// Max is how often a request is tried again at the most for what is its own: a server error, a connection that broke. That what it
	// wants cools down is not. Zero: 3. Negative: never, for whatever reason.
	Max int
	// Within bounds the time from the first response to the last retry. Zero: 6 h.
	Within time.Duration
	// Statuses are tried again beside those that the provider's description says: each from 400
	// to 599, such as 404 where an object appears a little after it was made. Nil: none.
	Statuses []int
	// NotIdempotent repeats requests that have an effect each time they are sent as well: a POST
	// without an Idempotency-Key may then be carried out twice. Zero: only a throttled one is
	// repeated, since the provider has not carried it out.
	NotIdempotent bool
	// Pauses returns how long a request rests after server errors and failures, in turn; it is
	// called for each request that needs it. backoff.Stop gives up. Nil: from 1 to 1.5 s, and
	// twice as long each time up to a minute. What a provider asks for is kept in any case.
	Pauses func() backoff.BackOff
	// Decide may change what is done, before anything waits: it gives up, or has the request rest
	// longer, shorter or at all. It must not read the response's body, and not block. Max, Within
	// and the request's deadline hold whatever it says. Nil: what is proposed is done.
	Decide func(*http.Request, *Retry)
}

// A Retry is what a [Transport] is about to do after a response that was throttled or not served, or
// after a failure. [RetryPolicy.Decide] gets it.
type Retry struct {
	// Response is the last one. Nil: there was none.
	Response *http.Response
	// Feedback is what the response says. Zero: there is no response.
	Feedback provider.Feedback
	// Err is the failure, if there was no response.
	Err error
	// Attempts is how many have been made.
	Attempts int
	// Pause is how long the fleet pauses what the response was about, beginning now: the request
	// waits for that too, unless another account can take it. Zero: it pauses nothing.
	Pause time.Duration
	// Again tells whether the request is tried again, and Wait how long it rests before, beside
	// the Pause. Decide may change both.
	Again bool
	Wait  time.Duration
}

// WithRetries returns a context whose requests are tried again as the policy says, in place of
// [Transport.Retries].
func WithRetries(ctx context.Context, policy RetryPolicy) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.retries = &policy })
}

func (p *RetryPolicy) check() error {
	for _, status := range p.Statuses {
		if status < 400 || status > 599 {
			return fmt.Errorf("Transport.Retries.Statuses has %d: it must be from 400 to 599", status)
		}
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.checked.Load() {
		if all := t.wrong(); all != nil {
			closeBody(req)
			return nil, all[0]
		}
		t.checked.Store(true)
	}

	if !t.serves(req) {
		t.noteHost(req)
		return t.passThrough(req)
	}

	grant, err := t.take(req, nil, nil)
	if err != nil {
		return nil, t.withPreset(err)
	}

	resp, err := t.send(req, grant)
	if err == nil && t.Provider != nil && t.Provider.Spent != nil {
		grant = traceOf(resp).grant // it may be settled
	}
	if err == nil && !t.Pool.hasSuspects.Load() && !t.provider().NeedsReading(resp) { // as most
		t.Pool.wasServed(req, &grant, false)
		return resp, nil
	}
	return newAttempts(t, req).run(resp, err, grant)
}

func (t *Transport) provider() *provider.Provider {
	if t.Provider == nil {
		return &unknownProvider
	}
	return t.Provider
}

// unknownProvider reads the headers and codes that most APIs use.
var unknownProvider provider.Provider

// serves reports whether the request is to be charged and to get a token.
func (t *Transport) serves(req *http.Request) bool {
	if req.URL == nil {
		return false // Base says what is wrong with it
	}
	// req.Response is the redirect that led here. The caller chose the first request of
	// the chain. Once one after a request with a token went without, its host has chosen all
	// that follow: none of these gets a token, wherever it goes.
	first, had := req, false
	var chain []*http.Request // from the last to the first
	for first.Response != nil {
		chain = append(chain, first)
		if first = first.Response.Request; first == nil || first.URL == nil {
			return false
		}
	}

	trusted := t.trusts(first, first)
	for _, hop := range slices.Backward(chain) {
		if had = had || trusted; had && !trusted {
			return false
		}
		trusted = t.trusts(first, hop)
	}
	return trusted
}

// trusts reports whether a request gets a token, as far as its URL and that of the first request
// of its chain tell. Without TLS the token is shown to everyone on the network: only the caller
// may choose that.
func (t *Transport) trusts(first, req *http.Request) bool {
	sameOrigin := strings.EqualFold(first.URL.Host, req.URL.Host) && first.URL.Scheme == req.URL.Scheme
	if t.Hosts == nil || req.URL.Scheme != "https" && first != req && !sameOrigin {
		return sameOrigin
	}
	return hosts.Has(t.Hosts, req.URL)
}

// CloseIdleConnections closes the idle connections of Base. [http.Client] calls it on the
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

// withPreset returns the error, with the limits of the Provider if the budget has none.
func (t *Transport) withPreset(err error) error {
	p := t.Provider
	if p == nil || len(p.Limits) == 0 || !errors.Is(err, limit.ErrNone) {
		return err
	}
	return fmt.Errorf("%w, or Provider.Limits, which for %s are %s", err, cmp.Or(p.Name, "it"), limit.Join(p.Limits))
}

// noteHost tells once of a host outside of Hosts that a caller has named, and no redirect.
func (t *Transport) noteHost(req *http.Request) {
	if t.Hosts == nil || req.Response != nil || req.URL == nil || t.Pool == nil || t.Pool.budget == nil {
		return
	}
	b, host := t.Pool.budget, strings.ToLower(req.URL.Host)
	if b.once.isNews("host " + host) {
		b.tell(Event{Kind: HostNotNamed, Host: host})
	}
}

// passThrough sends a request that gets no token as it is.
func (t *Transport) passThrough(req *http.Request) (*http.Response, error) {
	resp, err := t.base().RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.Request == nil {
		resp.Request = req // serves follows the chain of redirects
	}
	if _, found := GrantOf(resp); found {
		// The caller used the context of an earlier response.
		resp.Request = resp.Request.WithContext(&requestTrace{Context: resp.Request.Context()})
	}
	return resp, nil
}

// send sends a copy of the request with the grant's token.
func (t *Transport) send(req *http.Request, grant Grant) (*http.Response, error) {
	trace := newRequestTrace(req, grant)
	handedOver, answered, holds := false, false, false
	var bounded *attempt.Attempt
	defer func() {
		if grant.held != nil && !holds {
			grant.held.Return()
		}
		if answered {
			return
		}
		// Attach has failed, or a function of the caller's has panicked, or Base, which may have
		// sent the request.
		if !handedOver {
			closeBody(req)
			grant.cancelSoon()
		}
		if grant.held != nil {
			grant.held.Return()
		}
		if bounded != nil {
			bounded.End()
		}
	}()

	if t.OnGrant != nil {
		t.OnGrant(req, grant)
	}
	ctx := req.Context()
	if t.AttemptTimeout > 0 {
		bounded = attempt.Begin(ctx, t.AttemptTimeout)
		ctx = bounded.Ctx
	}
	out, err := t.withToken(ctx, req, &trace.hooks, grant.Token)
	if err != nil {
		if bounded != nil {
			_, err = bounded.Answered(nil, err)
		}
		return nil, redact(err, grant.Token)
	}

	base := t.base()
	handedOver = true
	grant.traces.sent(req, &grant)
	resp, err := counting(&grant.budget.inFlight, base, out)
	answered = true
	grant.traces.answered(req, &grant, resp, err, trace.begun)
	status := 0
	if err == nil && resp != nil {
		status = min(max(0, resp.StatusCode), len(rates.Class)-1)
	}
	class := rates.Class[status]
	grant.budget.rates.Answered[class].Add(1)
	grant.budget.rates.Quarter(time.Now()).Answered[class].Add(1)
	if class != rates.Served {
		grant.noteFailed(req, class)
	}
	if status > 0 {
		grant.budget.rates.Took[store.HistogramBucket(time.Since(trace.begun))].Add(1)
	}

	switch {
	case err == nil && resp == nil:
		err = errors.New("ration: Transport.Base returned neither a response nor an error")
	case err == nil && resp.Body == nil:
		resp.Body = http.NoBody
	}
	if bounded != nil {
		resp, err = bounded.Answered(resp, err)
	}

	trace.recordSends()
	if err != nil {
		if _, traced := base.(*http.Transport); traced && !trace.connected.Load() {
			grant.cancelSoon()
		}
		return nil, redact(err, grant.Token)
	}
	// The copy carries the token; the caller's own request does not.
	resp.Request = req.WithContext(trace)
	if p := t.Provider; p != nil && p.Spent != nil {
		if units := p.Spent(resp); len(units) > 0 {
			trace.settle(units)
		}
	}
	if p := t.Provider; p != nil && p.SpentInBody != nil {
		settleByBody(p, resp, trace)
	}
	if grant.held != nil {
		holdUntilRead(resp, grant.held)
		holds = true
	}
	return resp, nil
}

// counting sends a request, and counts it while it is in flight: also if the Base panics.
func counting(inFlight *atomic.Int64, base http.RoundTripper, req *http.Request) (*http.Response, error) {
	inFlight.Add(1)
	defer inFlight.Add(-1)
	return base.RoundTrip(req)
}

// Validate returns what is wrong with the Transport's fields, those of its Pool, its Budget and its tokens included, all of it joined: each is a
// [*ConfigError]. Nil: nothing is. It asks no store, so a program can call it when it starts. RoundTrip returns the same.
func (t *Transport) Validate() error {
	all := t.wrong()
	if t.Pool == nil {
		all = append(all, errNoPool)
	} else if err := t.Pool.budget.Validate(); err != nil {
		all = append(all, err)
	} else if _, err := t.Pool.list(nil); err != nil {
		all = append(all, t.withPreset(err))
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

var errNoPool = &ConfigError{Field: "Transport.Pool", Err: errors.New("Transport.Pool is nil: set it to ration.NewPool(budget, tokens...)")}

// wrong returns what is wrong with the fields of the Transport itself.
func (t *Transport) wrong() (all []error) {
	for _, d := range [...]struct {
		field string
		value time.Duration
	}{
		{"Retries.Within", t.Retries.Within}, {"AttemptTimeout", t.AttemptTimeout}, {"MaxCooldown", t.MaxCooldown},
	} {
		if d.value < 0 {
			field := "Transport." + d.field
			all = append(all, &ConfigError{Field: field, Err: fmt.Errorf("%s is %v: it must not be negative", field, d.value)})
		}
	}
	if err := t.Retries.check(); err != nil {
		all = append(all, &ConfigError{Field: "Transport.Retries.Statuses", Err: err})
	}
	if err := t.Provider.Validate(); err != nil {
		all = append(all, &ConfigError{Field: "Transport.Provider.Rules", Err: err})
	}
	if err := hosts.Check(t.Hosts); err != nil {
		all = append(all, &ConfigError{Field: "Transport.Hosts", Err: err})
	}
	return all
}
