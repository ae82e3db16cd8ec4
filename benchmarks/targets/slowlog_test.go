package main

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A slow command of ours is found, and one of another client is not ours. One in
// which Redis was not let run is told of, and is not slow.
func TestSlowCommandsAreFound(t *testing.T) {
	b := small(t)
	const ours = "ours"
	named := *b.rdb.Options()
	named.ClientName = steadyName
	steady := redis.NewClient(&named)
	defer steady.Close()
	h := &history{rdb: b.rdb, watch: &stopwatch{rdb: b.rdb, ours: ours, steady: steady}}
	require.NoError(t, h.watch.begin(t.Context()))
	slow := func(name string) {
		of := *b.rdb.Options()
		of.ClientName = name
		client := redis.NewClient(&of)
		defer client.Close()
		client.AddHook(h.watch)
		require.NoError(t, client.Eval(t.Context(), `
			local n = 0
			for i = 1, 10000000 do n = n + i % 7 end
			return 1`, nil).Err())
	}
	slow("another")
	_, err := h.look("first")
	require.NoError(t, err)
	require.Zero(t, h.over)
	h.watch.turns *= 10 // so that it stands in the SLOWLOG on a machine that has become faster, too
	slow(ours)
	worst, err := h.look("second")
	require.NoError(t, err)
	require.GreaterOrEqual(t, worst, 12*time.Millisecond)
	require.Equal(t, 1, h.over)
	require.Equal(t, "second", h.when)
	require.NotEmpty(t, h.watch.same, "the same work was done behind it")
	require.Zero(t, h.watch.owed)
	_, err = h.look("third")
	require.NoError(t, err)
	require.Equal(t, 1, h.over, "what was seen is not seen again")
	require.Zero(t, h.held)

	h.watch.slow = []slowCommand{{logged: 30 * time.Millisecond, cpu: 2 * time.Millisecond}, {logged: 3 * time.Millisecond, cpu: 30 * time.Millisecond}}
	worst, err = h.look("fourth")
	require.NoError(t, err)
	require.Equal(t, 3*time.Millisecond, worst)
	require.Equal(t, []int{1, 1}, []int{h.over, h.held})
	require.Contains(t, h.slow[len(h.slow)-1], "of which Redis was run for 2ms at most")

	h.watch.same = []slowCommand{{logged: 9 * time.Millisecond, cpu: 9 * time.Millisecond}}
	require.Empty(t, h.heldUp(), "the machine takes no work as long as one command of ours took")
	h.watch.same = append(h.watch.same, slowCommand{logged: 12 * time.Millisecond, cpu: 13 * time.Millisecond})
	require.Contains(t, h.heldUp(), "too: 1 times, up to 12 ms")
}

func TestWhatIsSeenMoreOftenIsToldFromChance(t *testing.T) {
	for _, row := range []struct {
		seen, other int
		more        bool
	}{
		{0, 0, false}, {1, 0, true}, {1, 1, false}, {1, 9, false},
		{6, 1, false}, {7, 1, true}, // 8 and 9 of 128 and 256 cases
		{8, 2, false}, {9, 2, true}, // 56 and 67 of 1,024 and 2,048
		{60, 40, true}, {55, 45, false},
	} {
		require.Equal(t, row.more, moreOften(row.seen, row.other), "%d against %d", row.seen, row.other)
	}
}
