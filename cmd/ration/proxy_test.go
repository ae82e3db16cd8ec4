package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/cmd/internal/proxy"
)

// An address that another process has is told as such, and its socket stays; one that a killed process has left is taken.
func TestAnAddressThatIsTaken(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	file := filepath.Join(t.TempDir(), "ration.yaml")
	require.NoError(t, os.WriteFile(file, []byte("listen: "+other.Addr().String()+"\nbudgets: {api: {hosts: [api.example.com], limits: [5/1s], tokens: [{env: HOME}]}}\n"), 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, exitBadInput, run([]string{"proxy", "-config", file}, nil, &out, &errs))
	require.Contains(t, errs.String(), "address already in use: name another address")
	require.NotContains(t, errs.String(), "Redis")

	socket := filepath.Join(t.TempDir(), "s")
	first, err := listen(context.Background(), &proxy.Config{Listen: "unix:" + socket})
	require.NoError(t, err)
	_, err = listen(context.Background(), &proxy.Config{Listen: "unix:" + socket})
	require.ErrorContains(t, err, "another process listens at")
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, first.Close())
	again, err := listen(context.Background(), &proxy.Config{Listen: "unix:" + socket})
	require.NoError(t, err)
	require.NoError(t, again.Close())
}
