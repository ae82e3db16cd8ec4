package redistest

import (
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A Proxy stands before a server as a long way to it: what is sent to it arrives later, and so
// does the reply.
type Proxy struct {
	Addr  string
	Delay atomic.Int64 // in each direction, in nanoseconds
	Lost  atomic.Int64 // of 100 replies so many never arrive, nor what comes behind them

	// Rewrite, if set before the first connection, returns what a client reads in place of what the
	// server wrote at one time.
	Rewrite func(reply []byte) []byte

	to string
}

// StartProxy starts a proxy of the server at an address, which ends with the test.
func StartProxy(tb testing.TB, to string, delay time.Duration) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	p := &Proxy{Addr: listener.Addr().String(), to: to}
	p.Delay.Store(int64(delay))
	go p.accept(listener)
	tb.Cleanup(func() { _ = listener.Close() })
	return p
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		go p.carry(server, client, false)
		go p.carry(client, server, true)
	}
}

// A parcel is what was read at one time, and when it arrives.
type parcel struct {
	bytes   []byte
	arrives time.Time
}

// carry takes to one end what comes from the other, however much is on its way.
func (p *Proxy) carry(to, from net.Conn, replies bool) {
	underway := make(chan parcel, 10_000)
	go func() {
		for one := range underway {
			<-time.After(time.Until(one.arrives))
			if _, err := to.Write(one.bytes); err != nil {
				break
			}
		}
		_, _ = to.Close(), from.Close()
		for range underway { // until the other side has seen that
		}
	}()
	defer close(underway)
	for lost := false; ; {
		buffer := make([]byte, 32<<10)
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if lost = lost || replies && rand.Int64N(100) < p.Lost.Load(); lost {
			continue
		}
		buffer = buffer[:n]
		if replies && p.Rewrite != nil {
			buffer = p.Rewrite(buffer)
		}
		underway <- parcel{buffer, time.Now().Add(time.Duration(p.Delay.Load()))}
	}
}
