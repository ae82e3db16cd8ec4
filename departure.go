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
	writes    atomic.Int32
	wrote     atomic.Pointer[time.Time] // the last time
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
			d.writes.Add(1)
		},
	}
}

// left returns when the request left at the latest, and how often. On a new
// connection it may be long on its way after it was written, while the provider
// accepts the connection: it counts as having left when RoundTrip returned. More
// than once it left if the connection was dead: http.Transport then sends some
// requests again by itself, and the provider may have counted both.
func (d *departure) left(returned time.Time) (at time.Time, times int) {
	wrote := d.wrote.Load()
	switch {
	case wrote == nil:
		return time.Time{}, 0
	case d.reused.Load():
		return *wrote, int(d.writes.Load())
	}
	return returned, int(d.writes.Load())
}
