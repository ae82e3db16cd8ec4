package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// TestMain runs the tests or, as a process that they have started, one of a crowd's.
func TestMain(m *testing.M) {
	if order := os.Getenv(crowdEnv); order != "" {
		if err := callInCrowd(order, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	redistest.Main(m)
}

func TestACrowdIsJudgedByWhenItsCallsLeft(t *testing.T) {
	for _, deadline := range []bool{false, true} {
		r, err := measureCrowd(t.Context(), redistest.Start(t).Addr, crowd{processes: 2, callers: 50, deadline: deadline}, 1500*time.Millisecond)
		require.NoError(t, err)
		require.Greater(t, r.calls, 1000)
		require.LessOrEqual(t, r.calls, possible(1500*time.Millisecond))
		require.LessOrEqual(t, r.most, crowdLimit.Max)
		require.Positive(t, r.micros)
		require.Positive(t, r.scripts)
	}
	require.Equal(t, 6*20_000, possible(12*time.Second))
}

func TestParseCrowds(t *testing.T) {
	all, err := parseCrowds("8x1000, 2x5")
	require.NoError(t, err)
	require.Equal(t, []crowd{{8, 1000, false}, {8, 1000, true}, {2, 5, false}, {2, 5, true}}, all)
	none, err := parseCrowds("")
	require.NoError(t, err)
	require.Empty(t, none)
	for _, bad := range []string{"8", "0x5", "8x", "1000x1000"} {
		_, err := parseCrowds(bad)
		require.ErrorContains(t, err, bad)
	}
}
