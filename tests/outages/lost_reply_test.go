package outages_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
)

// A replyLoser makes connections that lose the replies to scripts: Redis has run
// the script, and the client reads the end of the connection.
type replyLoser struct {
	lose atomic.Int64 // how many replies are still to be lost
}

func (l *replyLoser) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &losingConn{Conn: conn, loser: l}, nil
}

type losingConn struct {
	net.Conn
	loser  *replyLoser
	script atomic.Bool // the last command ran a script
}

func (c *losingConn) Write(p []byte) (int, error) {
	c.script.Store(bytes.Contains(bytes.ToLower(p[:min(len(p), 40)]), []byte("evalsha")))
	return c.Conn.Write(p)
}

func (c *losingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.script.Load() && c.loser.lose.Add(-1) >= 0 {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}
