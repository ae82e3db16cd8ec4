package outages_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// Whatever OnEvent is called for, it may ask the budget: it is called when nobody waits for the one who calls it.
func TestOnEventMayAskTheBudget(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	token := ration.NewToken("a")
	var mu sync.Mutex // protects told
	var told []ration.EventKind
	budget := func() *ration.Budget {
		b := &ration.Budget{Name: "asking", Limits: []ration.Limit{ration.PerHour(1000)}, Store: &ration.RedisStore{Client: client}}
		b.OnEvent = func(e ration.Event) {
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
			defer stop()
			if _, err := b.Remaining(ctx, token); err != nil {
				t.Errorf("%v: %v", e, err)
			}
			if _, err := b.Wait(ctx, ration.NewToken("another"), 1); err != nil {
				t.Errorf("%v: %v", e, err)
			}
			mu.Lock()
			defer mu.Unlock()
			told = append(told, e.Kind)
		}
		return b
	}
	one, other := budget(), budget()
	for _, b := range []*ration.Budget{one, other} {
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
	}
	require.NoError(t, one.SetLimits(ration.PerHour(500)))
	_, err := one.Pause(t.Context(), token, 100*time.Millisecond)
	require.NoError(t, err)
	time.Sleep(1200 * time.Millisecond) // what is known of the status is old: Remaining asks for it
	_, err = other.Wait(t.Context(), token, 1)
	require.NoError(t, err)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	time.Sleep(1200 * time.Millisecond)
	for _, b := range []*ration.Budget{one, other} {
		_, err = b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, kind := range []ration.EventKind{ration.LimitsOverridden, ration.Paused, ration.LogLost} {
		require.True(t, slices.Contains(told, kind), "%v: %v", kind, told)
	}
}
