package ration

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// The fleet quarantines a token that the provider has rejected. When the quarantine ends, one
// request of the whole fleet probes the token, because users mend tokens and providers err: its
// process replaces the quarantine that has ended by one that lasts for as long as the probe may
// take. If the token is served the fleet uses it again, and otherwise the next quarantine replaces
// the probe's.

// usable returns the tokens that are not quarantined, and notes when a quarantine ends.
// It needs mu.
func (p *Pool) usable() ([]Token, error) {
	p.known, p.staleAt = p.budget.fleet.State(), time.Time{}
	if p.known.Tokens == 0 && len(p.suspects) == 0 && !p.sourced.Load() {
		return p.tokens, nil
	}
	now, storeNow := time.Now(), p.budget.durable.Now()
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
		if known && p.budget.fleet.State().IsTokenResumed(t.id, state.resumes) {
			p.forget(t)
			state = suspect{}
		}
		q, quarantined := p.quarantineOf(t)
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

// release lets the whole fleet use a token again that was served.
func (p *Pool) release(ctx context.Context, t Token) {
	_, _, _ = p.quarantining.Do("release "+t.id, func() (any, error) {
		ctx, stop := p.budget.durable.Soon(ctx)
		defer stop()
		if f := &p.budget.fleet; f.Resume(ctx, store.ResumeRequest{Token: t.id}) != nil {
			f.ResumeHere(store.Resumption{Token: t.id}) // only this process uses it
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
	if known, quarantined := p.quarantineOf(t); quarantined && g.probe == nil && known.Reason == string(reason) {
		return // another request has got the same response
	}
	ctx, stop := p.budget.durable.Soon(ctx)
	defer stop()
	p.mu.Lock()
	s := p.suspects[t.id]
	p.mu.Unlock()
	q, replaced := store.Quarantine{Token: t.id, Reason: string(reason), Count: count, Cause: causeFor(s.cause())}, time.Time{}
	isProbes := g.probe != nil && g.probe.Reason == q.Reason
	if isProbes {
		replaced = g.probe.Until
	}
	_, _, _ = b.fleet.Quarantine(ctx, q, length, replaced)
	if g.probe != nil && !isProbes {
		p.endProbe(ctx, g)
	}
	p.mu.Lock()
	p.change()
	p.mu.Unlock()
}

// hasOtherTokens reports whether the account has tokens in the pool that are no suspects.
func (p *Pool) hasOtherTokens(account string, isSuspect func(Token) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.rotations[account]
	return of != nil && slices.ContainsFunc(of.tokens, func(t Token) bool { return !isSuspect(t) })
}
