package ration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// The fleet quarantines a token that the provider has rejected. When the quarantine ends,
// each process probes the token with one request at a time, because users mend tokens and
// providers err. The probe restores the token or quarantines it again.

// probeFor is how long one request has a suspect for itself, if it gets no response.
const probeFor = time.Minute

// usable returns the tokens that are not quarantined, and notes when a quarantine ends.
// It needs mu.
func (p *Pool) usable() ([]Token, error) {
	p.quarantines, p.staleAt = p.budget.quarantines.Load(), time.Time{}
	if p.quarantines == 0 && len(p.suspects) == 0 {
		return p.tokens, nil
	}
	now, storeNow := time.Now(), p.budget.storeNow()
	var tokens []Token
	var unusable []QuarantinedToken
	hopeless, unserved := true, true
	for _, t := range p.tokens {
		state, known := p.suspects[t.id]
		quarantined := p.budget.quarantineOf(t)
		until := quarantined.Until
		wait := until.Sub(storeNow)
		if wait > 0 {
			state.quarantined, state.reason, state.probedUntil = true, quarantined.Reason, time.Time{}
			p.setSuspect(t, state)
		} else if wait = state.probedUntil.Sub(now); known && wait > 0 {
			until = storeNow.Add(wait)
		} else {
			tokens = append(tokens, t)
			continue
		}
		ever, _ := p.servedLately(t)
		unserved = unserved && !ever && state.reason != provider.ReasonBilling
		hopeless = hopeless && (state.condemned || state.reason == provider.ReasonBilling)
		unusable = append(unusable, QuarantinedToken{ID: t.id, Account: t.AccountID(), Label: t.Label,
			Reason: state.reason, Until: until, Answer: state.answer, Evidence: state.evidence()})
		if ends := now.Add(wait); p.staleAt.IsZero() || ends.Before(p.staleAt) {
			p.staleAt = ends
		}
	}
	if len(tokens) == 0 {
		none := &NoTokenError{Budget: p.budget.Name, Tokens: unusable, unserved: unserved}
		if !hopeless {
			none.next = p.staleAt
		}
		return nil, none
	}
	return tokens, nil
}

// startProbe gives a quarantined token to one request, if it is one. It needs mu.
func (p *Pool) startProbe(t Token) {
	s, known := p.suspects[t.id]
	if !known || !s.quarantined {
		return
	}
	s.probedUntil = time.Now().Add(probeFor)
	p.suspects[t.id] = s
	p.accounts = nil
}

// endProbe ends the probe of a token, if there is one, without a result.
func (p *Pool) endProbe(t Token) {
	if !p.hasSuspects.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, known := p.suspects[t.id]; known && !s.probedUntil.IsZero() {
		s.probedUntil = time.Time{}
		p.suspects[t.id] = s
		p.change()
	}
}

// quarantine keeps the whole fleet from using a token. Callers that wait for it book
// another. Of requests that get the same response at the same time, one asks the store and
// the others wait for it.
func (p *Pool) quarantine(ctx context.Context, t Token, reason provider.Reason, length time.Duration) {
	_, _, _ = p.quarantining.Do(string(reason)+" "+t.id, func() (any, error) {
		p.quarantineOnce(ctx, t, reason, length)
		return nil, nil
	})
}

// quarantineOnce is quarantine for one of these requests.
func (p *Pool) quarantineOnce(ctx context.Context, t Token, reason provider.Reason, length time.Duration) {
	b := p.budget
	if known, quarantined := b.quarantinedToken(t); quarantined && known.Reason == reason {
		return // another request has got the same response
	}
	ctx, stop := soon(ctx)
	defer stop()
	until := b.quarantine(ctx, t.id, reason, length)
	p.mu.Lock()
	p.change()
	p.mu.Unlock()
	b.notify(Event{Kind: TokenQuarantined, Account: t.AccountID(), Token: t.id, Reason: reason, Until: until})
}

// waitForProbe waits until a quarantined token is probed or cleared. It returns the error if the
// caller may not wait that long.
func (p *Pool) waitForProbe(ctx context.Context, none *NoTokenError) error {
	w := waiter{Grant: Grant{budget: p.budget}, waits: true, begun: time.Now()}
	length := time.Until(none.next)
	if allowed, _ := w.longestWait(ctx); none.next.IsZero() || length > allowed {
		return none
	}
	p.mu.Lock()
	changed, wake := p.changed, p.budget.nextWake()
	err := p.update() // or a change up to now would wake nobody
	p.mu.Unlock()
	if _, still := errors.AsType[*NoTokenError](err); still && sleep(ctx, length, changed, wake) == contextEnded {
		return ended(ctx)
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

// ErrNoToken matches, with errors.Is, the error that says that every token of a pool is
// quarantined, and that no wait within the request's deadline helps. The error itself is a
// [*NoTokenError].
var ErrNoToken = errors.New("ration: no token is left")

// A NoTokenError says that every token of a pool is quarantined, because the provider has
// rejected it. Nothing was booked or sent. A program can alert somebody who replaces the
// tokens.
type NoTokenError struct {
	// Budget is the budget's name.
	Budget string
	// Tokens are those of the pool, in the order in which they were added.
	Tokens []QuarantinedToken

	unserved bool      // no token was ever served
	next     time.Time // when a token is probed that may be served, on this process's clock; zero: none may
}

// A QuarantinedToken is a token that the fleet does not use, because the provider has
// rejected it. A [*NoTokenError] lists those of a pool.
type QuarantinedToken struct {
	// ID is the token's ID, and Account the ID of its account.
	ID, Account string
	// Reason is what the provider said: ReasonDeadToken, ReasonUnauthorized or
	// ReasonBilling.
	Reason provider.Reason
	// Until is when one request probes the token, on the store's clock.
	Until time.Time
	// Label is the token's, for people.
	Label string
	// Answer is the status and the URL of the first response that rejected the token in this
	// process since it was last served, without secrets and query. Empty: another process has it.
	Answer string
	// Evidence says in a line why the token is quarantined. Empty: another process knows.
	Evidence string
}

// Error names every token, why it is quarantined and when it is probed.
func (e *NoTokenError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ration: budget %q: no token is left:", e.Budget)
	for i, t := range e.Tokens {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s", t.ID)
		if t.Label != "" {
			fmt.Fprintf(&b, " %q", t.Label)
		}
		fmt.Fprintf(&b, " (%s, tried again at %s", t.Reason, t.Until.UTC().Format(time.RFC3339))
		for _, more := range []string{t.Evidence, t.Answer} {
			if more != "" {
				b.WriteString("; " + more)
			}
		}
		b.WriteByte(')')
	}
	b.WriteByte(':')
	if e.unserved {
		b.WriteString(" no token was ever served: is it attached as the provider wants it (Transport.Attach)? If so,")
	}
	b.WriteString(" replace what is expired or revoked, with Pool.Remove and Pool.Add")
	return b.String()
}

// Is reports whether target is [ErrNoToken].
func (e *NoTokenError) Is(target error) bool { return target == ErrNoToken }

// quarantineOf returns a token's quarantine, also if it has ended.
func (b *Budget) quarantineOf(t Token) QuarantinedToken {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.quarantined.Get(t.id)
}

// quarantinedToken returns a token's quarantine, and whether it is in force.
func (b *Budget) quarantinedToken(t Token) (known QuarantinedToken, is bool) {
	known = b.quarantineOf(t)
	return known, known.Until.After(b.storeNow())
}

// quarantine keeps the whole fleet from using a token or, while the store does not answer,
// this process.
func (b *Budget) quarantine(ctx context.Context, token string, reason provider.Reason, length time.Duration) time.Time {
	r := store.QuarantineRequest{Budget: b.Name, Token: token, Reason: string(reason), For: length}
	reply, err := b.Store.Quarantine(ctx, r)
	if err != nil {
		reply.Until = b.storeNow().Add(length)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noteQuarantine(store.Quarantine{Token: token, Reason: r.Reason, Until: reply.Until}, b.storeNow())
	if err == nil {
		b.noteVersion(reply)
	}
	return reply.Until
}
