package ration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

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
// If source fails the request gives its slot back and books on another account of the pool. If
// there is none the caller gets the error, and so does who asks within a second. While a secret
// lasts it is used although source fails.
func TokenFrom(id string, source func(ctx context.Context) (secret string, expires time.Time, err error)) Token {
	if id == "" || source == nil {
		return Token{}
	}
	c := &credential{source: source, id: digest.Of("", "source", id)}
	return Token{id: c.id, source: func() *credential { return c }}
}

const (
	// askAhead is how long before a request's slot its token's source is asked.
	askAhead = time.Second
	// askWithin bounds one run of a source, whose callers may all have given up.
	askWithin = time.Minute
	// askPause is how long a source is left alone after it has failed, and after it has
	// returned a secret that is expired by this process's clock. Such a secret is used all
	// the same: the clock that counts is the provider's.
	askPause = time.Second
	// rejectionPause is how long a 401 does not ask a source again after the secret that it
	// returned because of a 401 got one for the same request too. Or every call of a URL that
	// is 401 for everybody would have the source make a secret.
	rejectionPause = time.Minute
)

// A credential asks a token's source for secrets, and keeps the latest.
type credential struct {
	id     string // the token's
	source func(context.Context) (string, time.Time, error)
	asking singleflight.Group

	mu          sync.Mutex // protects all below
	latest      *sourcedSecret
	failure     error // of the source
	failedUntil time.Time
}

// A sourcedSecret is what a source has returned. As in a Token the secret is in functions.
type sourcedSecret struct {
	hidden                     func() (secret, key string)
	bearer                     func() []string
	renewAt, staleAt, expireAt time.Time // ask for another one; do not use it; zero: never

	rejected   bool      // a 401 has asked for another one; the credential's mu protects it
	quietUntil time.Time // no 401 asks for another one before; the credential's mu protects it
}

func newSourcedSecret(value string, expires time.Time) *sourcedSecret {
	plain := NewToken(value)
	s := &sourcedSecret{hidden: plain.hidden, bearer: plain.bearer, expireAt: expires}
	if !expires.IsZero() {
		now := time.Now()
		s.renewAt, s.staleAt = now.Add(askPause), now.Add(askPause)
		if life := expires.Sub(now); life > 0 {
			s.renewAt, s.staleAt = expires.Add(-min(life/2, time.Minute)), expires.Add(-min(life/4, 10*time.Second))
		}
	}
	return s
}

func (s *sourcedSecret) value() string {
	value, _ := s.hidden()
	return value
}

// passed reports whether there is such a time, and it has come.
func passed(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

// of returns the token with its secret, for which it asks if it must.
func (c *credential) of(ctx context.Context, t Token) (Token, error) {
	c.mu.Lock()
	s := c.latest
	c.mu.Unlock()
	if s == nil || passed(s.staleAt) {
		next, err := c.ask(ctx, s, false)
		switch {
		case err == nil:
			s = next
		case ctx.Err() != nil || s == nil || passed(s.expireAt):
			return t, err
		}
	} else {
		c.prepare(ctx)
	}
	t.hidden, t.bearer = s.hidden, s.bearer
	return t, nil
}

// prepare asks for a secret, if there is none that lasts, and does not wait for it.
func (c *credential) prepare(ctx context.Context) {
	c.mu.Lock()
	s := c.latest
	due := (s == nil || passed(s.renewAt)) && !time.Now().Before(c.failedUntil)
	c.mu.Unlock()
	if due {
		c.begin(ctx, s, false)
	}
}

// ask returns a later secret than the known one.
func (c *credential) ask(ctx context.Context, known *sourcedSecret, rejected bool) (*sourcedSecret, error) {
	select {
	case answer := <-c.begin(ctx, known, rejected):
		if answer.Err != nil {
			return nil, answer.Err
		}
		return answer.Val.(*sourcedSecret), nil
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

// errAskedBefore says that a 401 has asked for another secret already, in vain.
var errAskedBefore = errors.New("ration: the source was asked because of this secret already")

// begin has the source asked for a later secret than the known one, unless somebody has got one
// meanwhile. Who comes while it runs gets the same answer.
func (c *credential) begin(ctx context.Context, known *sourcedSecret, rejected bool) <-chan singleflight.Result {
	return c.asking.DoChan("", func() (any, error) {
		c.mu.Lock()
		latest, failure, failed := c.latest, c.failure, time.Now().Before(c.failedUntil)
		if latest == known && rejected && (known.rejected || time.Now().Before(known.quietUntil)) {
			failure, failed = errAskedBefore, true
		}
		c.mu.Unlock()
		switch {
		case latest != known:
			return latest, nil
		case failed:
			return nil, failure
		}
		next, err := c.call(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.failure, c.failedUntil = &sourceError{c.id, err}, time.Now().Add(askPause)
			return nil, c.failure
		}
		if known != nil && known.value() == next.value() {
			next.rejected, next.quietUntil = known.rejected || rejected, known.quietUntil
		}
		c.latest = next
		return next, nil
	})
}

// call calls the source. A panic is an error: this is a goroutine in which no caller could
// recover.
func (c *credential) call(ctx context.Context) (s *sourcedSecret, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
	defer stop()
	secret, expires, err := c.source(ctx)
	if err == nil && secret == "" {
		err = errors.New("the secret is empty")
	}
	if err != nil {
		return nil, err
	}
	return newSourcedSecret(secret, expires), nil
}

// renew reports whether there is another secret than the one that the provider has rejected. It
// asks for one if it must. Again says that the request was sent with another one before.
func (c *credential) renew(ctx context.Context, secret string, again bool) bool {
	c.mu.Lock()
	s := c.latest
	if again && s.value() == secret {
		s.quietUntil = time.Now().Add(rejectionPause)
	}
	c.mu.Unlock()
	if again {
		return false
	}
	if s.value() == secret {
		next, err := c.ask(ctx, s, true)
		return err == nil && next.value() != secret
	}
	return true
}

// renew reports whether a token's source has another secret than the one that the provider has
// rejected. It asks once for each token.
func (a *attempts) renew(grant Grant) bool {
	if grant.Token.source == nil {
		return false
	}
	secret, _ := grant.Token.open()
	if !grant.Token.source().renew(a.req.Context(), secret, slices.Contains(a.renewed, grant.Token.id)) {
		return false
	}
	a.renewed = append(a.renewed, grant.Token.id)
	a.transport.Pool.endProbe(grant.Token)
	return true
}

// A sourceError is the failure of a token's source.
type sourceError struct {
	token string
	err   error
}

func (e *sourceError) Error() string {
	return fmt.Sprintf("ration: the source of token %s gave no secret: %v", e.token, e.err)
}

func (e *sourceError) Unwrap() error { return e.err }

// errLateSecret says that a grant's slot has passed while its source was asked.
var errLateSecret = errors.New("ration: the slot has passed while the token's source was asked")

// askForSecret gives the grant's token, which has a source, its secret.
func (g *Grant) askForSecret(ctx context.Context) (err error) {
	begun := time.Now()
	if g.Token, err = g.Token.source().of(ctx, g.Token); err != nil {
		return err
	}
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
			next.source().prepare(ctx)
		}
	})
}
