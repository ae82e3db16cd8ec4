package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/store"
)

// If a call takes too long, its callers get an error, and so do the callers queued behind
// it. What Redis books for them all the same is found again.
func TestACallThatTakesTooLongHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	c := newCallers(t, ration.PerHour(100))
	c.store.Timeout = 50 * time.Millisecond
	open := c.gate.shut()
	requests := []store.BookRequest{c.request(1, 0), c.request(1, 0), c.request(1, 0)}
	tooLong := func(_ store.Booking, err error) { require.ErrorIs(t, err, context.DeadlineExceeded) }
	c.wg.Go(func() { tooLong(c.store.Book(t.Context(), requests[0])) })
	<-c.gate.arrived
	for _, r := range requests[1:] {
		c.wg.Go(func() { tooLong(c.store.Book(t.Context(), r)) })
	}
	c.wg.Wait()
	c.store.Timeout = time.Minute
	open()
	for _, r := range requests {
		b, err := c.store.Book(t.Context(), r)
		require.NoError(t, err)
		require.True(t, b.Booked)
	}
	require.Equal(t, 4, c.used())
}

// A caller may give up at any point of its call, also before the call is sent.
func TestACallMayEndAtAnyTime(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{1, 20 * time.Microsecond, 200 * time.Microsecond} {
		c := newCallers(t, ration.PerHour(1_000_000))
		c.store.Timeout = timeout
		for range 16 {
			c.wg.Go(func() {
				for range 200 {
					_, _ = c.store.Book(t.Context(), c.request(1, store.Forever))
				}
			})
		}
		c.wg.Wait()
	}
}

// On a busy machine callers still get replies: a script does not wait for more callers
// without end.
func TestABusyProcessIsAnswered(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	c := newCallers(t, ration.PerHour(1_000_000))
	ctx, stop := context.WithCancel(t.Context())
	var busy, answered sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	// Each caller books again after its reply, so that one always comes.
	for range 40 {
		answered.Go(func() {
			for range 10 {
				c.book(t.Context(), 1, store.Forever)
			}
		})
	}
	answered.Wait()
	stop()
	busy.Wait()
	require.Equal(t, 401, c.used())
}
