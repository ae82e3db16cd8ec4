package main

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// In turns each does its work once, and none has always the same before it.
func TestWorksTakeTurns(t *testing.T) {
	const turns = 100
	var order []int
	work := func(number, most int) workInTurns {
		return workInTurns{func(context.Context) error { order = append(order, number); return nil }, most}
	}
	took, err := inTurns(t.Context(), time.Hour, work(0, turns), work(1, turns), work(2, turns), work(3, 1))
	require.NoError(t, err)
	require.Equal(t, []int{turns, turns, turns, 1}, []int{len(took[0]), len(took[1]), len(took[2]), len(took[3])})
	order = slices.DeleteFunc(order, func(n int) bool { return n == 3 })
	before := make(map[[2]int]bool)
	for turn := range slices.Chunk(order, 3) {
		require.ElementsMatch(t, []int{0, 1, 2}, turn)
		before[[2]int(turn[:2])], before[[2]int(turn[1:])] = true, true
	}
	require.Len(t, before, 6, "each has come before each other")

	slept := workInTurns{do: func(context.Context) error { time.Sleep(time.Millisecond); return nil }}
	took, err = inTurns(t.Context(), 10*time.Millisecond, slept, slept)
	require.NoError(t, err)
	require.NotEmpty(t, took[0])
	require.Len(t, took[1], len(took[0]))
	require.GreaterOrEqual(t, slices.Min(took[1]), time.Millisecond)
	failing := workInTurns{do: func(context.Context) error { return io.ErrNoProgress }}
	_, err = inTurns(t.Context(), time.Hour, slept, failing)
	require.ErrorIs(t, err, io.ErrNoProgress)
}

// What is told of some rounds, or calls, leaves them in the order in which they were:
// by that they are compared with others.
func TestFiguresLeaveTheOrder(t *testing.T) {
	r := results{"a": {3, 1, 2}, "b": {6, 2, 4}}
	require.Equal(t, 2.0, median(r["a"]))
	_ = spread(r["a"], "x")
	require.Equal(t, []float64{2, 2, 2}, r.over("b", "a"))
	took := []time.Duration{3, 1, 2}
	require.Equal(t, time.Duration(2), quantile(took, 0.5))
	require.Equal(t, []time.Duration{3, 1, 2}, took)
}

func TestFiguresOfTurns(t *testing.T) {
	ms := func(all ...float64) (took []time.Duration) {
		for _, v := range all {
			took = append(took, time.Duration(v*1e6))
		}
		return took
	}
	require.Equal(t, 2000.0, p50(ms(9, 1, 2)))
	require.Equal(t, 200.0, perSecond(ms(1, 9)))
	require.Equal(t, 500.0, more(ms(1.5, 8.4, 2.7), ms(1, 8, 2)), "however long both take")
}
