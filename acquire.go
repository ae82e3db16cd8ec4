package ration

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/credential"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// take takes a grant for the request, from an account that is not excluded. If it fails it
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
		return Grant{}, errNoPool
	}
	if b := t.Pool.budget; b == nil {
		return Grant{}, b.check()
	}
	if err := t.checkAuthorization(req); err != nil {
		return Grant{}, err
	}

	a := acquisition{Transport: t, req: req, excluded: excluded, waits: waits}
	a.options = requestOptionsOf(req.Context())
	if a.options != nil && a.options.labels != nil {
		if a.excluded, err = t.Pool.excludedBy(a.options.labels, excluded); err != nil {
			return Grant{}, err
		}
	}
	a.ctx, a.cost, a.scopes = t.costAndScopes(req, a.options)
	if err = a.run(&grant); err != nil {
		grant = Grant{}
	}
	taken = err == nil
	return grant, err
}

// An acquisition is the way of one request to its grant.
type acquisition struct {
	*Transport
	req        *http.Request
	ctx        context.Context // the request's, with its scopes
	cost       int
	scopes     []string
	options    *requestOptions    // what the request's context asks for; nil: nothing
	excluded   []string           // accounts that the request must not be charged to
	waits      []rationtrace.Wait // what the request has waited for
	probeBegan time.Time          // when it began to wait for a probe; zero: it has not
	wasLate    bool               // a slot has passed while its token's source was asked
	begun      time.Time          // when it began to wait, if it then waited for a pause of a part; zero: it has not
	cooling    *cooldown.Pause    // of a part that the request is the one to probe; nil: it is not
}

// unpaused says which accounts are not paused for a request.
type unpaused struct {
	excluded []string      // the others, those that the request excludes among them
	after    time.Duration // how long it takes until the first pause ends; zero: no account is paused
	known    *fleet.State  // from before that was found
}

// run takes the steps to a grant in turn. If what one step found no longer holds after another, it
// begins again.
func (a *acquisition) run(grant *Grant) (err error) {
	b := a.Pool.budget
	if o := a.options; o != nil && o.grant != nil {
		if *grant, err = a.Pool.granted(a.ctx, o.grant, a.cost); err == nil {
			if grant.Token.source != nil {
				_, err = a.openSecret(grant)
			}
		}
		return err
	}

	for {
		may := unpaused{excluded: a.excluded, known: b.fleet.State()}
		if b.fleet.Keys.Any.Load() {
			if may, err = a.passPauses(may); err != nil {
				return err
			}
		}
		if err := a.book(grant, may); err != nil {
			if err = a.waitAfter(err, may); err != nil {
				return err
			}
			continue
		}

		opened := grant.Token.source == nil
		if !opened {
			opened, err = a.openSecret(grant)
		}
		if opened && (!b.fleet.Keys.Any.Load() || a.mayLeave(grant)) {
			if len(a.waits) > 0 {
				grant.Waits = append(a.waits, grant.Waits...)
			}
			if !a.begun.IsZero() {
				grant.waitedBefore = time.Since(a.begun) - grant.Waited
			}
			return nil
		}
		a.handBack(grant)
		if a.begun.IsZero() { // its waits are one
			a.begun = time.Now().Add(-grant.Waited)
		}
		if err != nil {
			return err
		}
	}
}

// passPauses holds the request back while its endpoint, its object or one of its scopes is paused on
// every account.
func (a *acquisition) passPauses(may unpaused) (unpaused, error) {
	b := a.Pool.budget
	for b.fleet.Keys.Any.Load() && !a.Pool.excludesAll(a.excluded) {
		if a.ctx.Err() != nil {
			return unpaused{}, flight.Ended(a.ctx)
		}
		known, now := b.fleet.State(), b.durable.Now()
		keys := cooldown.KeysOf(a.req, a.scopes)
		only := a.Pool.onlyAccount()
		if over, found := b.fleet.Keys.Unprobed(keys, only, now); found {
			if a.cooling = b.claimKey(a.ctx, over); a.cooling != nil {
				break
			}
			continue
		}
		paused, free, all := b.fleet.Keys.Excluded(keys, now)
		if all.Until.IsZero() {
			if len(paused) == 0 {
				wait := b.fleet.Keys.Release(keys, only, max(1, b.fleet.State().Status.Workers), now).Sub(now)
				if wait <= 0 {
					break
				}
				never := func() bool { return false }
				return may, b.waitWithin(a.ctx, wait, a.waitsSince(), never, rationtrace.Wait{Reason: rationtrace.Cooldown, Until: now.Add(wait)}, &a.waits)
			}
			paused = append(paused, a.excluded...)
			if !a.Pool.excludesAll(paused) {
				may.excluded, may.after = paused, free.Until.Sub(now)
				break
			}
			all = free
		}

		why := rationtrace.Wait{Reason: rationtrace.Cooldown, Until: all.Until, Cause: all.Cause}
		length := all.Until.Sub(now)
		if all.Kind == store.PauseProbed { // it ends when the probe's response comes, of which no message may tell
			length = min(length, fleet.ConfirmAfter)
		}
		if err := b.waitWithin(a.ctx, length, a.waitsSince(), b.fleet.PartsChanged(known), why, &a.waits); err != nil {
			if errors.Is(err, store.ErrExhausted) { // nobody who waits has heard whether the pause was ended
				if b.fleet.Confirm(a.ctx, time.Now()); b.fleet.State() != known {
					continue
				}
			}
			return unpaused{}, err
		}
		if all.Kind == store.PauseProbed {
			_ = b.fleet.Refresh(a.ctx)
		}
	}
	return may, nil
}

// waitsSince returns when it began to wait for pauses of parts, which is now if it has not.
func (a *acquisition) waitsSince() time.Time {
	if a.begun.IsZero() {
		a.begun = time.Now()
	}
	return a.begun
}

// book books a slot of an open account, and waits for it, until the first pause ends.
func (a *acquisition) book(grant *Grant, may unpaused) (err error) {
	ctx := a.ctx
	if may.after > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, may.after)
		defer stop()
	}
	*grant, err = a.Pool.take(ctx, a.cost, may.excluded, a.options, time.Time{})
	return err
}

// waitAfter waits for what may let the next booking succeed after one has failed. It returns the error if
// nothing may.
func (a *acquisition) waitAfter(failed error, may unpaused) error {
	switch {
	case errors.Is(failed, ErrNoToken):
		none, is := errors.AsType[*NoTokenError](failed) // errors.As would allocate for every request
		if !is {
			return failed
		}
		if a.probeBegan.IsZero() {
			a.probeBegan = time.Now()
		}
		return a.Pool.waitForProbe(a.ctx, none, a.probeBegan, &a.waits)
	case errors.Is(failed, errAllExcluded) && len(may.excluded) > len(a.excluded):
		return nil // the pool has just lost its last account that is not paused
	case may.after > 0 && a.ctx.Err() == nil && outOfTime(failed):
		// The pause of an account ends before another account has a slot.
		b := a.Pool.budget
		return b.waitWithin(a.ctx, may.after, a.waitsSince(), b.fleet.PartsChanged(may.known), rationtrace.Wait{Reason: rationtrace.Cooldown}, &a.waits)
	}
	return failed
}

// openSecret asks the source of the grant's token for the secret. It reports false and no
// error if another grant is to be taken: the source has failed, or the slot has passed meanwhile.
func (a *acquisition) openSecret(grant *Grant) (opened bool, err error) {
	err = a.Pool.askForSecret(a.ctx, grant, &a.waits)
	switch {
	case errors.Is(err, errLateSecret):
		// The secret will be there when the next slot comes. Once is enough: the log of a second one is
		// corrected as for any late call.
		opened, a.wasLate = a.wasLate, true
		return opened, nil
	case isSourceError(err):
		a.Pool.sourceFailed(grant.Token) // another token will do, or this one when its source is back
		return false, nil
	}
	return err == nil, err
}

func isSourceError(err error) bool {
	_, is := errors.AsType[*credential.Error](err)
	return is
}

// mayLeave reports whether no part of the request was paused on the grant's account while it waited for its slot, or the request is the
// one that probes whether the pause is over.
func (a *acquisition) mayLeave(grant *Grant) bool {
	b, now := a.Pool.budget, a.Pool.budget.durable.Now()
	keys := cooldown.KeysOf(a.req, grant.scopes)
	if probe := a.cooling; probe != nil {
		last := b.fleet.Keys.Last(probe.Key, probe.Account)
		if !last.Until.Equal(probe.Until) && last.Kind == store.PauseProbed { // another has claimed it, whose slot may be far
			probe = b.claimKey(a.ctx, last)
		} else if !last.Until.Equal(probe.Until) {
			probe = nil
		}
		if grant.cooling = probe; probe != nil {
			keys = slices.DeleteFunc(keys, func(key cooldown.Key) bool { return key == probe.Key })
		}
		a.cooling = nil
	}
	paused, _, all := b.fleet.Keys.Excluded(keys, now)
	if !all.Until.IsZero() || slices.Contains(paused, grant.account.ID) {
		return false
	}
	if over, found := b.fleet.Keys.Unprobed(keys, grant.account.ID, now); found {
		grant.cooling = b.claimKey(a.ctx, over)
		return grant.cooling != nil
	}
	return true
}

// handBack gives back a grant on which nothing was sent.
func (t *Transport) handBack(grant *Grant) {
	t.Pool.endProbe(context.Background(), *grant)
	grant.cancelSoon()
}

// costAndScopes returns the request's cost, its scopes, and its context, which asks for those options, with them and its units.
func (t *Transport) costAndScopes(req *http.Request, options *requestOptions) (ctx context.Context, cost int, scopes []string) {
	ctx = req.Context()
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

	switch {
	case t.Scopes != nil:
		scopes = t.Scopes(req)
	case options != nil:
		scopes = options.scopes
	}
	own, named := t.Provider != nil && t.Provider.Scopes != nil, len(scopes)
	if own {
		scopes = slices.Clip(scopes)
		for _, scope := range t.Provider.Scopes(req) {
			if !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	if own || t.Scopes != nil {
		ctx = withOption(ctx, func(o *requestOptions) { o.scopes, o.named = slices.Clone(scopes), named })
	}

	switch {
	case options != nil && options.units != nil:
	case t.Units != nil:
		ctx = WithUnits(ctx, t.Units(req))
	case t.Provider != nil && t.Provider.Units != nil:
		units := t.Provider.Units(req)
		ctx = withOption(ctx, func(o *requestOptions) { o.units, o.mayHaveMore = units, true })
	}
	if t.Provider != nil && t.Provider.Keys != nil {
		ctx = withKeysOf(ctx, t.Provider.Keys(req))
	}
	return ctx, cost, scopes
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
