package redisstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

const registry = "ration:v2:budgets"

// book books a unit for the first of the accounts, and waits for what is written beside it.
func book(t *testing.T, s *redisstore.Store, budget string, accounts *store.Accounts, now time.Time) store.Booking {
	t.Helper()
	b, err := s.Book(t.Context(), store.BookRequest{
		ID: store.NewBookingID(), Budget: budget, Accounts: accounts, Cost: 1, MaxWait: store.Forever, Now: now,
	})
	require.NoError(t, err)
	require.True(t, b.Booked)
	require.NoError(t, s.Settle(t.Context()))
	return b
}

func TestAReaderFindsTheBudgetsThatWereBooked(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	server, cluster := redistest.Start(t), redistest.StartCluster(t, 3)
	for name, client := range map[string]redis.UniversalClient{"single": server.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			writer, reader := &redisstore.Store{Client: client}, &redisstore.Store{Client: client}
			none, err := reader.Budgets(t.Context())
			require.NoError(t, err)
			require.Empty(t, none)
			a, now := rationtest.Accounts(t, 1, ration.PerHour(5)), rationtest.Begin
			var want []store.KnownBudget
			for _, budget := range []string{"b", "c", "a"} {
				now = now.Add(time.Second)
				book(t, writer, budget, a, now)
				want = append(want, store.KnownBudget{Name: budget, Seen: now})
			}
			_, err = reader.Usage(t.Context(), store.UsageRequest{Budget: "only read", Accounts: a})
			require.Error(t, err) // a name has no spaces
			_, err = reader.Usage(t.Context(), store.UsageRequest{Budget: "read", Accounts: a})
			require.NoError(t, err)
			got, err := reader.Budgets(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Positive(t, client.PTTL(t.Context(), registry).Val())

			// Another process that comes much later finds those that are out of use gone.
			last := now.Add(400*24*time.Hour - 500*time.Millisecond)
			book(t, &redisstore.Store{Client: client}, "b", a, last)
			got, err = reader.Budgets(t.Context())
			require.NoError(t, err)
			require.Equal(t, []store.KnownBudget{want[2], {Name: "b", Seen: last}}, got)
		})
	}
}

// A process says at most every ten minutes that it books in a budget.
func TestABudgetIsSeenEveryTenMinutes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		client := server.Client(t)
		s, a := &redisstore.Store{Client: client}, rationtest.Accounts(t, 1, ration.PerHour(1000))
		seen := func() time.Time {
			all, err := s.Budgets(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			return all[0].Seen
		}
		first := book(t, s, "x", a, time.Now()).Now
		require.Equal(t, first, seen())
		for range 9 {
			time.Sleep(time.Minute)
			book(t, s, "x", a, time.Now())
			require.Equal(t, first, seen())
		}
		time.Sleep(time.Minute)
		require.Equal(t, book(t, s, "x", a, time.Now()).Now, seen())
		require.Equal(t, first.Add(10*time.Minute), seen())
		// A clock that went back takes nothing back.
		require.NoError(t, client.ZAdd(t.Context(), registry, redis.Z{Score: 1 << 52, Member: "x"}).Err())
		time.Sleep(10 * time.Minute)
		book(t, s, "x", a, time.Now())
		require.Equal(t, time.UnixMicro(1<<52), seen())
	})
}

// A Redis that begins anew is told again, without ten minutes in which no reader finds the budget.
func TestAReaderFindsABudgetAfterALoss(t *testing.T) {
	client := redistest.Start(t).Client(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute)
		kept := &ration.RedisStore{Client: client}
		b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(5)}, Store: rationtest.WithClock(kept, time.Now)}
		token := ration.NewToken("a")
		token.Label = "ann"
		call := func() {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			require.NoError(t, kept.Settle(t.Context()))
		}
		call()
		require.NoError(t, client.FlushAll(t.Context()).Err())
		time.Sleep(time.Second)
		call()
		all, err := kept.Budgets(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		d, err := kept.Describe(t.Context(), "x")
		require.NoError(t, err)
		require.Equal(t, "ann", d.Accounts[0].Label)
	})
}

// A user who may not write the registry books all the same.
func TestBookingsDoNotNeedTheRegistry(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "narrow", "on", ">pw", "~ration:v2:{x}*", "allchannels", "+@all").Err())
	options := *server.Client(t).Options()
	options.Username, options.Password = "narrow", "pw"
	client := redis.NewClient(&options)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s := &redisstore.Store{Client: client}
	book(t, s, "x", rationtest.Accounts(t, 1, ration.PerHour(5)), time.Time{})
	_, err := s.Budgets(t.Context())
	require.ErrorIs(t, err, store.ErrStoreUnavailable)
	require.ErrorContains(t, err, "NOPERM")
	require.Zero(t, server.Client(t).Exists(t.Context(), registry).Val())
}
