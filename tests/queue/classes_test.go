package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A crowd whose requests all differ in their units, so that each stands in a line of its own, gives up at once: it returns soon, and
// nothing stays booked, neither calls nor units nor what is counted for each route.
func TestACrowdOfManyClassesThatGivesUpLeavesNothingBooked(t *testing.T) {
	testkit.Slow(t)
	callers := 6000
	if testing.Short() {
		callers = 2000
	}
	const soon = time.Minute // the last slot is three minutes away, or ten; a busy machine takes a quarter of a minute
	server := redistest.Start(t)
	store := &ration.RedisStore{Client: server.Client(t)}
	var limits []ration.Limit
	for _, text := range []string{"10/1s", "1000000000/24h:unit=tokens", "1000000/24h:per=route"} {
		l, err := ration.ParseLimit(text)
		require.NoError(t, err)
		limits = append(limits, l)
	}
	b := &ration.Budget{Name: "crowd", Store: store, Limits: limits}
	token := ration.NewToken("a")
	with := func(ctx context.Context, i int) context.Context {
		return ration.WithUnits(ration.WithKey(ctx, "route", fmt.Sprint(i%3)), map[string]int{"tokens": i + 1})
	}
	ahead := func() (n int) {
		for i := range 3 {
			u, err := b.Usage(with(t.Context(), i), token)
			require.NoError(t, err)
			for _, l := range u.Limits {
				n += l.Ahead
			}
		}
		return n
	}
	ctx, stop := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for i := range callers {
		crowd.Go(func() { _, _ = b.Wait(with(ctx, i), token, 1) })
	}
	require.Eventually(t, func() bool {
		u, err := b.Usage(with(t.Context(), 0), token)
		require.NoError(t, err)
		return u.Limits[0].Ahead > callers*9/10
	}, soon, 50*time.Millisecond)
	begun := time.Now()
	stop()
	crowd.Wait()
	require.Less(t, time.Since(begun), soon)
	// What was being booked when its caller left is given back when it is booked.
	for left := ahead(); left > 0; left = ahead() {
		require.Less(t, time.Since(begun), 2*soon, "%d are still booked", left)
		require.NoError(t, store.Settle(t.Context()))
	}
	asked := server.Commands(t)
	_, err := b.Wait(with(t.Context(), 0), token, 1)
	require.NoError(t, err)
	require.Less(t, int(server.Commands(t)-asked), 50, "nobody asks any more for those that have left")
}
