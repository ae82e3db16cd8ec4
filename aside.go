package ration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

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
	Reason Reason
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

func asideID(reason Reason, token string) string { return asidePrefix + string(reason) + "-" + token }

func parseAsideID(id string) (reason Reason, token string, ok bool) {
	rest, found := strings.CutPrefix(id, asidePrefix)
	name, token, named := strings.Cut(rest, "-")
	return Reason(name), token, found && named
}

// sortPauses sorts out the pauses that are not those of accounts. It needs mu.
func (b *Budget) sortPauses() {
	var matters narrowPauses
	var asides map[string]TokenAside
	for id, until := range b.known.PausedUntil {
		if m, account, ok := parsePauseID(id); ok {
			if matters == nil {
				matters = make(narrowPauses)
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
	b.known.PausedUntil[id] = later(b.known.PausedUntil[id], until)
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
