package ration

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/provider"
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
	probedUntil    time.Time // when its probe is given up, on this process's clock; zero: there is none
	contradictions int       // of requests that another token was served
	invalid        int       // requests in a row for which the provider said that it is invalid
	unserved       int       // requests in a row for which it was rejected
	quarantines    int       // in a row
	answer         string    // the first response that rejected it
}

// evidence says in a line why a suspect is quarantined.
func (s *suspect) evidence() string {
	switch {
	case s.condemned:
		return fmt.Sprintf("the provider called it invalid for %d requests in a row and did not serve it", s.invalid)
	case s.contradictions > 0:
		return fmt.Sprintf("another token was served %d requests for which it was rejected", s.contradictions)
	}
	return ""
}

// A rejection is a response that rejected a request's token.
type rejection struct {
	grant   Grant
	invalid bool   // the provider said that the token is
	answer  string // its status, and to which URL
}

// newRejection returns what a response says against the grant's token, without the token's secret,
// which some APIs want in the URL.
func newRejection(resp *http.Response, grant Grant, invalid bool) rejection {
	secret, _ := grant.Token.open()
	u := url.URL{Scheme: resp.Request.URL.Scheme, Host: resp.Request.URL.Host, Path: resp.Request.URL.Path}
	said := fmt.Sprintf("%d %s from %v", resp.StatusCode, http.StatusText(resp.StatusCode), &u)
	return rejection{grant, invalid, censor.New("SECRET", secret).Text(said)}
}

// wasServed notes that the provider accepted a token.
func (p *Pool) wasServed(t Token) {
	now := time.Now().UnixNano()
	last, _ := p.served.Load(t.id)
	if last == nil {
		last, _ = p.served.LoadOrStore(t.id, new(atomic.Int64))
	}
	last.(*atomic.Int64).Store(now)
	if p.hasSuspects.Load() {
		p.clear(t)
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

// clear forgets what there was against a token.
func (p *Pool) clear(t Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wasQuarantined := p.suspects[t.id].quarantined
	p.forget(t)
	if wasQuarantined {
		p.change()
	}
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
	p.suspects[t.id] = s
	p.hasSuspects.Store(true)
}

// suspectOf returns what there is against a token, and whether responses to requests that were
// sent before count: not if the token has left the pool, nor while it is quarantined. It needs mu.
func (p *Pool) suspectOf(t Token) (s suspect, counts bool) {
	s = p.suspects[t.id]
	if _, quarantined := p.budget.quarantinedToken(t); quarantined {
		return s, false
	}
	return s, slices.ContainsFunc(p.tokens, func(o Token) bool { return o.id == t.id })
}

// contradicted notes that another token was served the request for which a token was rejected.
func (p *Pool) contradicted(ctx context.Context, r rejection, longest time.Duration) {
	t := r.grant.Token
	p.mu.Lock()
	s, counts := p.suspectOf(t)
	if counts {
		s.contradictions++
		s.answer = cmp.Or(s.answer, r.answer)
		p.setSuspect(t, s)
	}
	p.mu.Unlock()
	switch {
	case !counts:
	case r.invalid:
		p.quarantineSuspect(ctx, t, provider.ReasonDeadToken, longest, false)
	case s.contradictions >= mostContradictions:
		p.quarantineSuspect(ctx, t, provider.ReasonUnauthorized, longest, false)
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
		s, counts := p.suspectOf(t)
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
			p.quarantineSuspect(ctx, t, provider.ReasonDeadToken, longest, true)
		case again:
			p.quarantineSuspect(ctx, t, s.reason, longest, false)
		}
		if s.unserved == mostUnserved && !ever && !r.invalid {
			p.budget.notify(Event{Kind: TokenNeverServed, Account: t.AccountID(), Token: t.id, Reason: provider.ReasonUnauthorized, Count: s.unserved})
		}
	}
}

// quarantineSuspect quarantines a token for twice as long as the last time.
func (p *Pool) quarantineSuspect(ctx context.Context, t Token, reason provider.Reason, longest time.Duration, condemned bool) {
	_, _, _ = p.quarantining.Do("suspect "+t.id, func() (any, error) {
		p.mu.Lock()
		s, counts := p.suspectOf(t)
		if counts {
			length := min(longest, firstQuarantine<<min(s.quarantines, 30))
			s.quarantines++
			s.quarantined, s.condemned, s.reason, s.probedUntil = true, condemned, reason, time.Time{}
			p.setSuspect(t, s)
			p.mu.Unlock()
			p.quarantineOnce(ctx, t, reason, length)
			return nil, nil
		}
		p.mu.Unlock()
		return nil, nil
	})
}
