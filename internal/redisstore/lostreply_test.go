package redisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// bookInDoubt books, with a reply that is lost.
func (c *callers) bookInDoubt(r store.BookRequest) {
	_, err := c.store.Book(c.t.Context(), r)
	require.ErrorIs(c.t, err, ration.ErrStoreUnavailable)
	failed, _ := errors.AsType[*ration.StoreError](err)
	require.False(c.t, failed.Permanent)
}

func TestABookingWhoseAnswerWasLostIsFoundAgain(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.GCRA} {
		c := newCallers(t, ration.Limit{Max: 100, Window: time.Hour, Algorithm: algorithm, Burst: map[ration.Algorithm]int{ration.GCRA: 50}[algorithm]})
		r := c.request(2, store.Forever)
		c.gate.lost.Store(1)
		c.bookInDoubt(r)
		again, err := c.store.Book(t.Context(), r)
		require.NoError(t, err)
		require.True(t, again.Booked)
		require.Equal(t, 3, c.used(), "it was booked once")
		require.NoError(t, c.store.Cancel(t.Context(), store.CancelRequest{Booking: again}))
		require.Equal(t, 1, c.used())

		// It can be cancelled by its ID alone as well.
		r = c.request(2, store.Forever)
		before := c.used()
		c.gate.lost.Store(1)
		c.bookInDoubt(r)
		require.Equal(t, before+2, c.used())
		require.NoError(t, c.store.Cancel(t.Context(), store.CancelRequest{Booking: store.Booking{ID: r.ID, Budget: c.name}}))
		require.Equal(t, before, c.used())
	}
}

func TestAScriptThatWasGivenUpIsNotCarriedOutLater(t *testing.T) {
	t.Parallel()
	c := newCallers(t, ration.PerHour(100))
	open := c.gate.shut()
	r := c.request(1, store.Forever)
	failed := make(chan error, 1)
	c.gate.unsent.Store(1)
	c.wg.Go(func() { _, err := c.store.Book(t.Context(), r); failed <- err })
	late := <-c.gate.arrived
	open()
	require.ErrorIs(t, <-failed, ration.ErrStoreUnavailable)
	again, err := c.store.Book(t.Context(), r)
	require.NoError(t, err)
	require.True(t, again.Booked)
	require.Equal(t, 2, c.used())
	// Now the first script arrives after all.
	reply, err := c.store.Client.Do(t.Context(), late...).Result()
	require.NoError(t, err)
	call := fmt.Sprint(late[4])[:16]
	require.Equal(t, call+strings.Repeat("\x00", 32)+"N\x00\x01"+strings.Repeat("\x00", 15)+"\x00\x05\x00\x00\x00\x00stale", reply)
	require.Equal(t, 2, c.used())
}

func TestEachOfABatchFindsItsLostAnswer(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog, ration.FixedWindow} {
		t.Run(algorithm.String(), func(t *testing.T) {
			t.Parallel()
			eachFindsItsLostAnswer(t, algorithm)
		})
	}
}

func eachFindsItsLostAnswer(t *testing.T, algorithm ration.Algorithm) {
	c := newCallers(t, ration.Limit{Max: 1000, Window: time.Hour, Algorithm: algorithm})
	open := c.hold()
	const many = 20
	requests := make([]store.BookRequest, many)
	for i := range requests {
		requests[i] = c.request(1+i/7, store.Forever) // several of one cost have one answer
		c.queue(t.Context(), requests[i], func(_ store.Booking, err error) {
			require.ErrorIs(t, err, ration.ErrStoreUnavailable)
		})
	}
	units := 2
	for _, r := range requests {
		units += r.Cost
	}
	c.gate.spared.Store(1) // of the script that was held up
	c.gate.lost.Store(1)
	open()
	c.wg.Wait()
	require.Equal(t, units, c.used(), "all were booked")
	// Half of the callers ask again and find their bookings, the others cancel theirs.
	var entries sync.Map
	for i, r := range requests {
		c.wg.Go(func() {
			if i%2 == 1 {
				units := store.CancelRequest{Booking: store.Booking{ID: r.ID, Budget: c.name}}
				require.NoError(t, c.store.Cancel(t.Context(), units))
				return
			}
			b, err := c.store.Book(t.Context(), r)
			require.NoError(t, err)
			require.True(t, b.Booked)
			require.Equal(t, r.Cost, b.Cost)
			_, another := entries.LoadOrStore(b.Entry, true)
			require.False(t, another, "two bookings have one entry")
		})
		if i%2 == 1 {
			units -= r.Cost
		}
	}
	c.wg.Wait()
	if algorithm != ration.FixedWindow { // there they count until their slot has passed
		require.Equal(t, units, c.used())
	}
}
