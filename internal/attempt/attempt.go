// Package attempt bounds one sending of a request, up to the last byte of its response.
package attempt

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// An Attempt is one sending of a request, with a timeout of its own. It begins when the slot
// has come: http.Client.Timeout includes the wait for the slot, and so cannot tell a provider
// that hangs from a quota that is spent.
type Attempt struct {
	// Ctx is the context to send the request with.
	Ctx context.Context

	late  *lateError // the cause of Ctx's end after the timeout; nil: there is none
	end   context.CancelCauseFunc
	timer *time.Timer
}

// Begin begins an attempt that ends after the timeout. Zero or less: it has none. Call
// Answered when the request was sent.
func Begin(ctx context.Context, timeout time.Duration) *Attempt {
	if timeout <= 0 {
		return &Attempt{Ctx: ctx}
	}
	a := &Attempt{late: &lateError{timeout}}
	a.Ctx, a.end = context.WithCancelCause(ctx)
	a.timer = time.AfterFunc(timeout, func() { a.end(a.late) })
	return a
}

// Answered takes what RoundTrip returned, and returns what the caller should get. The
// attempt goes on until the response's body is at its end or closed.
func (a *Attempt) Answered(resp *http.Response, err error) (*http.Response, error) {
	if a.late == nil {
		return resp, err
	}
	if err != nil {
		err = a.blame(err)
		a.End()
		return nil, err
	}
	if _, both := resp.Body.(io.Writer); both || resp.StatusCode == http.StatusSwitchingProtocols {
		// The body is a connection, whose end nobody waits for. Its context goes on: a
		// Base may have bound the connection to it.
		a.timer.Stop()
		return resp, nil
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		a.End()
		return resp, nil
	}
	resp.Body = &attemptBody{ReadCloser: resp.Body, attempt: a}
	return resp, nil
}

// End ends the attempt. It may be called again.
func (a *Attempt) End() {
	a.timer.Stop()
	a.end(nil)
}

// blame returns the error that the caller should get. After the timeout every failure is
// due to it, whatever the Base calls it.
func (a *Attempt) blame(err error) error {
	if context.Cause(a.Ctx) == error(a.late) {
		return a.late
	}
	return err
}

// An attemptBody is the body of a response whose attempt goes on.
type attemptBody struct {
	io.ReadCloser
	attempt *Attempt
}

// Read ends the attempt at the end of the body, and at its first error.
func (b *attemptBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		if err != io.EOF {
			err = b.attempt.blame(err)
		}
		b.attempt.End()
	}
	return n, err
}

// Close closes the body first, which may still need the context, and ends the attempt.
func (b *attemptBody) Close() error {
	defer b.attempt.End()
	return b.ReadCloser.Close()
}

// A lateError says that an attempt took too long. It is a net.Error, and matches
// context.DeadlineExceeded.
type lateError struct{ timeout time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("ration: no whole answer within %v (Transport.AttemptTimeout)", e.timeout)
}

func (e *lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout makes it a net.Error whose cause is a timeout.
func (e *lateError) Timeout() bool { return true }

// Temporary completes net.Error, as context.DeadlineExceeded does.
func (e *lateError) Temporary() bool { return true }
