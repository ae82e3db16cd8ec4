package main

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Only what misses the bound in all of its interval stands in the way, and of several
// the one that does the least.
func TestWhatStandsInTheWayDoesSoSurely(t *testing.T) {
	r := results{"of": {10, 10, 10}, "at times": {10, 30, 30}, "always": {20, 30, 30}, "ours": {60, 60, 60}, "better": {50, 50, 50}}
	parts := []part{{"at times", "this"}, {"always", "that"}}
	require.Equal(t, "that takes 3 x of, 30 µs, and this 2 x that", r.below([]string{"ours", "better"}, "of", 1.5, parts...))
	require.Equal(t, "this takes 3 x of, 30 µs, and this 2 x that", r.below([]string{"better", "ours"}, "of", 0.9, parts...))
	require.Empty(t, r.below([]string{"ours"}, "of", 2.5, parts...))

	r = results{"of": {10, 10, 10}, "at times": {30, 30, 60}, "always": {30, 30, 40}, "ours": {15, 15, 15}, "better": {20, 20, 20}}
	require.Equal(t, "that make 3 x of it, 30/s, and these 0.5 x that", r.above([]string{"better", "ours"}, "of", 5, parts...))
	require.Equal(t, "this make 3 x of it, 30/s, and these 0.5 x that", r.above([]string{"ours", "better"}, "of", 7, parts...))
	require.Empty(t, r.above([]string{"ours"}, "of", 3.5, parts...))

	require.Equal(t, "this takes 3 µs more over the same connection", dear("this", []float64{2.5, 3, 9}, 2))
	require.Empty(t, dear("this", []float64{1.5, 3, 9}, 2))
}

// That cores sleep is shown by those on cores that are kept awake, against a rival who is
// too.
func TestSleepStandsInTheWayWhereAwakeCoresMeetTheBound(t *testing.T) {
	r := results{"ours": {30}, "better": {40}, "of": {10},
		"ours" + onAwakeCores: {60}, "better" + onAwakeCores: {80}, "of" + onAwakeCores: {15}}
	ours := []string{"better", "ours"}
	require.Contains(t, r.asleep(ours, "of", 4), "these make 4 x of it, 80/s and 60/s against 15/s")
	require.Empty(t, r.asleep(ours, "of", 4.1))
}

// Callers who combine are all carried out, and each learns the answer to its own.
func TestCombinedCallsAreAllCounted(t *testing.T) {
	b := small(t)
	var answers sync.Map
	c := &combiner{do: func(ctx context.Context, calls int64) (int64, error) {
		return b.rdb.IncrBy(ctx, "combined", calls).Result()
	}}
	work := func(ctx context.Context) error {
		n, err := c.call(ctx)
		answers.Store(n, true)
		return err
	}
	require.NoError(t, times(t.Context(), goroutines, work, 3000))
	n, err := b.rdb.Get(t.Context(), "combined").Int64()
	require.NoError(t, err)
	require.Equal(t, int64(3000), n)
	_, found := answers.Load(n)
	require.True(t, found)
	_, found = answers.Load(int64(0))
	require.False(t, found)
}

// The least booking stands in the log once for all who made it, with its slot.
func TestTheLeastBookingIsEntered(t *testing.T) {
	b := small(t)
	before := time.Now().Truncate(time.Microsecond)
	slot, err := b.bookLeast(t.Context(), 7)
	require.NoError(t, err)
	require.WithinRange(t, time.UnixMicro(slot), before, time.Now())
	_, err = b.bookLeast(t.Context(), 5)
	require.NoError(t, err)
	log, err := b.rdb.ZRangeWithScores(t.Context(), "least", 0, -1).Result()
	require.NoError(t, err)
	require.Len(t, log, 2)
	require.Equal(t, float64(slot), log[0].Score)
	require.Contains(t, log[0].Member, ":7")
}

// What another goroutine does has its result, and its caller can leave.
func TestALeaveableCallCanBeLeft(t *testing.T) {
	never := make(chan struct{})
	results := []func() error{
		func() error { return nil },
		func() error { return io.ErrNoProgress },
		func() error { <-never; return nil },
	}
	i := -1
	work := leaveable(t.Context(), func(context.Context) error { i++; return results[i]() })
	require.NoError(t, work(t.Context()))
	require.ErrorIs(t, work(t.Context()), io.ErrNoProgress)
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, stop)
	require.ErrorIs(t, work(ctx), context.Canceled)
	require.ErrorIs(t, work(ctx), context.Canceled, "also while the other is still at work")
	close(never)
}
