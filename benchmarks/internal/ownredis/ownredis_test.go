package ownredis

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/redistest"
)

func TestServerEndsWithStop(t *testing.T) {
	s, err := Start(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, s.Version)
	rdb, _ := NewClient(s.Addr)
	defer rdb.Close()
	require.NoError(t, rdb.Ping(t.Context()).Err())
	s.Stop()
	_, err = net.Dial("tcp", s.Addr)
	require.Error(t, err)
}

func TestServerHasWhatItIsGiven(t *testing.T) {
	s, err := Start(t.Context(), "--cluster-enabled", "yes")
	require.NoError(t, err)
	defer s.Stop()
	rdb, _ := NewClient(s.Addr)
	defer rdb.Close()
	info, err := rdb.Info(t.Context(), "cluster").Result()
	require.NoError(t, err)
	require.Contains(t, info, "cluster_enabled:1")
}

func TestMissingServerSaysWhatToInstall(t *testing.T) {
	t.Setenv(ServerEnv, "")
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context())
	require.ErrorContains(t, err, "apt-get install redis-server")
	require.Equal(t, redistest.ServerEnv, ServerEnv)
}
