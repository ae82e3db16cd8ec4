package ration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/provider"
)

// A token that the provider has called dead is set aside, in the whole fleet, and tried
// again when that is over: people mend tokens, and providers err. Each process tries it
// with one request at a time, until it is proved or set aside again.

// A suspect is a token of which the provider has said something bad.
type suspect struct {
	aside   bool // it was set aside, and was not used since
	reason  provider.Reason
	tried   time.Time // until when a request has it, on this process's clock
	strikes int       // answers in a row that it is not authorised, and no more
}

// tryFor is how long a suspect is one request's, if that comes to nothing.
const tryFor = time.Minute

// usable returns the tokens that are not set aside, and notes when that changes by
// itself. It needs mu.
func (p *Pool) usable() ([]Token, error) {
	p.asides, p.until = p.budget.asides.Load(), time.Time{}
	if p.asides == nil && len(p.suspects) == 0 {
		return p.tokens, nil
	}
	var asides map[string]TokenAside
	if p.asides != nil {
		asides = *p.asides
	}
	now, stored := time.Now(), p.budget.storeNow()
	var tokens []Token
	var left []TokenAside
	for _, t := range p.tokens {
		one, known := p.suspects[t.id]
		until := asides[t.id].Until
		wait := until.Sub(stored)
		if wait > 0 {
			one.aside, one.reason, one.tried = true, asides[t.id].Reason, time.Time{}
			p.suspect(t, one)
		} else if wait = one.tried.Sub(now); known && wait > 0 {
			until = stored.Add(wait)
		} else {
			tokens = append(tokens, t)
			continue
		}
		left = append(left, TokenAside{ID: t.id, Account: t.AccountID(), Reason: one.reason, Until: until})
		if again := now.Add(wait); p.until.IsZero() || again.Before(p.until) {
			p.until = again
		}
	}
	if len(tokens) == 0 {
		return nil, &TokensError{Budget: p.budget.Name, Tokens: left}
	}
	return tokens, nil
}

// suspect notes what there is to know of a token. It needs mu.
func (p *Pool) suspect(t Token, s suspect) {
	if p.suspects == nil {
		p.suspects = make(map[string]suspect)
	}
	p.suspects[t.id] = s
	p.doubts.Store(true)
}

// lend gives a token that was set aside to one request. It needs mu.
func (p *Pool) lend(t Token) {
	s, known := p.suspects[t.id]
	if !known || !s.aside {
		return
	}
	s.tried = time.Now().Add(tryFor)
	p.suspects[t.id] = s
	p.accounts = nil
}

// served takes in that a token was accepted.
func (p *Pool) served(t Token) {
	if !p.doubts.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	aside := p.suspects[t.id].aside
	p.absolve(t)
	if aside {
		p.change()
	}
}

// absolve forgets what was said of a token. It needs mu.
func (p *Pool) absolve(t Token) {
	delete(p.suspects, t.id)
	p.doubts.Store(len(p.suspects) > 0)
}

// unknown takes in that nothing became known of a token that may be a suspect's.
func (p *Pool) unknown(t Token) {
	if !p.doubts.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, known := p.suspects[t.id]; known && !s.tried.IsZero() {
		s.tried = time.Time{}
		p.suspects[t.id] = s
		p.change()
	}
}

// strike takes in an answer that a token is not authorised, and no more, and returns how
// many came in a row. Those of requests that were under way when it was set aside do not
// count: they tell what is known.
func (p *Pool) strike(t Token) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.suspects[t.id]
	if _, aside := p.budget.aside(t); !aside {
		s.strikes++
		p.suspect(t, s)
	}
	return s.strikes
}

// setAside keeps a token from being used, in the whole fleet. Callers that wait for it
// take another. Answers that come at once and say the same are told once, and who had
// them goes on when the token is known to be aside.
func (p *Pool) setAside(ctx context.Context, t Token, reason provider.Reason, length time.Duration) {
	_, _, _ = p.settingAside.Do(asideID(reason, t.id), func() (any, error) {
		p.setAsideOnce(ctx, t, reason, length)
		return nil, nil
	})
}

// strikeAndSetAside takes in that a token is not authorised, and no more. The second time
// in a row it is set aside, for as long as its strikes ask for.
func (p *Pool) strikeAndSetAside(ctx context.Context, t Token, length func(strikes int) time.Duration) {
	_, _, _ = p.settingAside.Do(asideID(provider.ReasonUnauthorized, t.id), func() (any, error) {
		if strikes := p.strike(t); strikes > 1 {
			p.setAsideOnce(ctx, t, provider.ReasonUnauthorized, length(strikes))
		}
		return nil, nil
	})
}

// setAsideOnce is setAside where nobody else does the same.
func (p *Pool) setAsideOnce(ctx context.Context, t Token, reason provider.Reason, length time.Duration) {
	b := p.budget
	if known, aside := b.aside(t); aside && known.Reason == reason {
		return // by the answer to another request that was under way
	}
	ctx, stop := soon(ctx)
	defer stop()
	until := b.pauseHere(ctx, asideID(reason, t.id), length)
	p.mu.Lock()
	p.change()
	p.mu.Unlock()
	b.notify(Notice{Kind: TokenSetAside, Account: t.AccountID(), Token: t.id, Reason: reason, Until: until})
}

// others reports whether the account has other tokens in the pool than the doubted ones.
func (p *Pool) others(account string, doubted func(Token) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.turns[account]
	return of != nil && slices.ContainsFunc(of.tokens, func(t Token) bool { return !doubted(t) })
}

// ErrNoToken is matched, with errors.Is, by the error that says that every token of a
// pool is set aside. The error itself is a [*TokensError].
var ErrNoToken = errors.New("ration: no token is left")

// A TokensError says that every token of a pool is set aside: the provider has said of
// each that no wait helps. Nothing was booked or sent.
type TokensError struct {
	// Budget is the budget's name.
	Budget string
	// Tokens are those of the pool, in the order in which they were added.
	Tokens []TokenAside
}

// A TokenAside is a token that is not used, in the whole fleet, because the provider
// has said that it is of no use.
type TokenAside struct {
	// ID is the token's, and Account that of its account.
	ID, Account string
	// Reason is what the provider said: ReasonDeadToken, ReasonUnauthorized or
	// ReasonBilling.
	Reason provider.Reason
	// Until is when it is tried again, by one request, on the store's clock.
	Until time.Time
}

// Error names every token, why it is set aside and when it is tried again.
func (e *TokensError) Error() string {
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
func (e *TokensError) Is(target error) bool { return target == ErrNoToken }

// That a token is set aside is kept in the store as a pause of an account of which
// there is none, whose ID names the token and the reason.
const asidePrefix = "aside-"

func asideID(reason provider.Reason, token string) string {
	return asidePrefix + string(reason) + "-" + token
}

func parseAsideID(id string) (reason provider.Reason, token string, ok bool) {
	rest, found := strings.CutPrefix(id, asidePrefix)
	name, token, named := strings.Cut(rest, "-")
	return provider.Reason(name), token, found && named
}

// sortPauses sorts out the pauses that are not those of accounts. It needs mu.
func (b *Budget) sortPauses() {
	var matters cooldown.NarrowPauses
	var asides map[string]TokenAside
	for id, until := range b.known.PausedUntil {
		if m, account, ok := cooldown.ParsePauseID(id); ok {
			if matters == nil {
				matters = make(cooldown.NarrowPauses)
			}
			if matters[m] == nil {
				matters[m] = make(map[string]time.Time)
			}
			matters[m][account] = until
		} else if reason, token, ok := parseAsideID(id); ok && until.After(asides[token].Until) {
			if asides == nil {
				asides = make(map[string]TokenAside)
			}
			asides[token] = TokenAside{ID: token, Reason: reason, Until: until}
		}
	}
	if matters == nil {
		b.matters.Store(nil)
	} else {
		b.matters.Store(&matters)
	}
	// Pools tell by the address whether it has changed.
	if old := b.asides.Load(); old == nil && asides != nil || old != nil && !maps.Equal(*old, asides) {
		b.asides.Store(&asides)
	}
}

// aside returns what is known of a token that is set aside, and whether it is.
func (b *Budget) aside(t Token) (known TokenAside, is bool) {
	if asides := b.asides.Load(); asides != nil {
		known = (*asides)[t.id]
	}
	return known, known.Until.After(b.storeNow())
}

// pauseHere pauses what each worker keeps to by itself: a token, an endpoint. While the
// store does not answer this one does.
func (b *Budget) pauseHere(ctx context.Context, id string, length time.Duration) time.Time {
	until, err := b.pause(ctx, id, length, 0)
	if err != nil {
		until = b.storeNow().Add(length)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notePause(id, until)
	}
	return until
}

// notePause takes in a pause, which lengthens one that is known. It needs mu.
func (b *Budget) notePause(id string, until time.Time) {
	if b.known.PausedUntil == nil {
		b.known.PausedUntil = make(map[string]time.Time)
	}
	b.known.PausedUntil[id] = cooldown.Later(b.known.PausedUntil[id], until)
	b.sortPauses()
}

// storeNow returns the store's clock as it must stand by now, or this process's if the
// store never answered.
func (b *Budget) storeNow() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.reckonedNow(); !now.IsZero() {
		return now
	}
	return time.Now()
}
