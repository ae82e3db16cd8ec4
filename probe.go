package ration

import (
	"context"
	"errors"
	"time"

	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// probeFor is how long one request has a suspect for itself, if it gets no response.
const probeFor = time.Minute

// startProbe gives a quarantined token to a request for its probe. It returns what there is against the token, and reports whether
// that is the request's probe, and whether it may use the token: not while the quarantine lasts, or another request of this process
// probes it.
func (p *Pool) startProbe(t Token) (s suspect, isProbe, mayUse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, quarantined := p.quarantineOf(t)
	s = p.suspects[t.id]
	now := time.Now()
	switch {
	case quarantined || s.quarantined && s.probedUntil.After(now):
		return s, false, false
	case !s.quarantined:
		return s, false, true
	}
	s.probedUntil = now.Add(probeFor)
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
	g.probe = &store.Quarantine{Token: t.id, Reason: string(s.reason), Until: s.until, Count: s.quarantines, Probing: true}
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
		s.probedUntil = time.Time{}
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
	b.fleet.TellSoon()
	wait := b.beginWait(ctx, b.tracesOf(requestOptionsOf(ctx)), why, length)
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
