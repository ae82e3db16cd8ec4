package proxy

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is checked is the address that is connected to. An address of this machine is reached only where the configuration means
// one, and those at which clouds tell secrets never.
func TestTheAddressThatIsDialledIsChecked(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	free := context.WithValue(t.Context(), dialKey{}, true)
	for _, address := range []string{"127.0.0.1:" + port, "[::ffff:127.0.0.1]:" + port, "localhost:" + port} {
		_, err := dialChecked(t.Context(), "tcp", address)
		require.ErrorIs(t, err, errAddress, address)
		conn, err := dialChecked(free, "tcp", address)
		require.NoError(t, err, address)
		require.NoError(t, conn.Close())
	}
	for _, address := range []string{"10.1.2.3:80", "192.168.0.1:80", "[fd00:ec2::254]:80", "[::1]:80", "169.254.169.254:80", "[fe80::1%lo]:80", "0.0.0.0:" + port, "[::ffff:169.254.169.254]:80"} {
		_, err := dialChecked(t.Context(), "tcp", address)
		require.ErrorIs(t, err, errAddress, address)
	}
	for _, address := range []string{"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "0.0.0.0:" + port, "[fe80::1%lo]:80"} {
		_, err := dialChecked(free, "tcp", address)
		require.ErrorIs(t, err, errAddress, address)
	}
}
