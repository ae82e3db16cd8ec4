package ration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A token that the provider has called dead is set aside, in the whole fleet, and tried
// again when that is over: people mend tokens, and providers err. Each process tries it
// with one request at a time, until it is proved or set aside again.

// A setState is a token of which the provider has said something bad.
type tokenState struct {
	quarantined bool // it was set aside, and was not used since
	reason      provider.Reason
	probedUntil time.Time // until when a request has it, on this process's clock
	failures    int       // answers in a row that it is not authorised, and no more
}

// probeFor is how long a suspect is one request's, if that comes to nothing.
const probeFor = time.Minute

// usable returns the tokens that are not set aside, and notes when that changes by
// itself. It needs mu.
func (p *Pool) usable() ([]Token, error) {
	p.quarantined, p.staleAt = p.budget.quarantined.Load(), time.Time{}
	if p.quarantined == nil && len(p.tokenStates) == 0 {
		return p.tokens, nil
	}
	var asides map[string]QuarantinedToken
	if p.quarantined != nil {
		asides = *p.quarantined
	}
	now, stored := time.Now(), p.budget.storeNow()
	var tokens []Token
	var left []QuarantinedToken
	for _, t := range p.tokens {
		one, known := p.tokenStates[t.id]
		until := asides[t.id].Until
		wait := until.Sub(stored)
		if wait > 0 {
			one.quarantined, one.reason, one.probedUntil = true, asides[t.id].Reason, time.Time{}
			p.setState(t, one)
		} else if wait = one.probedUntil.Sub(now); known && wait > 0 {
			until = stored.Add(wait)
		} else {
			tokens = append(tokens, t)
			continue
		}
		left = append(left, QuarantinedToken{ID: t.id, Account: t.AccountID(), Reason: one.reason, Until: until})
		if again := now.Add(wait); p.staleAt.IsZero() || again.Before(p.staleAt) {
			p.staleAt = again
		}
	}
	if len(tokens) == 0 {
		return nil, &NoTokenError{Budget: p.budget.Name, Tokens: left}
	}
	return tokens, nil
}

// setState notes what there is to know of a token. It needs mu.
func (p *Pool) setState(t Token, s tokenState) {
	if p.tokenStates == nil {
		p.tokenStates = make(map[string]tokenState)
	}
	p.tokenStates[t.id] = s
	p.hasSuspects.Store(true)
}

// startProbe gives a token that was set aside to one request. It needs mu.
func (p *Pool) startProbe(t Token) {
	s, known := p.tokenStates[t.id]
	if !known || !s.quarantined {
		return
	}
	s.probedUntil = time.Now().Add(probeFor)
	p.tokenStates[t.id] = s
	p.accounts = nil
}

// tokenWorked takes in that a token was accepted.
func (p *Pool) tokenWorked(t Token) {
	if !p.hasSuspects.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	aside := p.tokenStates[t.id].quarantined
	p.restore(t)
	if aside {
		p.change()
	}
}

// restore forgets what was said of a token. It needs mu.
func (p *Pool) restore(t Token) {
	delete(p.tokenStates, t.id)
	p.hasSuspects.Store(len(p.tokenStates) > 0)
}

// endProbe takes in that nothing became known of a token that may be a suspect's.
func (p *Pool) endProbe(t Token) {
	if !p.hasSuspects.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, known := p.tokenStates[t.id]; known && !s.probedUntil.IsZero() {
		s.probedUntil = time.Time{}
		p.tokenStates[t.id] = s
		p.change()
	}
}

// countFailure takes in an answer that a token is not authorised, and no more, and returns how
// many came in a row. Those of requests that were under way when it was set aside do not
// count: they tell what is known.
func (p *Pool) countFailure(t Token) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.tokenStates[t.id]
	if _, aside := p.budget.quarantinedToken(t); !aside {
		s.failures++
		p.setState(t, s)
	}
	return s.failures
}

// quarantine keeps a token from being used, in the whole fleet. Callers that wait for it
// take another. Answers that come at once and say the same are told once, and who had
// them goes on when the token is known to be aside.
func (p *Pool) quarantine(ctx context.Context, t Token, reason provider.Reason, length time.Duration) {
	_, _, _ = p.quarantining.Do(string(reason)+" "+t.id, func() (any, error) {
		p.quarantineOnce(ctx, t, reason, length)
		return nil, nil
	})
}

// countFailureAndQuarantine takes in that a token is not authorised, and no more. The second time
// in a row it is set aside, for as long as its strikes ask for.
func (p *Pool) countFailureAndQuarantine(ctx context.Context, t Token, length func(strikes int) time.Duration) {
	_, _, _ = p.quarantining.Do(string(provider.ReasonUnauthorized)+" "+t.id, func() (any, error) {
		if strikes := p.countFailure(t); strikes > 1 {
			p.quarantineOnce(ctx, t, provider.ReasonUnauthorized, length(strikes))
		}
		return nil, nil
	})
}

// quarantineOnce is quarantine where nobody else does the same.
func (p *Pool) quarantineOnce(ctx context.Context, t Token, reason provider.Reason, length time.Duration) {
	b := p.budget
	if known, aside := b.quarantinedToken(t); aside && known.Reason == reason {
		return // by the answer to another request that was under way
	}
	ctx, stop := soon(ctx)
	defer stop()
	until := b.quarantine(ctx, t.id, reason, length)
	p.mu.Lock()
	p.change()
	p.mu.Unlock()
	b.notify(Event{Kind: TokenQuarantined, Account: t.AccountID(), Token: t.id, Reason: reason, Until: until})
}

// hasOtherTokens reports whether the account has other tokens in the pool than the doubted ones.
func (p *Pool) hasOtherTokens(account string, doubted func(Token) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.rotations[account]
	return of != nil && slices.ContainsFunc(of.tokens, func(t Token) bool { return !doubted(t) })
}

// ErrNoToken is matched, with errors.Is, by the error that says that every token of a
// pool is set aside. The error itself is a [*NoTokenError].
var ErrNoToken = errors.New("ration: no token is left")

// A NoTokenError says that every token of a pool is set aside: the provider has said of
// each that no wait helps. Nothing was booked or sent.
type NoTokenError struct {
	// Budget is the budget's name.
	Budget string
	// Tokens are those of the pool, in the order in which they were added.
	Tokens []QuarantinedToken
}

// A QuarantinedToken is a token that is not used, in the whole fleet, because the provider
// has said that it is of no use.
type QuarantinedToken struct {
	// ID is the token's, and Account that of its account.
	ID, Account string
	// Reason is what the provider said: ReasonDeadToken, ReasonUnauthorized or
	// ReasonBilling.
	Reason provider.Reason
	// Until is when it is tried again, by one request, on the store's clock.
	Until time.Time
}

// Error names every token, why it is set aside and when it is tried again.
func (e *NoTokenError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ration: budget %q: no token is left:", e.Budget)
	for i, t := range e.Tokens {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s (%s, tried again at %s)", t.ID, t.Reason, t.Until.UTC().Format(time.RFC3339))
	}
	b.WriteString(": replace what is expired or revoked, with Pool.Remove and Pool.Add")
	return b.String()
}

// Is reports whether target is [ErrNoToken].
func (e *NoTokenError) Is(target error) bool { return target == ErrNoToken }

// addQuarantine adds a quarantine, unless the token's is longer for another reason.
func addQuarantine(all map[string]QuarantinedToken, q store.Quarantine) {
	if q.Until.After(all[q.Token].Until) {
		all[q.Token] = QuarantinedToken{ID: q.Token, Reason: provider.Reason(q.Reason), Until: q.Until}
	}
}

// publishQuarantines lets pools know the quarantined tokens. They tell by the address
// whether these have changed. It needs mu.
func (b *Budget) publishQuarantines(all map[string]QuarantinedToken) {
	if old := b.quarantined.Load(); old == nil && len(all) > 0 || old != nil && !maps.Equal(*old, all) {
		b.quarantined.Store(&all)
	}
}

// quarantinedToken returns what is known of a token that is set aside, and whether it is.
func (b *Budget) quarantinedToken(t Token) (known QuarantinedToken, is bool) {
	if asides := b.quarantined.Load(); asides != nil {
		known = (*asides)[t.id]
	}
	return known, known.Until.After(b.storeNow())
}

// quarantine keeps a token from being used, in the whole fleet. While the store does not
// answer it is this process that does.
func (b *Budget) quarantine(ctx context.Context, token string, reason provider.Reason, length time.Duration) time.Time {
	r := store.QuarantineRequest{Budget: b.Name, Token: token, Reason: string(reason), For: length}
	reply, err := b.Store.Quarantine(ctx, r)
	if err != nil {
		reply.Until = b.storeNow().Add(length)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[string]QuarantinedToken)
	if old := b.quarantined.Load(); old != nil {
		maps.Copy(all, *old)
	}
	addQuarantine(all, store.Quarantine{Token: token, Reason: r.Reason, Until: reply.Until})
	b.publishQuarantines(all)
	if err == nil {
		b.noteVersion(reply)
	}
	return reply.Until
}

// storeNow returns the store's clock as it must stand by now, or this process's if the
// store never answered.
func (b *Budget) storeNow() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.estimatedNow(); !now.IsZero() {
		return now
	}
	return time.Now()
}
