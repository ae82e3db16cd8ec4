package stress_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A network is one process's way to Redis. Its connections can lose the next replies of
// scripts, and hand the next one over late.
type network struct {
	lose atomic.Int64 // how many replies are still to be lost
	late atomic.Int64 // by how much the next reply is late, in nanoseconds
}

func (n *network) dial(ctx context.Context, kind, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, kind, addr)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, network: n}, nil
}

// over returns the options of a client on this network.
func (n *network) over(o *redis.Options) *redis.Options {
	copied := *o
	copied.Dialer, copied.PoolSize = n.dial, connections
	return &copied
}

type connection struct {
	net.Conn
	network *network
	script  atomic.Bool // the last command ran a script
}

func (c *connection) Write(p []byte) (int, error) {
	c.script.Store(bytes.Contains(bytes.ToLower(p[:min(len(p), 40)]), []byte("evalsha")))
	return c.Conn.Write(p)
}

func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil || !c.script.Load() {
		return n, err
	}
	if by := c.network.late.Swap(0); by > 0 {
		time.Sleep(time.Duration(by))
	}
	if left := c.network.lose.Load(); left > 0 && c.network.lose.CompareAndSwap(left, left-1) {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}
