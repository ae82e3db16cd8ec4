package redisstore_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// A listener is a watch of a budget, and what it hears.
type listener struct {
	heard chan int64
	stop  func()
}

func listen(s *redisstore.Store, budget string) listener {
	l := listener{heard: make(chan int64, 1000)}
	l.stop = s.Watch(budget, func(news store.News) {
		if !news.Silent {
			l.heard <- news.Version
		}
	})
	return l
}

// await returns once the version was heard.
func (l listener) await(t *testing.T, version int64) {
	t.Helper()
	for timeout := time.After(10 * time.Second); ; {
		select {
		case heard := <-l.heard:
			if heard == version {
				return
			}
		case <-timeout:
			t.Fatalf("version %d was not heard", version)
		}
	}
}

func pause(t *testing.T, s *redisstore.Store, budget string, length time.Duration) store.PauseReply {
	t.Helper()
	reply, err := s.Pause(t.Context(), store.PauseRequest{Budget: budget, For: length})
	require.NoError(t, err)
	return reply
}

// subscribers returns the IDs of the server's connections that subscribe.
func subscribers(t *testing.T, admin *redis.Client) (ids []string) {
	t.Helper()
	list, err := admin.Do(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
	require.NoError(t, err)
	for line := range strings.Lines(list) {
		id, _, _ := strings.Cut(line, " ")
		ids = append(ids, id)
	}
	return ids
}

// listening reports whether a goroutine of a Watch runs.
func listening() bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*watchers)")
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 10*time.Second, time.Millisecond, what)
}

func TestWatchersOfAStoreShareAConnection(t *testing.T) {
	server := redistest.Start(t)
	s, admin := &redisstore.Store{Client: server.Client(t)}, server.Client(t)
	var all []listener
	for _, budget := range []string{"a", "a", "b", "c"} {
		l := listen(s, budget)
		l.await(t, 0)
		all = append(all, l)
	}
	require.Len(t, subscribers(t, admin), 1)
	version := pause(t, s, "a", time.Hour).Version
	all[0].await(t, version)
	all[1].await(t, version)
	for _, l := range all {
		require.True(t, listening())
		l.stop()
	}
	eventually(t, "the connection is closed", func() bool { return len(subscribers(t, admin)) == 0 })
	eventually(t, "the goroutine has ended", func() bool { return !listening() })
	again := listen(s, "a")
	again.await(t, 0)
	again.stop()
	eventually(t, "the goroutine has ended", func() bool { return !listening() })
}

// What is published while the connection is lost is made up for by a 0.
func TestAWatchIsMadeAgainWhenItsConnectionIsLost(t *testing.T) {
	server := redistest.Start(t)
	s, admin := &redisstore.Store{Client: server.Client(t)}, server.Client(t)
	l := listen(s, "a")
	defer l.stop()
	for i := range 3 {
		l.await(t, 0)
		l.await(t, pause(t, s, "a", time.Duration(i+1)*time.Hour).Version)
		require.NoError(t, admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err())
	}
	l.await(t, 0)
	server.Kill()
	server.Restart(t)
	l.await(t, 0)
	l.await(t, pause(t, s, "a", time.Hour).Version)
}

// A connection on which nothing comes is tried, and made anew if nobody answers.
func TestAWatchIsMadeAgainWhenItsConnectionIsDead(t *testing.T) {
	testkit.Slow(t)
	server := redistest.Start(t)
	s, admin := &redisstore.Store{Client: server.Client(t)}, server.Client(t)
	s.QuietAfter(200 * time.Millisecond)
	l := listen(s, "a")
	defer l.stop()
	l.await(t, 0)
	connection := subscribers(t, admin)
	eventually(t, "the connection is tried three times", func() bool {
		return strings.Contains(admin.Info(t.Context(), "commandstats").Val(), "cmdstat_ping:calls=3,")
	})
	require.Equal(t, connection, subscribers(t, admin), "Redis has answered")
	server.Stop(t)
	eventually(t, "the connection is given up", func() bool { return !s.Subscribed() })
	server.Continue(t)
	l.await(t, 0)
	l.await(t, pause(t, s, "a", time.Hour).Version)
}

// A user who may neither publish nor subscribe books and pauses as any other.
func TestAWatchThatIsRefusedDisturbsNothing(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "mute", "on", ">pw", "~*", "resetchannels", "+@all", "-publish").Err())
	options := *server.Client(t).Options()
	options.Username, options.Password = "mute", "pw"
	client := redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	s := &redisstore.Store{Client: client}
	l := listen(s, "a")
	other := listen(&redisstore.Store{Client: admin}, "a")
	defer other.stop()
	other.await(t, 0)
	for i := range 3 {
		reply := pause(t, s, "a", time.Duration(i+1)*time.Hour)
		status, err := s.Status(t.Context(), store.StatusRequest{Budget: "a"})
		require.NoError(t, err)
		require.Equal(t, reply.Version, status.Version)
		require.Greater(t, reply.Version, reply.Before)
	}
	other.await(t, pause(t, &redisstore.Store{Client: admin}, "a", 24*time.Hour).Version)
	require.Empty(t, other.heard, "the user may not publish")
	require.Empty(t, l.heard, "the user may not subscribe")
	// Once it may, it hears.
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "mute", "allchannels").Err())
	l.await(t, 0)
	l.stop()
}

// A client that is closed ends what watches with it.
func TestAWatchEndsWithItsClient(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(server.Client(t).Options())
	s := &redisstore.Store{Client: client}
	l := listen(s, "a")
	l.await(t, 0)
	require.NoError(t, client.Close())
	eventually(t, "the goroutine has ended", func() bool { return !listening() })
	l.stop()
	listen(s, "a").stop()
	eventually(t, "the goroutine has ended", func() bool { return !listening() })
}

// Stopping does not wait for a server that does not answer.
func TestAWatchOfAServerThatDoesNotAnswerIsStoppedAtOnce(t *testing.T) {
	server := redistest.Start(t)
	server.Stop(t)
	defer server.Continue(t)
	s := &redisstore.Store{Client: server.Client(t)}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 3 {
		listen(s, "a").stop()
		l := listen(s, "b")
		listen(s, "c").stop()
		l.stop()
	}
	require.NoError(t, ctx.Err())
	eventually(t, "the goroutines have ended", func() bool { return !listening() })
}
