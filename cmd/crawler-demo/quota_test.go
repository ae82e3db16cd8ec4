package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

func TestAdmits(t *testing.T) {
	begin := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) // the edge of a window
	const s = time.Second
	for _, row := range []struct {
		limits []string
		span   time.Duration
		calls  int
	}{
		{[]string{"500/5s"}, 4900 * time.Millisecond, 500},
		{[]string{"500/5s"}, 5 * s, 1000},
		{[]string{"500/5s"}, 15300 * time.Millisecond, 2000},
		{[]string{"500/5s:fixed-window"}, 5 * s, 1000},
		{[]string{"10/1s:gcra,burst=5"}, 2 * s, 25},
		{[]string{"10/1s", "15/1h"}, 5 * s, 15},
		{[]string{"10/1s", "3/1s:sliding-log,scope=search"}, 0, 10},
		{[]string{"10/1s:sliding-log,scope=core", "3/1s:sliding-log,scope=search"}, 0, 10},
	} {
		var limits []ration.Limit
		for _, text := range row.limits {
			l, err := ration.ParseLimit(text)
			require.NoError(t, err)
			limits = append(limits, l)
		}
		require.Equal(t, row.calls, admits(covering(limits), begin, row.span), "%v in %v", row.limits, row.span)
	}
	require.Equal(t, ration.PerHour(15), deciding([]ration.Limit{ration.PerSecond(10), ration.PerHour(15)}, begin, 5*s))
}

func TestCallExactlyAWindowEarlierIsNotInTheWindow(t *testing.T) {
	require.Equal(t, []int{1, 2, 2, 1}, inWindow([]int64{0, 999_999, 1_000_000, 3_000_000}, time.Second))
}
