package redisstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// A farStore is a store with a long way to Redis, and what it books.
type farStore struct {
	*ration.RedisStore
	way      *redistest.Proxy
	budget   string
	accounts *store.Accounts
}

func newFarStore(t *testing.T, away time.Duration) *farStore {
	way := redistest.StartProxy(t, redistest.Shared(t).Addr, away/2)
	client := redis.NewClient(&redis.Options{Addr: way.Addr, PoolSize: 40, MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	accounts, err := store.NewAccounts(store.Account{ID: "a", Limits: []ration.Limit{ration.PerHour(10_000)}})
	require.NoError(t, err)
	return &farStore{&ration.RedisStore{Client: client}, way, redistest.Name(t), accounts}
}

func (s *farStore) book(t *testing.T) {
	r := store.BookRequest{ID: store.NewBookingID(), Budget: s.budget, Accounts: s.accounts, Cost: 1, MaxWait: store.Forever}
	booked, err := s.Book(t.Context(), r)
	require.NoError(t, err)
	require.True(t, booked.Booked)
}

func (s *farStore) used(t *testing.T) int {
	usage, err := s.Usage(t.Context(), store.UsageRequest{Budget: s.budget, Accounts: s.accounts})
	require.NoError(t, err)
	return usage[0].Limits[0].Used + usage[0].Limits[0].Ahead
}

// While Redis is far away a booking does not wait for the script before its own.
func TestBookingsOfAFarRedisAreUnderWayAtOnce(t *testing.T) {
	testkit.Slow(t)
	const away, callers, each = 100 * time.Millisecond, 20, 10
	s := newFarStore(t, away)
	for range 5 {
		s.book(t)
	}
	var all sync.WaitGroup
	begun := time.Now()
	for n := range callers {
		all.Go(func() {
			<-time.After(time.Duration(n) * away / callers) // so that they are not one batch
			for range each {
				s.book(t)
			}
		})
	}
	all.Wait()
	t.Logf("%d bookings of each of %d callers took %v", each, callers, time.Since(begun))
	require.Less(t, time.Since(begun), each*away*8/5, "each waits for its own reply")
	require.Equal(t, 5+callers*each, s.used(t))
}

// A reply that is late is asked for again, long before the timeout, and nothing is booked twice.
func TestAReplyThatNeverArrivesIsAskedForAgain(t *testing.T) {
	testkit.Slow(t)
	s := newFarStore(t, time.Millisecond)
	var all sync.WaitGroup
	for range 10 { // each has a connection of its own, and Redis knows the scripts
		all.Go(func() { s.book(t); s.used(t) })
	}
	all.Wait()
	for n := range 5 {
		s.way.Lost.Store(100)
		begun := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { s.way.Lost.Store(0) })
		s.book(t)
		require.Less(t, time.Since(begun), time.Second)
		require.Equal(t, 11+n, s.used(t))
	}
	s.way.Lost.Store(100)
	begun := time.Now()
	time.AfterFunc(100*time.Millisecond, func() { s.way.Lost.Store(0) })
	require.Equal(t, 15, s.used(t))
	require.Less(t, time.Since(begun), time.Second)
}
