package redistest_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestStartAnswers(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	require.Equal(t, "v", c.Get(t.Context(), "k").Val())
	save, err := c.ConfigGet(t.Context(), "save").Result()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"save": ""}, save)
}

func TestRunLastsUntilClose(t *testing.T) {
	s, err := redistest.Run(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, s.Version)
	require.NoError(t, s.Client(t).Ping(t.Context()).Err())
	s.Close()
	require.Error(t, dial(s.Addr))
}

func TestArgsWin(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "3mb", "--requirepass", "secret")
	got, err := s.Client(t).ConfigGet(t.Context(), "maxmemory").Result()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"maxmemory": "3145728"}, got)

	stranger := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer stranger.Close()
	require.ErrorContains(t, stranger.Ping(t.Context()).Err(), "NOAUTH")
}

func TestManyStartAtOnceOnPortsOfTheirOwn(t *testing.T) {
	const n = 12
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			s := redistest.Start(t)
			mu.Lock()
			defer mu.Unlock()
			seen[s.Addr] = true
		})
	}
	wg.Wait()
	require.Len(t, seen, n)
}

func TestServerEndsWithItsTest(t *testing.T) {
	var s *redistest.Server
	t.Run("inner", func(t *testing.T) {
		s = redistest.Start(t)
		s.Stop(t) // a stopped one ends too
	})
	require.False(t, s.Alive())
	require.Error(t, dial(s.Addr))
}

func TestKillRefusesConnections(t *testing.T) {
	s := redistest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	require.NoError(t, c.Ping(t.Context()).Err())
	s.Kill()
	s.Kill() // once more does nothing
	require.False(t, s.Alive())
	require.Error(t, dial(s.Addr))
	require.Error(t, c.Ping(t.Context()).Err())
}

func TestRestartKeepsPortAndLosesKeys(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	addr := s.Addr
	for range 3 {
		require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
		s.Restart(t)
		require.Equal(t, addr, s.Addr)
		require.Equal(t, int64(0), c.Exists(t.Context(), "k").Val())
	}
	s.Kill()
	s.Restart(t)
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestRestartKeepsKeysWithPersistence(t *testing.T) {
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c := s.Client(t)
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	s.Restart(t)
	require.Equal(t, "v", c.Get(t.Context(), "k").Val())
}

func TestStoppedServerAnswersAfterContinue(t *testing.T) {
	s := redistest.Start(t)
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer conn.Close()
	reply := make([]byte, 4)
	for i := range 5 {
		s.Stop(t)
		require.True(t, s.Alive())
		_, err := conn.Write([]byte("INCR k\r\n"))
		require.NoError(t, err, "the kernel takes it")
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err = conn.Read(reply)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		s.Continue(t)
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		_, err = io.ReadFull(conn, reply)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf(":%d\r\n", i+1), string(reply))
	}
}

func TestSharedIsOneServer(t *testing.T) {
	require.Same(t, redistest.Shared(t), redistest.Shared(t))
	a, b := redistest.Name(t), redistest.Name(t)
	require.NotEqual(t, a, b)
	require.Regexp(t, `^t-testsharedisoneserver-[0-9a-f]{8}$`, a)
}

// A bubble's clock moves on although the server is a real one.
func TestServerWorksInBubble(t *testing.T) {
	s := redistest.Start(t)
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		c := s.Client(t)
		start := time.Now()
		for range 100 {
			require.NoError(t, c.Eval(t.Context(), "return 1", nil).Err())
			time.Sleep(time.Hour)
		}
		require.Equal(t, 100*time.Hour, time.Since(start))
		require.Equal(t, int64(100), s.Commands(t))
		s.Stop(t)
		s.Continue(t)
		require.Equal(t, 100*time.Hour, time.Since(start), "faults take no time")
		s.Kill()
		require.False(t, s.Alive())
	})
	require.Less(t, time.Since(began), time.Hour)
}

// fatal is a testing.TB that keeps what Fatal says.
type fatal struct {
	testing.TB
	said chan string
}

func (f fatal) Helper() {}

func (f fatal) Fatalf(format string, args ...any) {
	f.said <- fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestMissingBinaryFailsInOneLine(t *testing.T) {
	for _, row := range []struct {
		name, env, path string
		want            []string
	}{
		{"nothing on PATH", "", t.TempDir(), []string{"apt-get install redis-server", "brew install redis", redistest.ServerEnv}},
		{"wrong variable", filepath.Join(t.TempDir(), "none"), "", []string{redistest.ServerEnv, "none"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv(redistest.ServerEnv, row.env)
			if row.path != "" {
				t.Setenv("PATH", row.path)
			}
			f := fatal{t, make(chan string, 1)}
			done := make(chan struct{})
			go func() {
				defer close(done)
				redistest.Start(f)
			}()
			<-done
			said := <-f.said
			for _, want := range row.want {
				require.Contains(t, said, want)
			}
			require.NotContains(t, strings.TrimSpace(said), "\n")
		})
	}
}

func TestBadArgsFailWithTheReason(t *testing.T) {
	f := fatal{t, make(chan string, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		redistest.Start(f, "--no-such-option", "1")
	}()
	<-done
	require.Contains(t, <-f.said, "no-such-option")
}

func dial(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}
