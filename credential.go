package ration

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/credential"
	"github.com/ration-go/ration/internal/digest"
)

// TokenFrom returns a token whose secrets live for a time only, such as an OAuth access token
// or the token of a GitHub App's installation. The id names whoever the secrets are for, "ann"
// or the installation's number, and is no secret: the token's ID is a digest of it, so the
// token keeps its account, its log and its place in a [Pool] while its secrets change. All
// workers of a fleet must use the same id.
//
// A [Transport] calls source for the secret and when it expires; a zero time: never. It calls
// it about a second before the request's slot, and again before the secret expires: from a
// minute or half of the secret's life before, in the background, and at the latest ten
// seconds or a quarter of its life before, while requests wait. In one process a source runs
// once at a time, whatever the number of requests, and its context has the values of one of
// them and ends after a minute. If the provider rejects a secret, with a 401 for instance,
// the Transport asks once more for this secret, and sends the request again if it gets another
// one, before it suspects the token.
//
// If source fails, or has not returned after a minute, the request gives its slot back and books on
// another token of the pool, and nobody uses this one until source is asked again: a second later,
// and twice as long after each further failure, up to a minute. Requests that still wait for another
// token then may use this one. If no other token is left the caller gets a [*NoTokenError], of which
// the failure is a cause. While a secret lasts it is used although source fails.
func TokenFrom(id string, source func(ctx context.Context) (secret string, expires time.Time, err error)) Token {
	if id == "" || source == nil {
		return Token{}
	}
	tokenID := digest.Of("", "source", id)
	c := credential.New(tokenID, source)
	return Token{id: tokenID, source: func() *credential.Credential { return c }}
}

// askAhead is how long before a request's slot its token's source is asked.
const askAhead = time.Second

// renew reports whether a token's source has another secret than the one that the provider has
// rejected. It asks once for each token.
func (a *attempts) renew(grant Grant) bool {
	if grant.Token.source == nil {
		return false
	}
	secret, _ := grant.Token.open()
	if !grant.Token.source().Renew(a.req.Context(), a.transport.Pool.noteSource, secret, slices.Contains(a.renewed, grant.Token.id)) {
		return false
	}
	a.renewed = append(a.renewed, grant.Token.id)
	a.transport.Pool.endProbe(a.req.Context(), grant)
	return true
}

// errLateSecret says that a grant's slot has passed while its source was asked.
var errLateSecret = errors.New("ration: the slot has passed while the token's source was asked")

// askForSecret gives the grant's token, which has a source, its secret.
func (p *Pool) askForSecret(ctx context.Context, g *Grant) error {
	begun := time.Now()
	s, err := g.Token.source().Secret(ctx, p.noteSource)
	switch {
	case err != nil && ctx.Err() != nil:
		return ended(ctx)
	case err != nil:
		return err
	}
	g.Token.hidden, g.Token.bearer = func() (secret, key string) { return s.Open(), "" }, s.Bearer
	if tolerance := g.account.tolerance; tolerance > 0 && time.Since(begun) > tolerance {
		return errLateSecret
	}
	return nil
}

// askAhead has the source of the account's next token asked shortly before a slot, unless the
// timer is stopped.
func (p *Pool) askAhead(ctx context.Context, account string, slot time.Time) *time.Timer {
	return time.AfterFunc(time.Until(slot)-askAhead, func() {
		p.mu.Lock()
		var next Token
		if of := p.rotations[account]; of != nil {
			next = of.tokens[of.next%len(of.tokens)]
		}
		p.mu.Unlock()
		if next.source != nil {
			next.source().Prepare(ctx, p.noteSource)
		}
	})
}

// noteSource tells of a source that begins to fail, or ceases to.
func (b *Budget) noteSource(token string, err error) {
	kind := SourceBack
	if err != nil {
		kind = SourceFailed
	}
	b.notify(Event{Kind: kind, Token: token, Err: err})
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
