package outages_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// inOutage runs a test in a bubble with two workers on one Redis, either of which
// can be cut off.
func inOutage(t *testing.T, outage ration.Outage, limit ration.Limit, test func(t *testing.T, workers []*rationtest.Worker, stores []*rationtest.CutStore)) {
	t.Helper()
	server, name := redistest.Shared(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client := server.Client(t)
		var workers []*rationtest.Worker
		var stores []*rationtest.CutStore
		for range 2 {
			p := rationtest.NewWorker(t, name, client, time.Now, limit)
			kept := &rationtest.CutStore{Store: p.Store}
			p.Store, p.Outage = kept, outage
			workers, stores = append(workers, p), append(stores, kept)
		}
		test(t, workers, stores)
	})
}

func TestByDefaultNothingLeavesWithoutTheStore(t *testing.T) {
	inOutage(t, ration.FailClosed, ration.PerHour(10), func(t *testing.T, workers []*rationtest.Worker, stores []*rationtest.CutStore) {
		stores[0].Cut.Store(true)
		start := time.Now()
		_, err := workers[0].Wait(t.Context(), ration.NewToken("a"), 1)
		require.ErrorIs(t, err, ration.ErrStoreUnavailable)
		require.NotErrorIs(t, err, ration.ErrExhausted)
		require.InDelta(t, 30, time.Since(start).Seconds(), 2, "Patience is 30 s by default")
		require.Less(t, stores[0].Bookings.Load(), int64(100))

		start = time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		_, err = workers[0].Wait(ctx, ration.NewToken("a"), 1)
		require.ErrorIs(t, err, ration.ErrStoreUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), 5*time.Second)

		start = time.Now()
		_, err = workers[0].Try(t.Context(), ration.NewToken("a"), 1)
		require.ErrorIs(t, err, ration.ErrStoreUnavailable)
		require.Zero(t, time.Since(start))
		workers[0].RetryStoreFor = -1
		_, err = workers[0].Wait(t.Context(), ration.NewToken("a"), 1)
		require.ErrorIs(t, err, ration.ErrStoreUnavailable)
		require.Zero(t, time.Since(start))
		require.Len(t, workers[0].Noticed(ration.StoreDown), 1)
	})
}

func TestWaitersGoOnWhenTheStoreIsBack(t *testing.T) {
	inOutage(t, ration.FailClosed, ration.PerHour(10), func(t *testing.T, workers []*rationtest.Worker, stores []*rationtest.CutStore) {
		stores[0].Cut.Store(true)
		var wait sync.WaitGroup
		wait.Go(func() { rationtest.Book(t, workers[0], 1) })
		time.Sleep(10 * time.Second)
		stores[0].Cut.Store(false)
		start := time.Now()
		wait.Wait()
		require.LessOrEqual(t, time.Since(start), 2*time.Second)
		left, err := workers[1].Remaining(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Equal(t, 9, left)
		require.Len(t, workers[0].Noticed(ration.StoreBack), 1)
	})
}

// All of a crawl's callers wait for their slots, and none books: also then people are told that the store does not answer, and that it
// does again.
func TestAnOutageIsToldWhileAllWait(t *testing.T) {
	inOutage(t, ration.FailClosed, ration.PerMinute(2), func(t *testing.T, workers []*rationtest.Worker, stores []*rationtest.CutStore) {
		rationtest.Book(t, workers[0], 2)
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() { rationtest.Book(t, workers[0], 1) })
		}
		time.Sleep(5 * time.Second)
		stores[0].Cut.Store(true)
		time.Sleep(12 * time.Second)
		require.Len(t, workers[0].Noticed(ration.StoreDown), 1, "in the time of a heartbeat")
		require.Empty(t, workers[0].Noticed(ration.StoreBack))
		stores[0].Cut.Store(false)
		time.Sleep(12 * time.Second)
		require.Len(t, workers[0].Noticed(ration.StoreBack), 1)
		wait.Wait()
		require.Len(t, workers[0].Noticed(ration.StoreDown), 1)
	})
}

func TestDivideGoesOnWithAShare(t *testing.T) {
	inOutage(t, ration.Divide, ration.PerHour(10), func(t *testing.T, workers []*rationtest.Worker, stores []*rationtest.CutStore) {
		start := time.Now()
		rationtest.Book(t, workers[0], 2)
		rationtest.Book(t, workers[1], 1)
		time.Sleep(11 * time.Second) // a heartbeat, after which each knows of both
		rationtest.Book(t, workers[0], 1)

		stores[0].Cut.Store(true)
		rationtest.Book(t, workers[0], 2)
		require.Equal(t, 11*time.Second, time.Since(start), "five of ten are its share, and three were booked before")
		_, err := workers[0].Try(t.Context(), ration.NewToken("a"), 1)
		exhausted, found := errors.AsType[*ration.ExhaustedError](err)
		require.True(t, found, "%v", err)
		require.Equal(t, time.Hour-11*time.Second, exhausted.RetryAfter)

		time.Sleep(10 * time.Minute)
		left, err := workers[1].Remaining(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Equal(t, 6, left, "the store knows nothing of the two yet")
		stores[0].Cut.Store(false)
		time.Sleep(time.Second)
		rationtest.Book(t, workers[0], 1)
		left, err = workers[1].Remaining(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Equal(t, 3, left, "the two are entered, and one more is booked")
		rationtest.Book(t, workers[0], 1)
		left, err = workers[1].Remaining(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Equal(t, 2, left, "and not entered again")
		require.Len(t, workers[0].Noticed(ration.StoreBack), 1)
		require.Equal(t, 2, workers[0].Noticed(ration.StoreBack)[0].Count)
	})
}

func TestAShareOfLessThanOneIsALongerWindow(t *testing.T) {
	inOutage(t, ration.Divide, ration.Limit{Max: 1, Window: 20 * time.Second}, func(t *testing.T, workers []*rationtest.Worker, stores []*rationtest.CutStore) {
		rationtest.Book(t, workers[0], 1)
		rationtest.Book(t, workers[1], 1)
		rationtest.Book(t, workers[0], 1)
		stores[0].Cut.Store(true)
		start := time.Now()
		rationtest.Book(t, workers[0], 2)
		require.Equal(t, 80*time.Second, time.Since(start), "one in 40 s for each of two workers")
	})
}

func TestACostThatIsMoreThanAShareIsCountedWhole(t *testing.T) {
	inOutage(t, ration.Divide, ration.Limit{Max: 10, Window: 20 * time.Second}, func(t *testing.T, workers []*rationtest.Worker, stores []*rationtest.CutStore) {
		rationtest.Book(t, workers[0], 1)
		rationtest.Book(t, workers[1], 1)
		time.Sleep(11 * time.Second) // a heartbeat
		rationtest.Book(t, workers[0], 1)
		time.Sleep(time.Minute)
		stores[0].Cut.Store(true)
		start := time.Now()
		for range 2 {
			_, err := workers[0].Wait(t.Context(), ration.NewToken("a"), 8)
			require.NoError(t, err)
		}
		require.Equal(t, 32*time.Second, time.Since(start), "a share of 5 in 20 s is 8 in 32 s")
		for cost, want := range map[int]string{0: "at least 1", 11: "no limit ever admits more than 10"} {
			_, err := workers[0].Wait(t.Context(), ration.NewToken("a"), cost)
			require.ErrorContains(t, err, want)
		}
	})
}

func TestOpenSendsEverythingAndEntersItLater(t *testing.T) {
	inOutage(t, ration.FailOpen, ration.PerHour(10), func(t *testing.T, workers []*rationtest.Worker, stores []*rationtest.CutStore) {
		rationtest.Book(t, workers[0], 1)
		stores[0].Cut.Store(true)
		start := time.Now()
		rationtest.Book(t, workers[0], 20)
		require.Zero(t, time.Since(start))
		stores[0].Cut.Store(false)
		time.Sleep(time.Second)
		_, err := workers[0].Try(t.Context(), ration.NewToken("a"), 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		usage, err := workers[1].Usage(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
		require.Equal(t, 21, usage.Limits[0].Used)
	})
}

func TestACallerLeavesAtOnceWhateverRedisDoes(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	kept := &ration.RedisStore{Client: client}
	b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(10)}, Store: kept}
	_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
	require.NoError(t, err)

	server.Stop(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := b.Wait(ctx, ration.NewToken("a"), 1)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)

	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err = b.Wait(ctx, ration.NewToken("a"), 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	server.Continue(t)
	ctx, stop = context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	require.NoError(t, kept.Settle(ctx))
	left, err := b.Remaining(t.Context(), ration.NewToken("a"))
	require.NoError(t, err)
	require.Equal(t, 9, left, "what was booked for those who left is cancelled")
}

func TestARedisThatHangsIsNamed(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	require.NoError(t, client.Ping(t.Context()).Err())
	kept := &ration.RedisStore{Client: client, Timeout: 50 * time.Millisecond}
	b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(10)}, Store: kept, RetryStoreFor: -1}
	server.Stop(t)
	_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
	require.ErrorIs(t, err, ration.ErrStoreUnavailable)
	require.ErrorContains(t, err, "no answer within 50ms")
	server.Continue(t)
}

func TestALostReplyBooksOnce(t *testing.T) {
	server := redistest.Start(t)
	faulty := new(rationtest.Network)
	options := *server.Client(t).Options()
	options.Dialer = faulty.Dial
	client := redis.NewClient(&options)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(10)}, Store: &ration.RedisStore{Client: client}}
	_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
	require.NoError(t, err)
	before := server.Commands(t)

	faulty.Lose.Store(2)
	_, err = b.Wait(t.Context(), ration.NewToken("a"), 1)
	require.NoError(t, err)
	require.GreaterOrEqual(t, server.Commands(t)-before, int64(3), "go-redis asked again")
	left, err := b.Remaining(t.Context(), ration.NewToken("a"))
	require.NoError(t, err)
	require.Equal(t, 8, left)
}

// A forgetfulStore loses the replies to some records that it has made.
type forgetfulStore struct {
	rationtest.CutStore
	loses atomic.Int32 // how many of the next replies
}

func (s *forgetfulStore) Record(ctx context.Context, r store.RecordRequest) error {
	if err := s.CutStore.Record(ctx, r); err != nil || s.loses.Add(-1) < 0 {
		return err
	}
	return rationtest.ErrCut
}

// What was sent in an outage is recorded when the store is back. If the reply to that is lost the worker goes on
// without the store, and then tells it the same again and what has come since, in thousands.
func TestWhatWasSentInAnOutageIsRecordedOnce(t *testing.T) {
	for _, calls := range []int{1, 500, 20_000} {
		for _, replies := range []int32{0, 1, 3} {
			t.Run(fmt.Sprintf("%d calls, %d replies lost", calls, replies), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kept := new(forgetfulStore)
					kept.Store = new(ration.MemoryStore)
					b := &ration.Budget{Name: "b", Limits: []ration.Limit{ration.PerHour(1_000_000)}, Store: kept, Outage: ration.FailOpen}
					sent := 0
					send := func() {
						_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
						require.NoError(t, err)
						sent++
					}
					send()
					kept.Cut.Store(true)
					for range calls {
						send()
					}
					kept.Cut.Store(false)
					kept.loses.Store(replies)
					for range replies + 1 { // each asks the store once
						time.Sleep(1100 * time.Millisecond)
						send()
					}
					u, err := b.Usage(t.Context(), ration.NewToken("a"))
					require.NoError(t, err)
					require.Equal(t, sent, u.Limits[0].Used+u.Limits[0].Ahead)
				})
			})
		}
	}
}
