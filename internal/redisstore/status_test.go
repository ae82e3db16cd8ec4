package redisstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// After a loss nobody can be sure of what changed: Status tells all, once to each caller.
func TestAfterALossStatusTellsAll(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := rationtest.NewRedisBudget(t)
	a := rationtest.Accounts(t, 1, ration.PerHour(5))
	status := func(known int64) store.Status {
		s, err := d.Store.Status(ctx, store.StatusRequest{Budget: d.Name, Known: known, Now: d.Now})
		require.NoError(t, err)
		return s
	}
	d.Book(t, a, 1)
	_, err := d.Store.Pause(ctx, store.PauseRequest{Budget: d.Name, Account: "a", Key: "users", For: time.Hour, Now: d.Now})
	require.NoError(t, err)
	known := status(0).Version
	require.Equal(t, known, status(known).Since)
	require.Empty(t, status(known).Pauses)

	require.NoError(t, d.Client.Del(ctx, d.Key(":log:a")).Err())
	d.Book(t, a, 1)
	all := status(known)
	require.Zero(t, all.Since)
	require.Len(t, all.Pauses, 1)
	require.Equal(t, all.Version, status(all.Version).Since)
	require.Empty(t, status(all.Version).Pauses)
}

// What is kept to tell of changes ends with the pauses.
func TestChangesEndWithTheirPauses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := rationtest.NewRedisBudget(t)
	for range 200 {
		for _, key := range []string{"one", "two", store.NewBookingID().String()} {
			_, err := d.Store.Pause(ctx, store.PauseRequest{Budget: d.Name, Key: key, For: time.Hour, Now: d.Now})
			require.NoError(t, err)
		}
		d.Now = d.Now.Add(time.Hour)
	}
	for _, key := range []string{":pauses", ":changes"} {
		n, err := d.Client.ZCard(ctx, d.Key(key)).Result()
		require.NoError(t, err)
		require.LessOrEqual(t, n, int64(2+26), key)
		require.Positive(t, d.Keys(t)[key])
	}
}
