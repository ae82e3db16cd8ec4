package ration_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/ration-go/ration"
	"github.com/stretchr/testify/require"
)

// closesOnSecond serves HTTP by hand: of each connection it answers the first
// request and, having read the second, closes. It counts the requests it read.
func closesOnSecond(t *testing.T) (address string, read *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	read = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				requests := bufio.NewReader(conn)
				for i := range 2 {
					req, err := http.ReadRequest(requests)
					if err != nil {
						return
					}
					_ = req.Body.Close()
					read.Add(1)
					if i == 0 {
						_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), read
}

// http.Transport sends a GET again by itself when a connection that it kept turns
// out to be dead. The provider may have counted both.
func TestASilentResendIsEntered(t *testing.T) {
	address, read := closesOnSecond(t)
	b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(10)}, Store: new(ration.MemoryStore)}
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	client := &http.Client{Transport: &ration.Transport{Base: base, Pool: ration.NewPool(b, ration.NewToken("a"))}}
	for range 2 {
		resp, err := client.Get("http://" + address)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body) // or the connection is not kept
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	require.EqualValues(t, 3, read.Load())
	left, err := b.Remaining(t.Context(), ration.NewToken("a"))
	require.NoError(t, err)
	require.Equal(t, 7, left)
}
