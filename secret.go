package ration

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/rationtrace"
)

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
		wait = p.budget.beginWait(ctx, g.traces, rationtrace.Wait{Account: g.account.ID, Reason: rationtrace.Source}, watchFrom, time.Time{})
	}
	s, err := source.Secret(ctx, p.noteSource)
	*waits = wait.end(*waits)
	switch {
	case err != nil && ctx.Err() != nil:
		return flight.Ended(ctx)
	case err != nil:
		return err
	}
	g.Token.hidden, g.Token.bearer = func() (secret, key string) { return s.Open(), "" }, s.Bearer
	if tolerance := g.account.Tolerance; tolerance > 0 && time.Since(begun) > tolerance {
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
