package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
)

// The judge is on the simulated provider, and Redis counts the commands too.
func TestDemoAsAFleetIsNotRefused(t *testing.T) {
	server := redistest.Start(t)
	before := server.Commands(t)
	a := &app{demo: demoSize{tokens: 2, limit: ration.Limit{Max: 100, Window: 2 * time.Second}, windows: 2, users: 36, pages: 11}}
	status, stdout, stderr := run(t, a, "-redis", "redis://"+server.Addr, "-processes", "2", "-workers", "16", "-json")
	s := parseSummary(t, stdout)
	require.Zero(t, status, stderr)
	require.Contains(t, s.Verdict, "PASS: 0 refused")
	require.Equal(t, []int{396, 396, 0, 0}, []int{s.Requests, s.OK, s.Refused, s.Failed})
	require.Equal(t, &judgement{Accepted: 396, MaxInWindow: s.Judge.MaxInWindow}, s.Judge)
	require.LessOrEqual(t, s.Judge.MaxInWindow, 100)
	require.InDelta(t, 0.99, s.QuotaUsed, 1e-9)
	require.Len(t, s.Tokens, 2)
	require.Equal(t, 396, s.Tokens[0].Calls+s.Tokens[1].Calls)
	// Redis counts scripts only; the command also what opens a connection.
	scripts := server.Commands(t) - before
	require.GreaterOrEqual(t, s.StoreCalls, scripts)
	require.LessOrEqual(t, s.StoreCalls, scripts+40)
	keys, err := server.Client(t).Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Empty(t, keys, "the demo leaves nothing behind")
}

func TestDemoInOneProcessWritesWhatItFetched(t *testing.T) {
	out := filepath.Join(t.TempDir(), "pages.jsonl")
	a := &app{demo: demoSize{tokens: 2, limit: ration.Limit{Max: 20, Window: 500 * time.Millisecond}, windows: 1, users: 20, pages: 2}}
	status, stdout, stderr := run(t, a, "-workers", "8", "-out", out)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "PASS: 0 refused, 100.0 % of the quota used\n")
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, 40, strings.Count(string(data), "\n"))
	picture, err := os.ReadFile(out + ".svg")
	require.NoError(t, err)
	require.Contains(t, string(picture), "</svg>")

	status, _, stderr = run(t, a, "-out", out)
	require.Equal(t, exitBadInput, status)
	require.Contains(t, stderr, "name a new file")
}
