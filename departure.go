package ration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// A departure is one request's way to the provider, as httptrace tells it, and the
// context of the request as its caller gets it back: one value, because every
// request has one. Its hooks may run after RoundTrip has returned.
type departure struct {
	context.Context // the caller's
	grant           Grant
	teller          *teller   // whose gate the request has passed; nil: there is none
	feedback        *Feedback // what was read in the answer; nil: it says nothing of quotas
	trace           httptrace.ClientTrace

	begun     time.Time
	connected atomic.Bool // a connection was had: from here on it may have arrived
	reused    atomic.Bool // that had carried a request before
	writes    atomic.Int32
	wrote     atomic.Int64 // nanoseconds since begun, the last time
}

func newDeparture(ctx context.Context, grant Grant) *departure {
	d := &departure{Context: ctx, grant: grant, begun: time.Now()}
	d.trace.GotConn = func(conn httptrace.GotConnInfo) {
		d.reused.Store(conn.Reused)
		d.connected.Store(true)
	}
	d.trace.WroteRequest = func(httptrace.WroteRequestInfo) {
		d.wrote.Store(int64(time.Since(d.begun)))
		d.writes.Add(1)
	}
	return d
}

// wayOf returns the departure of a response that send has returned.
func wayOf(resp *http.Response) *departure {
	way, _ := resp.Request.Context().(*departure)
	return way
}

// back tells the gate that the answer is here, and what it left.
func (d *departure) back(left int) {
	if d != nil && d.teller != nil {
		d.teller.gate.back(left)
		d.teller = nil
	}
}

// String is for those who print the context of a response's request.
func (d *departure) String() string { return fmt.Sprintf("%v.WithGrant(%v)", d.Context, d.grant.Token) }

type (
	grantKey    struct{}
	feedbackKey struct{}
)

// Value returns the grant on which the request was sent.
func (d *departure) Value(key any) any {
	if key == (grantKey{}) {
		return &d.grant
	}
	if key == (feedbackKey{}) {
		if d.feedback == nil {
			return nil // not that of an earlier response, whose context this may be
		}
		return d.feedback
	}
	return d.Context.Value(key)
}

// left returns when the request left at the latest, and how often. On a new
// connection it may be long on its way after it was written, while the provider
// accepts the connection: it counts as having left when RoundTrip returned, which is
// now. More than once it left if the connection was dead: http.Transport then sends
// some requests again by itself, and the provider may have counted both.
func (d *departure) left() (at time.Time, times int) {
	times = int(d.writes.Load())
	switch {
	case times == 0:
		return time.Time{}, 0
	case d.reused.Load():
		return d.begun.Add(time.Duration(d.wrote.Load())), times
	}
	return time.Now(), times
}
