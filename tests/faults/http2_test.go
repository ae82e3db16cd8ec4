package faults_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// What of HTTP/2 net/http's server does not do at will is written by hand, frame by
// frame (RFC 9113, section 4.1).
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	frameGoAway   = 0x7

	flagAck        = 0x1
	flagEndStream  = 0x1
	flagEndHeaders = 0x4

	noError       = 0x0
	refusedStream = 0x7
)

// A frameConn is a connection of a client that speaks HTTP/2.
type frameConn struct{ net.Conn }

func (c frameConn) write(kind, flags byte, stream uint32, payload []byte) {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	frame = append(frame, flags)
	frame = binary.BigEndian.AppendUint32(frame, stream)
	_, _ = c.Write(append(frame, payload...))
}

// request returns the stream of the next request.
func (c frameConn) request() (stream uint32, err error) {
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return 0, err
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, c, length); err != nil {
			return 0, err
		}
		switch kind, flags := head[3], head[4]; {
		case kind == frameHeaders:
			return binary.BigEndian.Uint32(head[5:]), nil
		case kind == frameSettings && flags&flagAck == 0:
			c.write(frameSettings, flagAck, 0, nil)
		}
	}
}

func (c frameConn) answer(stream uint32, body string) {
	c.write(frameHeaders, flagEndHeaders, stream, []byte{0x88}) // :status 200, of the static table
	c.write(frameData, flagEndStream, stream, []byte(body))
}

func words(all ...uint32) []byte {
	var b []byte
	for _, word := range all {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return b
}

// serveFrames starts a server that gives each request to serve, and a client for it.
func serveFrames(t *testing.T, serve func(c frameConn, stream uint32)) (url string, base *http.Transport) {
	t.Helper()
	// httptest knows how to make a certificate, and a client that trusts it.
	known := httptest.NewUnstartedServer(nil)
	known.EnableHTTP2 = true
	known.StartTLS()
	base = known.Client().Transport.(*http.Transport)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: known.TLS.Certificates, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	known.Close()

	var serving sync.WaitGroup
	var mu sync.Mutex // protects open
	var open []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		// Not left to the client: a stream may not have ended there yet.
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		serving.Wait()
		base.CloseIdleConnections()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			serving.Go(func() {
				defer conn.Close()
				const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				begin := make([]byte, len(preface))
				if _, err := io.ReadFull(conn, begin); err != nil || !bytes.Equal(begin, []byte(preface)) {
					t.Errorf("a client began with %q, %v", begin, err)
					return
				}
				c := frameConn{conn}
				c.write(frameSettings, 0, 0, nil)
				for {
					stream, err := c.request()
					if err != nil {
						return
					}
					serve(c, stream)
				}
			})
		}
	})
	return fmt.Sprint("https://", listener.Addr()), base
}

// A stream that is refused, or that a connection goes away from, is sent again by
// http.Transport without a word to its caller. It was one booking, and by RFC 9113
// (section 8.7) one request for the provider; that it left twice may be entered, if
// http.Transport has told of both before the answer came.
func TestStreamsThatHTTP2SendsAgain(t *testing.T) {
	for _, row := range []struct {
		name  string
		first func(c frameConn, stream uint32) // what the first request gets
		seen  int
	}{
		{"served", func(c frameConn, stream uint32) { c.answer(stream, "page") }, 1},
		{"served, then GOAWAY", func(c frameConn, stream uint32) {
			c.write(frameGoAway, 0, 0, words(stream, noError))
			c.answer(stream, "page")
		}, 1},
		{"REFUSED_STREAM", func(c frameConn, stream uint32) {
			c.write(frameReset, 0, stream, words(refusedStream))
		}, 2},
		{"GOAWAY", func(c frameConn, _ uint32) {
			c.write(frameGoAway, 0, 0, words(0, noError))
		}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			var mu sync.Mutex // protects seen
			seen := 0
			url, base := serveFrames(t, func(c frameConn, stream uint32) {
				mu.Lock()
				seen++
				first := seen == 1
				mu.Unlock()
				if first {
					row.first(c, stream)
					return
				}
				c.answer(stream, "page")
			})
			budget, token := rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("SECRET")
			granted := 0
			client := &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(budget, token),
				OnGrant: func(*http.Request, ration.Grant) { granted++ }}}
			resp, err := client.Get(url)
			require.NoError(t, err)
			require.Equal(t, "HTTP/2.0", resp.Proto)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Equal(t, "page", rationtest.Drain(t, resp))
			require.Equal(t, 1, granted)
			require.Equal(t, row.seen, seen)
			left, err := budget.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.GreaterOrEqual(t, 100-left, 1)
			require.LessOrEqual(t, 100-left, row.seen)
		})
	}
}

// A stream that the provider resets is a failure like a connection that ends: it is tried again.
func TestStreamsThatAreReset(t *testing.T) {
	for name, code := range map[string]uint32{"INTERNAL_ERROR": 0x2, "CANCEL": 0x8, "ENHANCE_YOUR_CALM": 0xb} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen atomic.Int32
			url, base := serveFrames(t, func(c frameConn, stream uint32) {
				if seen.Add(1) == 1 {
					c.write(frameReset, 0, stream, words(code))
					return
				}
				c.answer(stream, "page")
			})
			client := &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("SECRET"))}}
			resp, err := client.Get(url)
			require.NoError(t, err)
			require.Equal(t, "page", rationtest.Drain(t, resp))
			require.EqualValues(t, 2, seen.Load())
		})
	}
}

// net/http's own server goes away from a connection after an answer that closes it. The
// request behind it is one booking on the next.
func TestEachAnswerOnAConnectionOfItsOwn(t *testing.T) {
	addresses := make(map[string]bool)
	w := newHTTP2Wire(t, func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, r.Proto)
	})
	for range 5 {
		resp, err := w.Client.Get(w.URL)
		require.NoError(t, err)
		require.Equal(t, "HTTP/2.0", rationtest.Drain(t, resp))
	}
	require.Len(t, addresses, 5)
	w.requireBookings(t, 5)
}
