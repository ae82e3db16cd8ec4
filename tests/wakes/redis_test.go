package wakes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// These run in real time, because a subscription waits for the network. They wait for what
// must come, and slots lie so far ahead that only a message can bring it.

// onRedis returns two processes on a real Redis, each with a client of its own.
func onRedis(t *testing.T, server *redistest.Server, limit ration.Limit) (a, b process) {
	t.Helper()
	name := redistest.Name(t)
	return newProcess(name, &ration.RedisStore{Client: server.Client(t)}, limit),
		newProcess(name, &ration.RedisStore{Client: server.Client(t)}, limit)
}

// waitFor has so many callers wait for a slot of the token "a", until the test ends, and
// returns their bookings. The quota must be spent.
func (p process) waitFor(t *testing.T, callers int) (all []store.Booking) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var waits sync.WaitGroup
	t.Cleanup(func() {
		stop()
		waits.Wait()
	})
	for range callers {
		waits.Go(func() { _, _ = p.Wait(ctx, ration.NewToken("a"), 1) })
	}
	for range callers {
		all = append(all, next(t, p.asked.booked))
	}
	return all
}

// next returns what comes next.
func next[T any](t *testing.T, from <-chan T) (one T) {
	t.Helper()
	select {
	case one = <-from:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
	}
	return one
}

// awaitWatch has a caller wait, and returns once the watch is in force.
func (p process) awaitWatch(t *testing.T) {
	t.Helper()
	p.book(t)
	next(t, p.asked.booked)
	p.asked.statuses.Store(0) // a new budget's was asked for
	p.waitFor(t, 1)
	require.Eventually(t, func() bool { return p.asked.statuses.Load() == 1 }, 10*time.Second, time.Millisecond)
}

func TestAPauseReachesThoseWhoWaitOnRedis(t *testing.T) {
	a, b := onRedis(t, redistest.Shared(t), rationtest.Every(3600))
	b.awaitWatch(t)
	until, paused := a.pause(t, 2*time.Hour), time.Now()
	next(t, b.asked.cancelled)
	t.Logf("it gave up its slot after %v", time.Since(paused))
	require.False(t, next(t, b.asked.booked).Slot.Before(until))
}

func TestManyWhoWaitOnRedisAskForTheStatusAFewTimes(t *testing.T) {
	const callers = 1000
	a, b := onRedis(t, redistest.Shared(t), rationtest.Every(60))
	b.awaitWatch(t)
	b.waitFor(t, callers-1)
	until, paused := a.pause(t, 24*time.Hour), time.Now()
	for range callers {
		require.False(t, next(t, b.asked.booked).Slot.Before(until))
	}
	t.Logf("%d callers booked again within %v", callers, time.Since(paused))
	// One when the watch began, and one for the message, or two if it came before a reply.
	require.LessOrEqual(t, int(b.asked.statuses.Load()), 4, "the waiters ask together")
}

// A user who may neither publish nor subscribe hears of the pause when its slot has come.
func TestWithoutMessagesThePauseIsFoundWhenTheSlotHasCome(t *testing.T) {
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "mute", "on", ">pw", "~*", "resetchannels", "+@all").Err())
	name, limit := redistest.Name(t), ration.Limit{Max: 1, Window: 1200 * time.Millisecond}
	var both []process
	for range 2 {
		options := *server.Client(t).Options()
		options.Username, options.Password = "mute", "pw"
		client := redis.NewClient(&options)
		t.Cleanup(func() { _ = client.Close() })
		both = append(both, newProcess(name, &ration.RedisStore{Client: client}, limit))
	}
	a, b := both[0], both[1]
	b.book(t)
	next(t, b.asked.booked)
	waits := b.waitFor(t, 1)
	until := a.pause(t, time.Hour)
	moved := next(t, b.asked.booked)
	require.False(t, moved.Slot.Before(until))
	require.False(t, moved.Now.Before(waits[0].Slot), "it asked when its slot had come")
}

// While the subscription is lost nothing is heard. When it is made again, the status is asked
// for.
func TestAPauseReachesThoseWhoseSubscriptionWasLost(t *testing.T) {
	server := redistest.Start(t)
	a, b := onRedis(t, server, rationtest.Every(3600))
	b.book(t)
	next(t, b.asked.booked)
	b.waitFor(t, 1)
	admin := server.Client(t)
	kill := func() int64 {
		killed, err := admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Int64()
		require.NoError(t, err)
		return killed
	}
	require.Eventually(t, func() bool { return kill() == 1 }, 10*time.Second, time.Millisecond)
	for i := range 3 {
		until := a.pause(t, time.Duration(2+i)*time.Hour)
		kill()
		require.False(t, next(t, b.asked.booked).Slot.Before(until))
	}
}
