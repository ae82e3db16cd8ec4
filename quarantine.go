package ration

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// The fleet quarantines a token that the provider has rejected. When the quarantine ends, one
// request of the whole fleet probes the token, because users mend tokens and providers err: its
// process replaces the quarantine that has ended by one that lasts for as long as the probe may
// take. If the token is served the fleet uses it again, and otherwise the next quarantine replaces
// the probe's.

// probeFor is how long one request has a suspect for itself, if it gets no response.
const probeFor = time.Minute

// usable returns the tokens that are not quarantined, and notes when a quarantine ends.
// It needs mu.
func (p *Pool) usable() ([]Token, error) {
	p.quarantines, p.staleAt = p.budget.quarantines.Load(), time.Time{}
	if p.quarantines == 0 && len(p.suspects) == 0 && !p.sourced.Load() {
		return p.tokens, nil
	}
	now, storeNow := time.Now(), p.budget.storeNow()
	none := &NoTokenError{Budget: p.budget.Name, unserved: true}
	var tokens []Token
	hopeless := true
	unusable := func(t Token, q QuarantinedToken, wait time.Duration) {
		q.ID, q.Account, q.Label = t.id, t.AccountID(), t.Label
		none.Tokens = append(none.Tokens, q)
		if ends := now.Add(wait); p.staleAt.IsZero() || ends.Before(p.staleAt) {
			p.staleAt = ends
		}
	}
	for _, t := range p.tokens {
		if t.source != nil {
			if wait, err := t.source().Failing(now); err != nil {
				none.unserved = false
				unusable(t, QuarantinedToken{Until: storeNow.Add(wait), Err: err}, wait)
				continue
			}
		}
		state, known := p.suspects[t.id]
		if known && p.budget.resumedSince(t, state.resumes) {
			p.forget(t)
			state = suspect{}
		}
		q, quarantined := p.budget.quarantinedToken(t)
		if q.Token != "" {
			state.quarantined, state.reason, state.until, state.probing = true, provider.Reason(q.Reason), q.Until, q.Probing
			state.quarantines = max(state.quarantines, q.Count)
			p.setSuspect(t, state)
		}
		until, wait := state.until, state.probedUntil.Sub(now)
		if quarantined {
			wait = q.Until.Sub(storeNow)
		} else if wait > 0 {
			until, state.probing = storeNow.Add(wait), true
		} else {
			tokens = append(tokens, t)
			continue
		}
		ever, _ := p.servedLately(t)
		none.unserved = none.unserved && !ever && state.reason != provider.ReasonBilling
		none.probing = none.probing || state.probing
		hopeless = hopeless && (state.condemned || state.reason == provider.ReasonBilling)
		unusable(t, QuarantinedToken{Reason: state.reason, Until: until, Answer: state.answer, Evidence: state.evidence()}, wait)
	}
	if len(tokens) > 0 {
		return tokens, nil
	}
	if !hopeless {
		none.next = p.staleAt
	}
	return nil, none
}

// startProbe gives a quarantined token to one request of this process, and reports whether that is
// its probe. It needs mu.
func (p *Pool) startProbe(t Token) bool {
	s, known := p.suspects[t.id]
	if !known || !s.quarantined {
		return false
	}
	s.probedUntil = time.Now().Add(probeFor)
	p.suspects[t.id] = s
	p.accounts = nil
	return true
}

// claimProbe makes the grant's request the one of the whole fleet that probes the token. It reports
// false if another one is.
func (p *Pool) claimProbe(ctx context.Context, g *Grant) bool {
	b, t := p.budget, g.Token
	ctx, stop := p.budget.soon(ctx)
	defer stop()
	p.mu.Lock()
	s := p.suspects[t.id]
	p.mu.Unlock()
	g.probe = &store.Quarantine{Token: t.id, Reason: string(s.reason), Until: s.until, Count: s.quarantines, Probing: true}
	for range 2 { // once more if the quarantine has ended at another instant than this process knew
		if g.probe.Until.IsZero() {
			return true // the store knows of no quarantine
		}
		until, changed, err := b.quarantine(ctx, *g.probe, probeFor, g.probe.Until)
		switch {
		case err == nil && until.IsZero():
			b.forgetQuarantine(g.probe) // somebody has ended it, or the store has lost it
			p.mu.Lock()
			p.forget(t)
			p.mu.Unlock()
			g.probe = nil
			return true
		case err != nil || changed:
			g.probe.Until = until
			return true
		case until.After(b.storeNow()):
			p.stopProbe(t)
			_ = b.refresh(ctx) // or the next caller hears of it
			return false
		}
		g.probe.Until = until
	}
	p.stopProbe(t)
	return false
}

// endProbe ends the probe that the grant's request was, if it was one, without a result: another
// request may probe the token at once.
func (p *Pool) endProbe(ctx context.Context, g Grant) {
	if g.probe == nil {
		return
	}
	if !g.probe.Until.IsZero() {
		ctx, stop := p.budget.soon(ctx)
		defer stop()
		over := *g.probe
		over.Probing = false
		_, _, _ = p.budget.quarantine(ctx, over, 0, over.Until)
	}
	p.stopProbe(g.Token)
}

// stopProbe lets another request of this process probe the token.
func (p *Pool) stopProbe(t Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, known := p.suspects[t.id]; known {
		s.probedUntil = time.Time{}
		p.suspects[t.id] = s
	}
	p.change()
}

// release lets the whole fleet use a token again that was served.
func (p *Pool) release(ctx context.Context, t Token) {
	_, _, _ = p.quarantining.Do("release "+t.id, func() (any, error) {
		ctx, stop := p.budget.soon(ctx)
		defer stop()
		if b := p.budget; b.resume(ctx, store.ResumeRequest{Token: t.id}) != nil {
			b.mu.Lock()
			b.noteResumption(store.Resumption{Token: t.id, At: b.storeNow()}) // only this process uses it
			b.mu.Unlock()
		}
		p.mu.Lock()
		p.change()
		p.mu.Unlock()
		return nil, nil
	})
}

// quarantineUnpaid keeps the whole fleet from using the grant's token, whose account is not paid for.
func (p *Pool) quarantineUnpaid(ctx context.Context, g Grant, length time.Duration) {
	_, _, _ = p.quarantining.Do("unpaid "+g.Token.id, func() (any, error) {
		p.quarantine(ctx, g, provider.ReasonBilling, length, 0)
		return nil, nil
	})
}

// quarantine keeps the whole fleet from using the grant's token. Callers that wait for it book
// another. Of requests that get the same response at the same time, the first asks the store. If the
// grant's request was a probe, the quarantine replaces the probe's.
func (p *Pool) quarantine(ctx context.Context, g Grant, reason provider.Reason, length time.Duration, count int) {
	b, t := p.budget, g.Token
	if known, quarantined := b.quarantinedToken(t); quarantined && g.probe == nil && known.Reason == string(reason) {
		return // another request has got the same response
	}
	ctx, stop := p.budget.soon(ctx)
	defer stop()
	p.mu.Lock()
	s := p.suspects[t.id]
	p.mu.Unlock()
	q, replaced := store.Quarantine{Token: t.id, Reason: string(reason), Count: count, Cause: causeFor(s.cause())}, time.Time{}
	isProbes := g.probe != nil && g.probe.Reason == q.Reason
	if isProbes {
		replaced = g.probe.Until
	}
	_, _, _ = b.quarantine(ctx, q, length, replaced)
	if g.probe != nil && !isProbes {
		p.endProbe(ctx, g)
	}
	p.mu.Lock()
	p.change()
	p.mu.Unlock()
}

// waitForProbe waits until a quarantined token is probed or used again. It returns the error if the
// caller, whose wait has begun then, may not wait that long.
func (p *Pool) waitForProbe(ctx context.Context, none *NoTokenError, begun time.Time, waits *[]rationtrace.Wait) error {
	b := p.budget
	w := waiter{Grant: Grant{budget: b}, waits: true, begun: begun}
	length := time.Until(none.next)
	allowed, _ := w.longestWait(ctx)
	if none.probing { // the probe ends when its response comes, of which no message may tell
		length = min(length, allowed, confirmAfter)
	}
	if none.next.IsZero() || length > allowed || allowed <= 0 {
		return none
	}
	if length >= watchFrom {
		b.watch.Begin(b.watchStore)
		defer b.watch.End()
	}
	p.mu.Lock()
	changed, wake := p.changed, b.nextWake()
	err := p.update() // or a change up to now would wake nobody
	p.mu.Unlock()
	if _, still := errors.AsType[*NoTokenError](err); !still {
		return nil
	}
	why := rationtrace.Wait{Reason: rationtrace.Probe, Cause: none.Error(), Until: b.storeNow().Add(length)}
	wait := b.beginWait(ctx, b.tracesOf(ctx), why, length)
	slept := sleep(ctx, length, wakers{accounts: changed, status: wake})
	*waits = wait.end(*waits)
	switch slept {
	case contextEnded:
		return ended(ctx)
	case completed:
		if none.probing {
			_ = b.refresh(ctx)
		}
	}
	return nil
}

// hasOtherTokens reports whether the account has tokens in the pool that are no suspects.
func (p *Pool) hasOtherTokens(account string, isSuspect func(Token) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.rotations[account]
	return of != nil && slices.ContainsFunc(of.tokens, func(t Token) bool { return !isSuspect(t) })
}

// renew reports whether a token's source has another secret than the one that the provider has
// rejected. It asks once for each token.
func (a *attempts) renew(grant Grant) bool {
	if grant.Token.source == nil {
		return false
	}
	source := grant.Token.source()
	secret, _ := grant.Token.open()
	if slices.Contains(a.renewed, grant.Token.id) {
		source.RejectedAgain(secret)
		return false
	}
	if !source.Renew(a.req.Context(), a.transport.Pool.noteSource, secret) {
		return false
	}
	a.renewed = append(a.renewed, grant.Token.id)
	a.transport.Pool.endProbe(a.req.Context(), grant)
	return true
}

// errLateSecret says that a grant's slot has passed while its source was asked.
var errLateSecret = errors.New("ration: the slot has passed while the token's source was asked")

// askForSecret gives the grant's token, which has a source, its secret.
func (p *Pool) askForSecret(ctx context.Context, g *Grant, waits *[]rationtrace.Wait) error {
	begun := time.Now()
	source := g.Token.source()
	var wait wait
	if !source.Ready() {
		wait = p.budget.beginWait(ctx, g.traces, rationtrace.Wait{Account: g.account.ID, Reason: rationtrace.Source}, watchFrom)
	}
	s, err := source.Secret(ctx, p.noteSource)
	*waits = wait.end(*waits)
	switch {
	case err != nil && ctx.Err() != nil:
		return ended(ctx)
	case err != nil:
		return err
	}
	g.Token.hidden, g.Token.bearer = func() (secret, key string) { return s.Open(), "" }, s.Bearer
	if tolerance := g.account.tolerance; tolerance > 0 && time.Since(begun) > tolerance {
		return errLateSecret
	}
	return nil
}

// sourceFailed keeps requests from a token whose source has failed until the source is asked again,
// and has that done while there are requests: if it returns a secret they may use the token.
func (p *Pool) sourceFailed(t Token) {
	p.mu.Lock()
	p.change()
	p.mu.Unlock()
	t.source().Schedule(func() { p.askAgain(t) })
}

// askAgain asks the source of a token again that has failed, if anybody wants a token.
func (p *Pool) askAgain(t Token) {
	if p.takers.Load() == 0 || !slices.ContainsFunc(p.Tokens(), func(o Token) bool { return o.id == t.id }) {
		return
	}
	if t.source().AskAgain(context.Background(), p.noteSource) != nil {
		p.sourceFailed(t)
		return
	}
	p.mu.Lock()
	p.change()
	p.mu.Unlock()
}
