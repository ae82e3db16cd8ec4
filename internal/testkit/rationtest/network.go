package rationtest

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// A Network is a client's way to Redis, whose Dial is for its options. It loses replies to
// scripts, which Redis has run, and has them read late, as a process does that was stopped.
type Network struct {
	Lose atomic.Int64 // how many replies are still to be lost: the client reads the end of the connection
	Late atomic.Int64 // by how much the next reply is read late, in nanoseconds
}

// Dial makes a connection.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: conn, network: n}, nil
}

type faultyConn struct {
	net.Conn
	network *Network
	script  atomic.Bool // the last command ran a script
}

func (c *faultyConn) Write(p []byte) (int, error) {
	c.script.Store(bytes.Contains(bytes.ToLower(p[:min(len(p), 40)]), []byte("evalsha")))
	return c.Conn.Write(p)
}

func (c *faultyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil || !c.script.Load() {
		return n, err
	}
	if by := c.network.Late.Swap(0); by > 0 {
		time.Sleep(time.Duration(by))
	}
	if left := c.network.Lose.Load(); left > 0 && c.network.Lose.CompareAndSwap(left, left-1) {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}
