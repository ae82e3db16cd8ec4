package ration

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A response that rejects a token may be about the token, the page or the provider's own
// trouble. So no response is a verdict by itself. A request that is rejected is tried with
// other tokens, and its outcome is the evidence:
//
//   - No token was served: the fault is the page's, and the caller gets the response.
//   - Another token was served: the response contradicts the rejected token, which is
//     quarantined if the provider said that it is invalid, and otherwise if responses to two
//     requests contradict it.
//   - A token that the provider says is invalid in a row of requests, and that was not served
//     lately, is condemned without a contradiction.
//
// Whatever the provider serves with a token clears it.

const (
	// mostTokens is how many tokens a request is tried with.
	mostTokens = 3
	// mostContradictions is how many requests contradict a token before it is quarantined whose
	// rejections do not say that it is invalid.
	mostContradictions = 2
	// mostInvalid is the row of requests that condemns a token without a contradiction, and
	// mostUnserved that of requests without any success of which one event tells.
	mostInvalid, mostUnserved = 20, 20
	// lately is how long a token that was served is not condemned without a contradiction.
	lately = 2 * time.Minute
	// firstQuarantine is the length of a token's first quarantine. Each that follows without a
	// success in between is twice as long, up to Transport.ProbeEvery.
	firstQuarantine = time.Second
)

// A suspect is what a process has against a token since it was last served. The zero suspect
// is above suspicion.
type suspect struct {
	quarantined    bool // and not cleared since
	condemned      bool // no request need wait for its probe
	reason         provider.Reason
	until          time.Time // when its last quarantine ends, or ended, as the store says; zero: it did not answer
	probing        bool      // one request probes it
	probedUntil    time.Time // when this process's probe is given up, on its clock; zero: there is none
	resumes        int64     // the budget's when it became one
	contradictions int       // of requests that another token was served
	invalid        int       // requests in a row for which the provider said that it is invalid
	unserved       int       // requests in a row for which it was rejected
	quarantines    int       // in a row, by any process
	answer         string    // the first response that rejected it
}

// evidence says in a line why a suspect is quarantined.
func (s *suspect) evidence() string {
	switch {
	case s.condemned:
		return fmt.Sprintf("the provider called it invalid for %d requests in a row and did not serve it", s.invalid)
	case s.contradictions > 0:
		requests := "a request"
		if s.contradictions > 1 {
			requests = fmt.Sprint(s.contradictions, " requests")
		}
		return "another token was served " + requests + " for which it was rejected"
	}
	return ""
}

// cause says to the fleet why a suspect is quarantined.
func (s *suspect) cause() string {
	cause := s.answer
	if evidence := s.evidence(); evidence != "" && cause != "" {
		cause = evidence + "; " + cause
	}
	return cmp.Or(cause, "the account is not paid for")
}

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

// wasServed notes that the provider accepted the grant's token.
func (p *Pool) wasServed(ctx context.Context, g *Grant) {
	now := time.Now().UnixNano()
	last, _ := p.served.Load(g.Token.id)
	if last == nil {
		last, _ = p.served.LoadOrStore(g.Token.id, new(atomic.Int64))
	}
	last.(*atomic.Int64).Store(now)
	if p.hasSuspects.Load() {
		p.clear(ctx, g)
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
	if known && !early && s.quarantined {
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
func (p *Pool) setSuspect(t Token, s suspect) {
	if p.suspects == nil {
		p.suspects = make(map[string]suspect)
	}
	if _, known := p.suspects[t.id]; !known {
		s.resumes = p.budget.fleet.State().Resumes
	}
	p.suspects[t.id] = s
	p.hasSuspects.Store(true)
}

// suspectOf returns what there is against the grant's token, and whether a response on the grant
// counts: not if the token has left the pool, nor while it is quarantined and the request was no
// probe. It needs mu.
func (p *Pool) suspectOf(g Grant) (s suspect, counts bool) {
	s = p.suspects[g.Token.id]
	if _, quarantined := p.quarantineOf(g.Token); quarantined && g.probe == nil {
		return s, false
	}
	return s, slices.ContainsFunc(p.tokens, func(o Token) bool { return o.id == g.Token.id })
}

// contradicted notes that another token was served the request for which a token was rejected.
func (p *Pool) contradicted(ctx context.Context, r rejection, longest time.Duration) {
	t := r.grant.Token
	p.mu.Lock()
	s, counts := p.suspectOf(r.grant)
	if counts {
		s.contradictions++
		s.answer = cmp.Or(s.answer, r.answer)
		p.setSuspect(t, s)
	}
	p.mu.Unlock()
	switch {
	case !counts:
	case r.invalid:
		p.quarantineSuspect(ctx, r.grant, provider.ReasonDeadToken, longest, false)
	case s.contradictions >= mostContradictions || s.quarantined:
		p.quarantineSuspect(ctx, r.grant, provider.ReasonUnauthorized, longest, false)
	}
}

// unserved notes that none of a request's tokens was served. Without a success in between the
// provider's word condemns a token in the end. What was quarantined stays so: a probe must show
// that it is served.
func (p *Pool) unserved(ctx context.Context, all []rejection, longest time.Duration) {
	for _, r := range all {
		t := r.grant.Token
		ever, recently := p.servedLately(t)
		p.mu.Lock()
		s, counts := p.suspectOf(r.grant)
		if !counts {
			p.mu.Unlock()
			continue
		}
		s.answer = cmp.Or(s.answer, r.answer)
		if s.unserved++; r.invalid {
			s.invalid++
		} else {
			s.invalid = 0
		}
		condemned := s.invalid >= mostInvalid && !recently || s.condemned && r.invalid
		again := s.quarantined
		p.setSuspect(t, s)
		p.mu.Unlock()
		switch {
		case condemned:
			p.quarantineSuspect(ctx, r.grant, provider.ReasonDeadToken, longest, true)
		case again:
			p.quarantineSuspect(ctx, r.grant, s.reason, longest, false)
		}
		if s.unserved == mostUnserved && !ever && !r.invalid {
			p.budget.tell(Event{Kind: TokenNeverServed, Account: t.AccountID(), Token: t.id, Reason: provider.ReasonUnauthorized, Count: s.unserved})
		}
	}
}

// quarantineSuspect quarantines the grant's token for twice as long as the last time.
func (p *Pool) quarantineSuspect(ctx context.Context, g Grant, reason provider.Reason, longest time.Duration, condemned bool) {
	_, _, _ = p.quarantining.Do("suspect "+g.Token.id, func() (any, error) {
		p.mu.Lock()
		s, counts := p.suspectOf(g)
		length := min(longest, firstQuarantine<<min(s.quarantines, 30))
		if counts {
			s.quarantines++
			s.quarantined, s.condemned, s.reason, s.probedUntil = true, condemned, reason, time.Time{}
			p.setSuspect(g.Token, s)
		}
		p.mu.Unlock()
		if counts {
			p.quarantine(ctx, g, reason, length, s.quarantines)
		}
		return nil, nil
	})
}
