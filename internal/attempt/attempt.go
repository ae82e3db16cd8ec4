// Package attempt bounds one sending of a request, up to the last byte of its response.
package attempt

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// An attempt is one sending of a request, with a time of its own. It begins when the
// slot has come: http.Client.Timeout counts the wait for it too, and so cannot tell a
// provider that hangs from a quota that is spent.
type attempt struct {
	// ctx is what to send the request with.
	Ctx context.Context

	late  *lateError // what ctx ends with when the time is over; nil: there is none
	end   context.CancelCauseFunc
	timer *time.Timer
}

// beginAttempt begins the time of an attempt. Zero or less: as long as ctx allows. Each
// attempt must be given to answered.
func BeginAttempt(ctx context.Context, within time.Duration) attempt {
	if within <= 0 {
		return attempt{Ctx: ctx}
	}
	a := attempt{late: &lateError{within}}
	a.Ctx, a.end = context.WithCancelCause(ctx)
	a.timer = time.AfterFunc(within, func() { a.end(a.late) })
	return a
}

// answered takes what RoundTrip returned, and returns what the caller is to have. The
// time runs on until the body is at its end or closed.
func (a attempt) Answered(resp *http.Response, err error) (*http.Response, error) {
	if a.late == nil {
		return resp, err
	}
	if err != nil {
		err = a.blame(err)
		a.over()
		return nil, err
	}
	if _, both := resp.Body.(io.Writer); both || resp.StatusCode == http.StatusSwitchingProtocols {
		// It is a connection now, which has no end to wait for. Its context
		// is left as it is: a Base may have bound the connection to it.
		a.timer.Stop()
		return resp, nil
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		a.over()
		return resp, nil
	}
	resp.Body = &attemptBody{ReadCloser: resp.Body, attempt: a}
	return resp, nil
}

// over ends the attempt. To end it again is nothing.
func (a attempt) over() {
	a.timer.Stop()
	a.end(nil)
}

// blame returns the error to be told of: once the time is over, whatever failed has
// failed for that, and Bases call it by many names.
func (a attempt) blame(err error) error {
	if context.Cause(a.Ctx) == error(a.late) {
		return a.late
	}
	return err
}

// An attemptBody is the body of an answer whose attempt goes on.
type attemptBody struct {
	io.ReadCloser
	attempt attempt
}

// Read ends the attempt with whatever ends the body.
func (b *attemptBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		if err != io.EOF {
			err = b.attempt.blame(err)
		}
		b.attempt.over()
	}
	return n, err
}

// Close ends the attempt behind the body, which may still need its context to close.
func (b *attemptBody) Close() error {
	defer b.attempt.over()
	return b.ReadCloser.Close()
}

// A lateError says that an attempt took too long. It is a net.Error, and matches
// context.DeadlineExceeded.
type lateError struct{ within time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("ration: no whole answer within %v (Transport.AttemptTimeout)", e.within)
}

func (e *lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout tells what http.Client tells its caller.
func (e *lateError) Timeout() bool { return true }

// Temporary is what net.Error asks for, and context.DeadlineExceeded answers.
func (e *lateError) Temporary() bool { return true }
