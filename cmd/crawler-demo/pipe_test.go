package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A pipeListener accepts connections in memory, each of which it dialed itself: a
// goroutine that reads from one does not keep the clock of its synctest bubble from
// going on.
type pipeListener struct {
	dialed chan net.Conn
	ctx    context.Context // done when it is closed
	close  context.CancelFunc
}

func newPipeListener() *pipeListener {
	l := &pipeListener{dialed: make(chan net.Conn)}
	l.ctx, l.close = context.WithCancel(context.Background())
	return l
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.dialed <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.close()
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// inFakeTime runs a demo in one process whose provider is reached through memory, in a
// synctest bubble that is phase past a full second.
func inFakeTime(t *testing.T, phase time.Duration, a *app, demo func(*testing.T, *app)) {
	t.Helper()
	outside := http.DefaultTransport
	defer func() { http.DefaultTransport = outside }()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(phase)
		l := newPipeListener()
		http.DefaultTransport = &http.Transport{DialContext: l.dial}
		a.listen = func() (net.Listener, error) { return l, nil }
		demo(t, a)
	})
}
