package ration

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/suspect"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A token that a response rejects is a suspect: package internal/suspect weighs what there is against it. Here is what a pool does.

const (
	// mostTokens is how many tokens a request is tried with.
	mostTokens = 3
	// lately is how long a token that was served is not condemned without a contradiction.
	lately = 2 * time.Minute
)

// A rejection is a response that rejected a request's token.
type rejection struct {
	grant   Grant
	invalid bool   // the provider said that the token is
	answer  string // its status, to which URL, and how it begins
}

// newRejection returns what a response says against the grant's token.
func newRejection(resp *http.Response, grant Grant, f *provider.Feedback) rejection {
	said, hidden := describe(resp, grant)
	if message := []rune(hidden.Text(f.Message)); len(message) > 0 {
		said += ": " + string(message[:min(len(message), mostMessage)])
	}
	return rejection{grant, f.DeadToken, said}
}

// mostMessage is how many characters of a body an error shows.
const mostMessage = 200

// wasServed notes that the provider accepted the grant's token, and served the request unless it refused that.
func (p *Pool) wasServed(req *http.Request, g *Grant, refused bool) {
	b, ctx := p.budget, req.Context()
	now := time.Now().UnixNano()
	last, _ := p.served.Load(g.Token.id)
	if last == nil {
		last, _ = p.served.LoadOrStore(g.Token.id, new(atomic.Int64))
	}
	last.(*atomic.Int64).Store(now)
	if p.hasSuspects.Load() {
		p.clear(ctx, g)
	}
	if refused {
		return
	}

	if b.keeper.Adopts.Load() { // somebody has a card
		b.noteServed(g)
	}
	if g.cooling != nil || b.fleet.InRow.Load() {
		b.endCooling(ctx, g)
	}
	if b.reach.Any.Load() {
		b.reach.Served(req.URL.Host)
	}
	if b.evidence.Any.Load() {
		b.narrow(req, g)
	}
}

// forgetServed forgets when tokens were served that are not in the pool any more. It needs mu.
func (p *Pool) forgetServed() {
	in := make(map[string]bool, len(p.tokens))
	for _, t := range p.tokens {
		in[t.id] = true
	}
	p.served.Range(func(id, _ any) bool {
		if !in[id.(string)] {
			p.served.Delete(id)
		}
		return true
	})
}

// servedLately reports whether the token was served, and whether it was lately.
func (p *Pool) servedLately(t Token) (ever, recently bool) {
	at, found := p.served.Load(t.id)
	if !found {
		return false, false
	}
	return true, time.Since(time.Unix(0, at.(*atomic.Int64).Load())) < lately
}

// clear forgets what there was against the grant's token, and the fleet uses it again. Of a request
// that was sent before the token was quarantined the response comes too late.
func (p *Pool) clear(ctx context.Context, g *Grant) {
	p.mu.Lock()
	s, known := p.suspects[g.Token.id]
	_, quarantined := p.quarantineOf(g.Token)
	early := quarantined && g.probe == nil
	if known && !early {
		p.forget(g.Token)
	}
	p.mu.Unlock()
	if known && !early && s.Quarantined {
		p.release(ctx, g.Token)
	}
}

// quarantineOf returns the token's quarantine that ends last, and whether it is in force.
func (p *Pool) quarantineOf(t Token) (last store.Quarantine, inForce bool) {
	last = p.budget.fleet.State().Quarantined(t.id)
	return last, !last.Until.IsZero() && last.Until.After(p.budget.durable.Now())
}

// forget forgets what there was against a token. It needs mu.
func (p *Pool) forget(t Token) {
	delete(p.suspects, t.id)
	p.hasSuspects.Store(len(p.suspects) > 0)
}

// setSuspect notes what there is against a token. It needs mu.
func (p *Pool) setSuspect(t Token, s suspect.State) {
	if p.suspects == nil {
		p.suspects = make(map[string]suspect.State)
	}
	if _, known := p.suspects[t.id]; !known {
		s.Resumes = p.budget.fleet.State().Resumes
	}
	p.suspects[t.id] = s
	p.hasSuspects.Store(true)
}

// suspectOf returns what there is against the grant's token, and whether a response on the grant
// counts: not if the token has left the pool, nor while it is quarantined and the request was no
// probe. It needs mu.
func (p *Pool) suspectOf(g Grant) (s suspect.State, counts bool) {
	s = p.suspects[g.Token.id]
	if _, quarantined := p.quarantineOf(g.Token); quarantined && g.probe == nil {
		return s, false
	}
	return s, slices.ContainsFunc(p.tokens, func(o Token) bool { return o.id == g.Token.id })
}

// reject notes what a request has shown about the tokens that were rejected for it: that another one was served, or none.
func (p *Pool) reject(ctx context.Context, all []rejection, contradicted bool, longest time.Duration) {
	for _, r := range all {
		t := r.grant.Token
		seen := suspect.Rejection{Contradicted: contradicted, Invalid: r.invalid, Answer: r.answer}
		seen.Ever, seen.Lately = p.servedLately(t)
		p.mu.Lock()
		s, counts := p.suspectOf(r.grant)
		var v suspect.Verdict
		if counts {
			s, v = s.Next(seen)
			p.setSuspect(t, s)
		}
		p.mu.Unlock()
		if v.Quarantine != "" {
			p.quarantineSuspect(ctx, r.grant, v, longest)
		}
		if v.NeverServed > 0 {
			p.budget.tell(Event{Kind: TokenNeverServed, Account: t.AccountID(), Token: t.id, Reason: provider.ReasonUnauthorized, Count: v.NeverServed})
		}
	}
}

// quarantineSuspect quarantines the grant's token for twice as long as the last time.
func (p *Pool) quarantineSuspect(ctx context.Context, g Grant, v suspect.Verdict, longest time.Duration) {
	_, _, _ = p.quarantining.Do("suspect "+g.Token.id, func() (any, error) {
		p.mu.Lock()
		s, counts := p.suspectOf(g)
		var length time.Duration
		if counts {
			s, length = s.Quarantine(v, longest)
			s.ProbedUntil = time.Now().Add(probeFor) // by nobody before the fleet knows
			p.setSuspect(g.Token, s)
		}
		p.mu.Unlock()
		if counts {
			p.quarantine(ctx, g, v.Quarantine, length, s.Quarantines)
			p.stopProbe(g.Token)
		}
		return nil, nil
	})
}

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
		if known && p.budget.fleet.State().IsTokenResumed(t.id, state.Resumes) {
			p.forget(t)
			state = suspect.State{}
		}
		q, quarantined := p.quarantineOf(t)
		if q.Token != "" {
			state.Quarantined, state.Reason, state.Until, state.Probing = true, provider.Reason(q.Reason), q.Until, q.Probing
			state.Quarantines = max(state.Quarantines, q.Count)
			p.setSuspect(t, state)
		}
		until, wait := state.Until, state.ProbedUntil.Sub(now)
		if quarantined {
			wait = q.Until.Sub(storeNow)
		} else if wait > 0 {
			until, state.Probing = storeNow.Add(wait), true
		} else {
			tokens = append(tokens, t)
			continue
		}
		ever, _ := p.servedLately(t)
		none.unserved = none.unserved && !ever && state.Reason != provider.ReasonBilling
		none.probing = none.probing || state.Probing
		hopeless = hopeless && (state.Condemned || state.Reason == provider.ReasonBilling)
		unusable(t, QuarantinedToken{Reason: state.Reason, Until: until, Answer: state.Answer, Evidence: state.Evidence()}, wait)
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
	q, replaced := store.Quarantine{Token: t.id, Reason: string(reason), Count: count, Cause: causeFor(s.Cause())}, time.Time{}
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

// probeFor is how long one request has a suspect for itself, if it gets no response.
const probeFor = time.Minute

// startProbe gives a quarantined token to a request for its probe. It returns what there is against the token, and reports whether
// that is the request's probe, and whether it may use the token: not while the quarantine lasts, or another request of this process
// probes it.
func (p *Pool) startProbe(t Token) (s suspect.State, isProbe, mayUse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, quarantined := p.quarantineOf(t)
	s = p.suspects[t.id]
	now := time.Now()
	switch {
	case quarantined || s.Quarantined && s.ProbedUntil.After(now):
		return s, false, false
	case !s.Quarantined:
		return s, false, true
	}
	s.ProbedUntil = now.Add(probeFor)
	p.suspects[t.id] = s
	p.accounts = nil
	return s, true, true
}

// claimProbe reports whether the grant's request may use its token. If the token is quarantined, only the one request of the
// whole fleet may that probes it, and the grant says that it does.
func (p *Pool) claimProbe(ctx context.Context, g *Grant) bool {
	b, t := p.budget, g.Token
	ctx, stop := p.budget.durable.Soon(ctx)
	defer stop()
	s, isProbe, mayUse := p.startProbe(t)
	if !isProbe {
		return mayUse
	}

	g.probe = &store.Quarantine{Token: t.id, Reason: string(s.Reason), Until: s.Until, Count: s.Quarantines, Probing: true}
	for range 2 { // once more if the quarantine has ended at another instant than this process knew
		if g.probe.Until.IsZero() {
			return true // the store knows of no quarantine
		}
		until, changed, err := b.fleet.Quarantine(ctx, *g.probe, probeFor, g.probe.Until)
		switch {
		case err == nil && until.IsZero():
			b.fleet.ForgetQuarantine(g.probe) // somebody has ended it, or the store has lost it
			p.mu.Lock()
			p.forget(t)
			p.mu.Unlock()
			g.probe = nil
			return true
		case err != nil || changed:
			g.probe.Until = until
			return true
		case until.After(b.durable.Now()):
			p.stopProbe(t)
			_ = b.fleet.Refresh(ctx) // or the next caller hears of it
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
		ctx, stop := p.budget.durable.Soon(ctx)
		defer stop()
		over := *g.probe
		over.Probing = false
		_, _, _ = p.budget.fleet.Quarantine(ctx, over, 0, over.Until)
	}
	p.stopProbe(g.Token)
}

// stopProbe lets another request of this process probe the token.
func (p *Pool) stopProbe(t Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, known := p.suspects[t.id]; known {
		s.ProbedUntil = time.Time{}
		p.suspects[t.id] = s
	}
	p.change()
}

// waitForProbe waits until a quarantined token is probed or used again. It returns the error if the
// caller, whose wait has begun then, may not wait that long.
func (p *Pool) waitForProbe(ctx context.Context, none *NoTokenError, begun time.Time, waits *[]rationtrace.Wait) error {
	b := p.budget
	w := waiter{Grant: Grant{budget: b}, waits: true, begun: begun}
	length := time.Until(none.next)
	allowed, _ := w.longestWait(ctx)
	if none.probing { // the probe ends when its response comes, of which no message may tell
		length = min(length, allowed, fleet.ConfirmAfter)
	}
	if none.next.IsZero() || length > allowed || allowed <= 0 {
		return none
	}
	if length >= watchFrom {
		defer b.fleet.Watch()()
	}
	p.mu.Lock()
	changed, wake := p.changed, b.fleet.Woken()
	err := p.update() // or a change up to now would wake nobody
	p.mu.Unlock()
	if _, still := errors.AsType[*NoTokenError](err); !still {
		return nil
	}

	why := rationtrace.Wait{Reason: rationtrace.Probe, Cause: none.Error(), Until: b.durable.Now().Add(length)}
	wait := b.beginWait(ctx, b.tracesOf(requestOptionsOf(ctx)), why, length, time.Time{})
	slept := sleep(ctx, length, wakers{accounts: changed, status: wake})
	*waits = wait.end(*waits)
	switch slept {
	case contextEnded:
		return flight.Ended(ctx)
	case completed:
		if none.probing {
			_ = b.fleet.Refresh(ctx)
		}
	}
	return nil
}
