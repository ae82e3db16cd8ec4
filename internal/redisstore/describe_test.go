package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A reader that knows nothing but Redis is told all that there is.
func TestAReaderIsToldAllOfABudget(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	server, cluster := redistest.Start(t), redistest.StartCluster(t, 3)
	for name, client := range map[string]redis.UniversalClient{"single": server.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			writer, reader := &redisstore.Store{Client: client}, &redisstore.Store{Client: client}
			none, err := reader.Describe(ctx, "x")
			require.NoError(t, err)
			require.Positive(t, none.Now)
			none.Now = time.Time{}
			require.Equal(t, store.Description{Budget: "x"}, none)

			hour, steady := ration.PerHour(5), ration.Limit{Max: 60, Window: time.Hour, Algorithm: ration.GCRA, Burst: 10, Margin: time.Second}
			day := ration.Limit{Max: 9, Window: 24 * time.Hour, Algorithm: ration.FixedWindow, Zone: "America/New_York", Scope: "media"}
			list, err := store.NewAccounts(
				ration.Account{ID: "a", Limits: []ration.Limit{hour}, Label: "the crawler's"},
				ration.Account{ID: "b", Limits: []ration.Limit{hour, steady, day}},
				ration.Account{ID: "never", Limits: []ration.Limit{hour}, Label: "never booked"},
			)
			require.NoError(t, err)
			list, err = list.Sharing(ration.Account{ID: "app", Limits: []ration.Limit{steady}, Label: "the app"})
			require.NoError(t, err)
			for i, cost := range []int{1, 3} {
				_, err := writer.Book(ctx, store.BookRequest{ID: store.NewBookingID(), Budget: "x", Accounts: list, Excluded: [][]string{{"b", "never"}, {"a", "never"}}[i],
					Scopes: []string{"media"}, Cost: cost, MaxWait: store.Forever, Revision: 7})
				require.NoError(t, err)
			}
			require.NoError(t, writer.Settle(ctx))
			want := store.Description{Budget: "x", Revision: 7}
			for _, p := range []store.PauseRequest{{Account: "a", For: time.Hour}, {Key: "endpoint1", For: 2 * time.Hour}, {Account: "b", Key: "object2", For: 3 * time.Hour}, {For: 4 * time.Hour}} {
				p.Budget = "x"
				done, err := writer.Pause(ctx, p)
				require.NoError(t, err)
				want.Pauses = append(want.Pauses, store.Pause{Account: p.Account, Key: p.Key, Until: done.Until})
			}
			for _, reason := range []string{"dead_token", "billing"} {
				done, err := writer.Quarantine(ctx, store.QuarantineRequest{Budget: "x", Token: "t", Reason: reason, For: time.Hour})
				require.NoError(t, err)
				want.Quarantined = append(want.Quarantined, store.Quarantine{Token: "t", Reason: reason, Until: done.Until})
				want.Version = done.Version
			}
			loads := map[string]store.Load{"w1": {Waiting: map[string]int{"quota": 3, "pause": 1}, InFlight: 2}}
			for _, worker := range []string{"w2", "w1"} {
				status, err := writer.Status(ctx, store.StatusRequest{Budget: "x", Worker: worker, Load: loads[worker]})
				require.NoError(t, err)
				want.Workers, want.Lost = append(want.Workers, store.Worker{ID: worker, Seen: status.Now, Load: loads[worker]}), status.Lost
			}

			got, err := reader.Describe(ctx, "x")
			require.NoError(t, err)
			require.WithinRange(t, got.Now, want.Workers[1].Seen, want.Workers[1].Seen.Add(time.Minute))
			accounts := got.Accounts
			got.Now, got.Accounts = time.Time{}, nil
			require.Equal(t, want, got)
			all := want.Pauses[3].Until
			named := func(id, label string, used int, limits ...ration.Limit) {
				one := accounts[0]
				accounts = accounts[1:]
				require.Equal(t, id, one.Account)
				require.Equal(t, label, one.Label)
				require.Equal(t, 7, one.Card.Revision)
				require.Equal(t, all, one.PausedUntil)
				require.Len(t, one.Limits, len(limits))
				for i, l := range limits {
					require.Equal(t, store.EncodeLimits([]limit.Limit{l}), store.EncodeLimits([]limit.Limit{one.Limits[i].Limit}))
					require.Equal(t, used, one.Limits[i].Used)
				}
			}
			named("a", "the crawler's", 1, hour)
			named("app", "the app", 4, steady)
			named("b", "", 3, hour, steady, day)
			require.Empty(t, accounts)
		})
	}
}

// Many accounts, and many pauses, are told in parts.
func TestAReaderIsToldAllOfManyAccounts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	s := &redisstore.Store{Client: client}
	var ids []string
	for i := range 1234 {
		id := fmt.Sprint("account-", i)
		ids = append(ids, id)
		list, err := store.NewAccounts(ration.Account{ID: id, Limits: []ration.Limit{ration.PerHour(i + 1), ration.PerMinute(i + 1)}})
		require.NoError(t, err)
		_, err = s.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: "x", Accounts: list, Cost: 1, MaxWait: store.Forever})
		require.NoError(t, err)
		_, err = s.Pause(t.Context(), store.PauseRequest{Budget: "x", Account: id, Key: "endpoint", For: time.Hour})
		require.NoError(t, err)
	}
	slices.Sort(ids)
	got, err := s.Describe(t.Context(), "x")
	require.NoError(t, err)
	require.Len(t, got.Pauses, len(ids))
	require.Len(t, got.Accounts, len(ids))
	for i, one := range got.Accounts {
		require.Equal(t, ids[i], one.Account)
		require.Equal(t, 1, one.Limits[0].Used)
		require.Equal(t, 1, one.Limits[1].Used)
	}
	// What has ended is not told, though its field is still there.
	require.NoError(t, client.Del(t.Context(), "ration:v2:{x}:acct:account-7").Err())
	got, err = s.Describe(t.Context(), "x")
	require.NoError(t, err)
	require.Len(t, got.Accounts, len(ids)-1)
}

// A lateLabel has accounts end before their labels come.
type lateLabel struct{ d *rationtest.RedisBudget }

func (lateLabel) DialHook(next redis.DialHook) redis.DialHook { return next }

func (lateLabel) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l lateLabel) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && cmd.Args()[len(cmd.Args())-1] == "three" {
			l.d.Client.Del(ctx, l.d.Key(":acct:a"))
		}
		return next(ctx, cmd)
	}
}

// A label is that of an account that is kept. It makes no key.
func TestALabelEndsWithItsAccount(t *testing.T) {
	t.Parallel()
	d := rationtest.NewRedisBudget(t)
	s := &redisstore.Store{Client: d.Client}
	labelled := func(label string) *store.Accounts {
		list, err := store.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{ration.PerHour(5)}, Label: label})
		require.NoError(t, err)
		return list
	}
	get := func() string { return d.Client.HGet(t.Context(), d.Key(":acct:a"), "label").Val() }
	book(t, s, d.Name, labelled(""), time.Time{})
	require.False(t, d.Client.HExists(t.Context(), d.Key(":acct:a"), "label").Val())
	book(t, s, d.Name, labelled("one"), time.Time{})
	require.Equal(t, "one", get())
	before := d.Keys(t)
	book(t, s, d.Name, labelled("two"), time.Time{})
	require.Equal(t, "one", get(), "it was announced just now")
	book(t, &redisstore.Store{Client: d.Client}, d.Name, labelled("two"), time.Time{})
	require.Equal(t, "two", get())
	for key, ttl := range d.Keys(t) {
		require.InDelta(t, before[key], ttl, float64(time.Minute), key)
	}
	// The account may have ended before its label comes.
	d.Client.AddHook(lateLabel{d})
	book(t, &redisstore.Store{Client: d.Client}, d.Name, labelled("three"), time.Time{})
	require.NotContains(t, d.Keys(t), ":acct:a")

	for _, bad := range []string{strings.Repeat("x", 101), "two\nlines", "\xff", "\x00"} {
		_, err := store.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{ration.PerHour(5)}, Label: bad})
		require.ErrorContains(t, err, "Label")
	}
	_, err := store.NewAccounts(ration.Account{ID: "a", Limits: []ration.Limit{ration.PerHour(5)}, Label: strings.Repeat("é", 50)})
	require.NoError(t, err)
}
