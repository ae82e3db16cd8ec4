package ration

import (
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// A departure is what httptrace tells of one request's way to the provider. Its
// hooks may run after RoundTrip has returned.
type departure struct {
	connected atomic.Bool // a connection was had: from here on it may have arrived
	reused    atomic.Bool // that had carried a request before
	wrote     atomic.Pointer[time.Time]
}

func (d *departure) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(conn httptrace.GotConnInfo) {
			d.reused.Store(conn.Reused)
			d.connected.Store(true)
		},
		WroteRequest: func(httptrace.WroteRequestInfo) {
			now := time.Now()
			d.wrote.Store(&now)
		},
	}
}

// left returns when the request left at the latest, and whether it did. On a new
// connection it may be long on its way after it was written, while the provider
// accepts the connection: it counts as having left when RoundTrip returned.
func (d *departure) left(returned time.Time) (at time.Time, left bool) {
	wrote := d.wrote.Load()
	switch {
	case wrote == nil:
		return time.Time{}, false
	case d.reused.Load():
		return *wrote, true
	}
	return returned, true
}
