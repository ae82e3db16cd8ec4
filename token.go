package ration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"reflect"
	"time"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/internal/credential"
	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/limit"
)

// A Token is a credential for the provider. It prints, formats, marshals and logs as its
// ID, a digest; only [Transport] reads the secret, to attach it to a request. A token is a
// value: set the fields before you give it to a pool, then copy it freely. The zero Token
// has no secret, and to book with it is an error.
type Token struct {
	// Account names the account whose quota the token spends. Tokens with the same Account
	// share one log. Like the secret, the name reaches the store only as a digest. Zero: the
	// token is an account of its own.
	Account string
	// Label is what people call the account: a RedisStore keeps it, in clear, beside the
	// account's ID for people that read the store. At most 100 bytes of printable text, and
	// never the secret. Zero: none.
	Label string
	// Limits are the account's own, in place of the budget's: for a token of a better plan,
	// say. All tokens of an account must have the same. Zero: the budget's Limits.
	Limits []limit.Limit

	id string
	// hidden returns the secret and the HMAC key, which is empty for a plain SHA-256. Package
	// fmt prints the fields of a token in a struct's unexported field, or after a wrong verb,
	// without calling its methods. Neither fmt nor any dumper looks into a function.
	hidden func() (secret, key string)
	// bearer returns the Authorization header's values, made once: do not change them.
	bearer func() []string
	// source returns what asks for the secrets; nil: the secret is as it was given. The copy of
	// the token in a Transport's grant has hidden and bearer too.
	source func() *credential.Credential
}

// NewToken returns a token with the secret. Its ID is a SHA-256 digest of the secret, which
// is safe for the random secrets of 128 bits and more that providers issue. If somebody
// could guess the secret use [NewKeyedToken].
func NewToken(secret string) Token { return NewKeyedToken(nil, secret) }

// NewKeyedToken returns a token whose ID is an HMAC-SHA-256 of the secret under key, so that
// a reader of the store cannot test guesses of the secret. All workers of a fleet need the
// same key: with different keys they keep different logs and overspend. An empty key gives
// a plain digest, as NewToken does.
func NewKeyedToken(key []byte, secret string) Token {
	k, bearer := string(key), []string{"Bearer " + secret}
	return Token{
		id:     digest.Of(k, "token", secret),
		hidden: func() (string, string) { return secret, k },
		bearer: func() []string { return bearer },
	}
}

// open returns the secret and the key.
func (t Token) open() (secret, key string) {
	if t.hidden == nil {
		return "", ""
	}
	return t.hidden()
}

// empty reports whether there is neither a secret nor a source.
func (t Token) empty() bool {
	secret, _ := t.open()
	return secret == "" && t.source == nil
}

// ID returns 32 hexadecimal digits that stand for the token wherever it is printed or
// stored. It is empty for a zero Token.
func (t Token) ID() string { return t.id }

// AccountID returns the ID of the account whose quota the token spends: a digest of Account,
// or the token's own ID if Account is empty.
func (t Token) AccountID() string {
	if t.Account == "" {
		return t.id
	}
	_, key := t.open()
	return digest.Of(key, "account", t.Account)
}

// String returns the ID.
func (t Token) String() string { return t.id }

// GoString returns the ID, for %#v.
func (t Token) GoString() string { return "ration.Token(" + t.id + ")" }

// Format writes the ID whatever the verb, so that no verb reaches the secret.
func (t Token) Format(f fmt.State, verb rune) {
	s := t.id
	if verb == 'v' && f.Flag('#') {
		s = t.GoString()
	}
	_, _ = io.WriteString(f, s)
}

// MarshalText returns the ID; encoding/json uses it too.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.id), nil }

// LogValue returns the ID, for log/slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.id) }

// A redactedError stands for an error whose text contains a secret, and for those below it.
type redactedError struct {
	text   string
	err    error
	secret *censor.Censor
}

// redact returns err with the token's ID in place of its secret: the error of a Base may
// contain the URL.
func redact(err error, t Token) error {
	secret, _ := t.open()
	return redactWith(censor.New(t.id, secret), err)
}

func redactWith(secret *censor.Censor, err error) error {
	if err == nil {
		return nil
	}
	text := secret.Text(err.Error())
	if text == err.Error() {
		return err
	}
	return &redactedError{text, err, secret}
}

func (e *redactedError) Error() string { return e.text }

// Unwrap returns the error below the one that contains the secret. Is and As see that one.
func (e *redactedError) Unwrap() error { return redactWith(e.secret, errors.Unwrap(e.err)) }

// Is reports whether the error, or one below it, is the target.
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }

// As finds an error of the target's type that shows no secret: of a *url.Error a copy. Any other
// with a secret in its text is not given away.
func (e *redactedError) As(target any) bool {
	if to, is := target.(**url.Error); is {
		failed, found := errors.AsType[*url.Error](e.err)
		if found {
			*to = &url.Error{Op: failed.Op, URL: e.secret.Text(failed.URL), Err: redactWith(e.secret, failed.Err)}
		}
		return found
	}
	to := reflect.ValueOf(target).Elem()
	before := reflect.New(to.Type()).Elem()
	before.Set(to)
	if !errors.As(e.err, target) {
		return false
	}
	found, is := to.Interface().(error)
	if is && e.secret.Text(found.Error()) == found.Error() {
		return true
	}
	to.Set(before)
	return false
}

// Timeout reports whether the cause is a timeout, which http.Client asks.
func (e *redactedError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.err, &t) && t.Timeout()
}

// TokenFrom returns a token whose secrets live for a time only, such as an OAuth access token
// or the token of a GitHub App's installation. The id names the user of the secrets, "ann"
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
	b.notify(Event{Kind: kind, Token: token, Err: err}) // and of nothing else: others wait for the source
}
