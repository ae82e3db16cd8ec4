package ration

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/credential"
	"github.com/ration-go/ration/internal/hosts"
	"github.com/ration-go/ration/internal/inflight"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// take takes a grant for the request, from an account that is not excluded. It holds the
// request back while its endpoint, its object or one of its scopes is paused. If it fails it
// closes the request's body. The waits are what the request has waited for up to now.
func (t *Transport) take(req *http.Request, excluded []string, waits []rationtrace.Wait) (grant Grant, err error) {
	taken := false
	defer func() {
		if !taken { // also if Transport.Cost or Transport.Scopes panics
			closeBody(req)
		}
		if t.Pool != nil {
			t.Pool.budget.traceOutcome(req.Context(), &grant, err)
		}
	}()
	if t.Pool == nil {
		return Grant{}, errors.New("ration: Transport.Pool is nil: set it to ration.NewPool(budget, tokens...)")
	}
	b := t.Pool.budget
	if b == nil {
		return Grant{}, b.check()
	}
	if err := t.checkAuthorization(req); err != nil {
		return Grant{}, err
	}
	ctx, cost, scopes := t.costAndScopes(req)
	var probeWait time.Time // when the wait for a probe began
	for late := false; ; {
		sourceFailed := false
		unavailable, free, resumes := excluded, time.Duration(0), b.resumes.Load()
		if b.keyPauses.Any.Load() {
			if unavailable, free, err = t.waitForPauses(ctx, req, scopes, excluded, &waits); err != nil {
				return Grant{}, err
			}
		}
		if free == 0 && !b.reconciles.Load() {
			grant, err = t.Pool.take(ctx, cost, unavailable, nil)
		} else {
			grant, err = t.takeSmoothed(ctx, cost, unavailable, free, &waits)
		}
		if err == nil && grant.Token.source != nil {
			if err = t.Pool.askForSecret(ctx, &grant, &waits); errors.Is(err, errLateSecret) && late {
				err = nil // once is enough: its log is corrected as for any late call
			}
			if err != nil {
				_, sourceFailed = errors.AsType[*credential.Error](err)
				t.handBack(&grant)
			}
		}
		switch {
		case errors.Is(err, errLateSecret):
			late = true // the secret will be there when the next slot comes
		case sourceFailed:
			t.Pool.sourceFailed(grant.Token) // another token will do, or this one when its source is back
		case err == nil && (!b.keyPauses.Any.Load() || !t.excludes(req, grant)):
			taken = true
			if len(waits) > 0 {
				grant.Waits = append(waits, grant.Waits...)
			}
			return grant, nil
		case err == nil:
			// The pause was made while the request waited for its slot.
			t.handBack(&grant)
		case errors.Is(err, ErrNoToken):
			none, _ := errors.AsType[*NoTokenError](err) // errors.As would allocate for every request
			if probeWait.IsZero() {
				probeWait = time.Now()
			}
			if err := t.Pool.waitForProbe(ctx, none, probeWait, &waits); err != nil {
				return Grant{}, err
			}
		case errors.Is(err, errAllExcluded) && len(unavailable) > len(excluded):
			// The pool has just lost its last account that is not paused.
		case free > 0 && ctx.Err() == nil && outOfTime(err):
			// The pause of an account ends before another account has a slot.
			if err := b.waitWithin(ctx, free, resumes, rationtrace.Wait{Reason: rationtrace.Cooldown}, &waits); err != nil {
				return Grant{}, err
			}
		default:
			return Grant{}, err
		}
	}
}

// handBack gives back a grant on which nothing was sent.
func (t *Transport) handBack(grant *Grant) {
	t.Pool.endProbe(context.Background(), *grant)
	grant.finish(-1)
	grant.cancelSoon()
}

// costAndScopes returns the request's cost, its scopes, and its context with them.
func (t *Transport) costAndScopes(req *http.Request) (ctx context.Context, cost int, scopes []string) {
	ctx = req.Context()
	options := requestOptionsOf(ctx)
	switch {
	case options != nil && options.hasCost:
		cost = options.cost
	case t.Cost != nil:
		cost = t.Cost(req)
	case t.Provider != nil && t.Provider.Cost != nil:
		cost = t.Provider.Cost(req)
	default:
		cost = 1
	}
	if scopes = scopesOf(ctx); t.Scopes != nil {
		scopes = t.Scopes(req)
	}
	own := t.Provider != nil && t.Provider.Scopes != nil
	if own {
		scopes = slices.Clip(scopes)
		for _, scope := range t.Provider.Scopes(req) {
			if !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	if own || t.Scopes != nil {
		ctx = WithScopes(ctx, scopes...)
	}
	return ctx, cost, scopes
}

// smoothedAccounts is the size up to which a pool excludes its full accounts from the
// store's choice. A larger pool only holds a call back, and only while every account is
// full, because the store may keep an index for each list of accounts.
const smoothedAccounts = 16

// takeSmoothed takes a grant as takeWithin does, and counts its call as in flight. An
// account is full while its calls in flight may use up what external usage has left of it.
// While all candidates are full takeSmoothed waits until one of their calls has ended.
func (t *Transport) takeSmoothed(ctx context.Context, cost int, excluded []string, within time.Duration, waits *[]rationtrace.Wait) (Grant, error) {
	b := t.Pool.budget
	if !b.reconciles.Load() {
		return t.takeWithin(ctx, cost, excluded, within, nil)
	}
	var candidates []string
	if b.smoother.Narrowed() {
		accounts, _, err := t.Pool.list(excluded)
		if err != nil {
			return Grant{}, err
		}
		candidates = accounts.without(excluded)
	}
	for deadline := time.Now().Add(inflight.LongestHold); ; {
		grant, full, err := t.takeAdmitted(ctx, cost, excluded, candidates, within, deadline, waits)
		if len(full) == 0 || ctx.Err() != nil || !outOfTime(err) {
			return grant, err
		}
		candidates = full // the others have no slot soon
	}
}

// takeAdmitted waits until a candidate has room for a call, takes a grant, and returns the
// candidates without room. Without candidates every account has room.
func (t *Transport) takeAdmitted(
	ctx context.Context, cost int, excluded, candidates []string, within time.Duration, deadline time.Time, waits *[]rationtrace.Wait,
) (Grant, []string, error) {
	var booking *inflight.Booking
	var full []string
	var err error
	smoother := &t.Pool.budget.smoother
	if len(candidates) > 0 {
		var wait wait
		if smoother.Waits(candidates) {
			b := t.Pool.budget
			wait = b.beginWait(ctx, b.tracesOf(ctx), rationtrace.Wait{Reason: rationtrace.Smoothing}, watchFrom)
		}
		booking, full, err = smoother.Admit(ctx, candidates, deadline)
		if *waits = wait.end(*waits); err != nil {
			return Grant{}, nil, ended(ctx)
		}
		defer booking.Release()
	}
	if len(candidates) > smoothedAccounts {
		full = nil
	}
	if len(full) > 0 {
		excluded = append(full, excluded...)
		if within <= 0 || within > inflight.LongestHold {
			within = inflight.LongestHold
		}
	}
	grant, err := t.takeWithin(ctx, cost, excluded, within, booking.Release)
	if err == nil {
		smoother.Start(grant.account.ID)
		grant.counted = true
	}
	return grant, full, err
}

// finish says that the grant's call is no longer in flight, and how many units its response
// left; negative: unknown.
func (g *Grant) finish(left int) {
	if g.counted {
		g.counted = false
		g.budget.smoother.Finish(g.account.ID, left)
	}
}

// takeWithin takes a grant whose slot comes within a time; zero: any time will do.
func (t *Transport) takeWithin(ctx context.Context, cost int, excluded []string, within time.Duration, sleeping func()) (Grant, error) {
	if within > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, within)
		defer stop()
	}
	return t.Pool.take(ctx, cost, excluded, sleeping)
}

// outOfTime reports whether the error says that no slot came within the allowed time.
func outOfTime(err error) bool {
	return errors.Is(err, store.ErrExhausted) || errors.Is(err, context.DeadlineExceeded)
}

// waitForPauses waits while the request is paused on every account. It returns the accounts
// that must not be charged, the excluded ones among them, and how long it takes until the
// first pause ends; zero: no account is paused.
func (t *Transport) waitForPauses(
	ctx context.Context, req *http.Request, scopes, excluded []string, waits *[]rationtrace.Wait,
) ([]string, time.Duration, error) {
	b := t.Pool.budget
	for {
		if !b.keyPauses.Any.Load() || t.Pool.excludesAll(excluded) {
			return excluded, 0, nil
		}
		resumes, now := b.resumes.Load(), b.storeNow()
		paused, free, all := b.keyPauses.Excluded(cooldown.KeysOf(req, scopes), now)
		if all.Until.IsZero() {
			if len(paused) == 0 {
				return excluded, 0, nil
			}
			paused = append(paused, excluded...)
			if !t.Pool.excludesAll(paused) {
				return paused, free.Until.Sub(now), nil
			}
			all = free
		}
		why := rationtrace.Wait{Reason: rationtrace.Cooldown, Until: all.Until, Cause: all.Cause}
		if err := b.waitWithin(ctx, all.Until.Sub(now), resumes, why, waits); err != nil {
			return nil, 0, err
		}
	}
}

// excludes reports whether the request is paused on the grant's account.
func (t *Transport) excludes(req *http.Request, grant Grant) bool {
	b := t.Pool.budget
	paused, _, all := b.keyPauses.Excluded(cooldown.KeysOf(req, grant.scopes), b.storeNow())
	return !all.Until.IsZero() || slices.Contains(paused, grant.account.ID)
}

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

func (t *Transport) attach() provider.Attach {
	if t.Attach == nil && t.Provider != nil {
		return t.Provider.Attach
	}
	return t.Attach
}

var errAuthorization = errors.New("ration: the request has an Authorization header already: the Transport attaches the token, " +
	"because it chooses one when the slot comes. Attach none in a layer above it (oauth2.Transport, a client's WithAuthToken): " +
	"give the Pool the tokens, by NewToken or TokenFrom. Or set Transport.ReplaceAuthorization")

// checkAuthorization refuses a request, before it waits, whose Authorization header would be
// replaced. What an Attach of the caller's does only its call can tell.
func (t *Transport) checkAuthorization(req *http.Request) error {
	if len(req.Header["Authorization"]) > 0 && !t.ReplaceAuthorization && t.attach() == nil {
		return errAuthorization
	}
	return nil
}
