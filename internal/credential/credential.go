// Package credential keeps the secret of a token whose secrets live for a time only, and asks the
// token's source for the next one.
package credential

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// askWithin bounds one run of a source, whose callers may all have given up. A source that
	// ignores its context runs on, and is not asked again before it returns.
	askWithin = time.Minute
	// askPause is how long a source is left alone after it has failed, and after it has
	// returned a secret that is expired by this process's clock. Such a secret is used all
	// the same: the clock that counts is the provider's. After further failures it is longer,
	// up to longestAskPause.
	askPause, longestAskPause = time.Second, time.Minute
	// rejectionPause is how long a 401 does not ask a source again after the secret that it
	// returned because of a 401 got one for the same request too. Or every call of a URL that
	// is 401 for everybody would have the source make a secret.
	rejectionPause = time.Minute
)

// A Source returns a secret and when it expires; a zero time: never.
type Source func(context.Context) (secret string, expires time.Time, err error)

// A Notify is called when the source of a token begins to fail, and without an error when it has
// returned a secret again.
type Notify func(token string, err error)

// A Credential asks a token's source for secrets, and keeps the latest. It is safe for concurrent
// use.
type Credential struct {
	id     string // the token's
	source Source
	asking singleflight.Group

	mu          sync.Mutex // protects all below
	latest      *Secret
	failure     error     // of the source; nil: it has not failed, or not again since it returned a secret
	failures    int       // in a row
	failedUntil time.Time // when the source may be asked again
	late        chan sourceReply
	timer       *time.Timer // asks again; nil: nobody does
}

// New returns the credential of the token with the ID.
func New(id string, source Source) *Credential { return &Credential{id: id, source: source} }

// A cause is why a source is asked for a secret.
type cause int

const (
	needed   cause = iota // there is none that lasts
	rejected              // the provider has rejected the known one
)

// A sourceReply is what a source returns.
type sourceReply struct {
	secret *Secret
	err    error
}

// A Secret is what a source has returned.
type Secret struct {
	// Open returns the secret. Neither package fmt nor any dumper looks into a function.
	Open func() string
	// Bearer returns the Authorization header's values, made once: do not change them.
	Bearer func() []string

	renewAt, staleAt, expireAt time.Time // ask for another one; do not use it; zero: never

	asked      cause     // why another one was asked for; the credential's mu protects it
	quietUntil time.Time // no 401 asks for another one before; the credential's mu protects it
}

func newSecret(value string, expires time.Time) *Secret {
	bearer := []string{"Bearer " + value}
	s := &Secret{Open: func() string { return value }, Bearer: func() []string { return bearer }, expireAt: expires}
	if !expires.IsZero() {
		now := time.Now()
		s.renewAt, s.staleAt = now.Add(askPause), now.Add(askPause)
		if life := expires.Sub(now); life > 0 {
			s.renewAt, s.staleAt = expires.Add(-min(life/2, time.Minute)), expires.Add(-min(life/4, 10*time.Second))
		}
	}
	return s
}

// passed reports whether there is such a time, and it has come.
func passed(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

// Secret returns a secret, for which it asks if it must.
func (c *Credential) Secret(ctx context.Context, notify Notify) (*Secret, error) {
	c.mu.Lock()
	s := c.latest
	c.mu.Unlock()
	if s != nil && !passed(s.staleAt) {
		c.Prepare(ctx, notify)
		return s, nil
	}
	next, err := c.ask(ctx, notify, s, needed)
	switch {
	case err == nil:
		return next, nil
	case ctx.Err() != nil || s == nil || passed(s.expireAt):
		return nil, err
	}
	return s, nil
}

// Ready reports whether Secret returns at once, because there is a secret that lasts.
func (c *Credential) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest != nil && !passed(c.latest.staleAt)
}

// Prepare asks for a secret, if there is none that lasts, and does not wait for it.
func (c *Credential) Prepare(ctx context.Context, notify Notify) {
	c.mu.Lock()
	s := c.latest
	due := (s == nil || passed(s.renewAt)) && !time.Now().Before(c.failedUntil)
	c.mu.Unlock()
	if due {
		c.begin(ctx, notify, s, needed)
	}
}

// ask returns a later secret than the known one.
func (c *Credential) ask(ctx context.Context, notify Notify, known *Secret, why cause) (*Secret, error) {
	for {
		select {
		case answer := <-c.begin(ctx, notify, known, why):
			switch {
			case answer.Err == nil:
				return answer.Val.(*Secret), nil
			case why == rejected || !errors.Is(answer.Err, errAskedBefore):
				return nil, answer.Err
			} // that was said to another, whose secret was rejected
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errAskedBefore says that a 401 has asked for another secret already, in vain.
var errAskedBefore = errors.New("ration: the source was asked because of this secret already")

// begin has the source asked for a later secret than the known one, unless somebody has got one
// meanwhile. Who comes while it runs gets the same answer.
func (c *Credential) begin(ctx context.Context, notify Notify, known *Secret, why cause) <-chan singleflight.Result {
	return c.asking.DoChan("", func() (any, error) {
		c.mu.Lock()
		latest, failure, failed := c.latest, c.failure, time.Now().Before(c.failedUntil)
		if latest == known && why == rejected && (known.asked == rejected || time.Now().Before(known.quietUntil)) {
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
		if c.note(known, why, next, err) {
			notify(c.id, err)
		}
		if err != nil {
			return nil, &Error{c.id, err}
		}
		return next, nil
	})
}

// note notes what the source has returned, and reports whether it began or ceased to fail.
func (c *Credential) note(known *Secret, why cause, next *Secret, err error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news = (c.failure != nil) != (err != nil)
	if err != nil {
		c.failure, c.failedUntil = &Error{c.id, err}, time.Now().Add(min(longestAskPause, askPause<<min(c.failures, 30)))
		c.failures++
		return news
	}
	if known != nil && known.Open() == next.Open() {
		next.asked, next.quietUntil = max(known.asked, why), known.quietUntil
	}
	c.latest, c.failure, c.failures, c.failedUntil = next, nil, 0, time.Time{}
	return news
}

// Failing returns how long the source is left alone and why, while there is no secret; nil: there may
// be one.
func (c *Credential) Failing(now time.Time) (wait time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil || !now.Before(c.failedUntil) || c.latest != nil && !passed(c.latest.expireAt) {
		return 0, nil
	}
	return c.failedUntil.Sub(now), c.failure
}

// Schedule calls a function when the source that has failed may be asked again. One function is
// scheduled at a time.
func (c *Credential) Schedule(again func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil && c.failure != nil {
		c.timer = time.AfterFunc(time.Until(c.failedUntil), func() {
			c.mu.Lock()
			c.timer = nil
			c.mu.Unlock()
			again()
		})
	}
}

// AskAgain asks the source again, unless it has returned a secret since it failed.
func (c *Credential) AskAgain(ctx context.Context, notify Notify) error {
	c.mu.Lock()
	s, failed := c.latest, c.failure != nil
	c.mu.Unlock()
	if !failed {
		return nil
	}
	_, err := c.ask(ctx, notify, s, needed)
	return err
}

// call calls the source, unless it has still not returned since the last time, and waits for it
// for as long as it may take.
func (c *Credential) call(ctx context.Context) (*Secret, error) {
	late, patience := c.late, time.Duration(0) // one call at a time has it
	if late == nil {
		late, patience = make(chan sourceReply, 1), askWithin
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
		go func() {
			defer stop()
			late <- c.run(ctx)
		}()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var reply sourceReply
	select {
	case reply = <-late:
	case <-timer.C:
		select {
		case reply = <-late: // both have come
		default:
			c.late = late
			return nil, fmt.Errorf("it has not returned within %v", askWithin)
		}
	}
	c.late = nil
	return reply.secret, reply.err
}

// run runs the source. A panic is an error: this is a goroutine in which no caller could recover.
func (c *Credential) run(ctx context.Context) (reply sourceReply) {
	defer func() {
		if value := recover(); value != nil {
			reply = sourceReply{err: fmt.Errorf("panic: %v", value)}
		}
	}()
	secret, expires, err := c.source(ctx)
	if err == nil && secret == "" {
		err = errors.New("the secret is empty")
	}
	if err != nil {
		return sourceReply{err: err}
	}
	return sourceReply{secret: newSecret(secret, expires)}
}

// Renew reports whether there is another secret than the one that the provider has rejected. It
// asks for one if it must.
func (c *Credential) Renew(ctx context.Context, notify Notify, secret string) bool {
	c.mu.Lock()
	s := c.latest
	c.mu.Unlock()
	if s.Open() != secret {
		return true
	}
	next, err := c.ask(ctx, notify, s, rejected)
	return err == nil && next.Open() != secret
}

// RejectedAgain notes that a request was rejected with a secret, and with another one before. So the
// fault may be the request's.
func (c *Credential) RejectedAgain(secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latest.Open() == secret {
		c.latest.quietUntil = time.Now().Add(rejectionPause)
	}
}

// An Error is the failure of a token's source.
type Error struct {
	token string
	err   error
}

// Error names the token and the failure.
func (e *Error) Error() string {
	return fmt.Sprintf("ration: the source of token %s gave no secret: %v", e.token, e.err)
}

// Unwrap returns what the source has returned.
func (e *Error) Unwrap() error { return e.err }
