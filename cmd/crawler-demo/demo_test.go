package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// The judge is on the simulated provider, and Redis counts the commands too.
func TestDemoAsAFleetIsNotRefused(t *testing.T) {
	server := redistest.Start(t)
	before := server.Commands(t)
	a := &app{demo: demoSize{tokens: 2, limit: ration.Limit{Max: 100, Window: 2 * time.Second}, spends: 2 * time.Second, users: 36}}
	status, stdout, stderr := run(t, a, "-redis", "redis://"+server.Addr, "-processes", "2", "-workers", "16", "-json")
	s := parseSummary(t, stdout)
	require.Equal(t, []int{s.Requests, 0, 0}, []int{s.Judge.Accepted + s.Judge.Refused, s.Failed, s.Left}, stderr)
	// Redis counts scripts only; the command also what opens a connection.
	scripts := server.Commands(t) - before
	require.GreaterOrEqual(t, s.Commands, scripts)
	require.LessOrEqual(t, s.Commands, scripts+40)
	keys, err := server.Client(t).Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Empty(t, keys, "the demo leaves nothing behind")
	if status == exitTooBusy {
		t.Skip(s.Verdict)
	}
	require.Zero(t, status, stderr)
	require.Contains(t, s.Verdict, "PASS: 0 refused")
	require.LessOrEqual(t, s.Judge.MaxInWindow, 100)
	require.GreaterOrEqual(t, s.QuotaUsed, 0.98)
	require.LessOrEqual(t, s.QuotaUsed, 1.0)
	require.Len(t, s.Tokens, 2)
	require.Equal(t, s.Requests, s.Tokens[0].Calls+s.Tokens[1].Calls)
}

func TestDemoInOneProcessWritesWhatItFetched(t *testing.T) {
	out := filepath.Join(t.TempDir(), "pages.jsonl")
	inFakeTime(t, 0, &app{demo: demoSize{tokens: 2, limit: ration.Limit{Max: 20, Window: time.Second}, users: 20}}, func(t *testing.T, a *app) {
		status, stdout, stderr := run(t, a, "-workers", "8", "-out", out)
		require.Zero(t, status, stderr)
		require.Contains(t, stdout, "PASS: 0 refused, 100.0 % of the quota used\n")
	})
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, 40, strings.Count(string(data), "\n"))
	picture, err := os.ReadFile(out + ".svg")
	require.NoError(t, err)
	require.Contains(t, string(picture), "</svg>")

	status, _, stderr := run(t, &app{demo: fullDemo}, "-out", out)
	require.Equal(t, exitBadInput, status)
	require.Contains(t, stderr, "name a new file")
}

// The demo ends when its time is up, in the middle of its pages: 400 calls at once and 400
// more after each 5.25 s.
func TestDemoEndsByTime(t *testing.T) {
	inFakeTime(t, 0, &app{demo: fullDemo}, func(t *testing.T, a *app) {
		status, stdout, stderr := run(t, a, "-json")
		s := parseSummary(t, stdout)
		require.Zero(t, status, stderr)
		require.Equal(t, "PASS: 0 refused, 100.0 % of the quota used", s.Verdict)
		require.Equal(t, []int{2400, 2400, 0}, []int{s.Requests, s.OK, s.Left})
		require.InDelta(t, 7.75, s.Elapsed, 0.1)
	})
}

// judged is what comes of a demo of 100 calls in which so many were sent, and of which the
// provider got so many.
func judged(sent, got int, late time.Duration) *summary {
	l := ration.Limit{Max: 100, Window: 5 * time.Second}
	p := plan{margin: demoMargin, options: options{limits: []ration.Limit{l}, workers: 1, processes: 1}, secrets: []string{"a-secret"},
		judge: &simulated.Provider{Limit: 100, Window: 5 * time.Second}}
	for range got {
		r := httptest.NewRequest("GET", p.judge.StartURLs("http://judge")[0], nil)
		r.Header.Set("Authorization", "Bearer a-secret")
		p.judge.ServeHTTP(httptest.NewRecorder(), r)
	}
	c := newCrawl(new(app), p, new(outFile))
	refused := max(got-100, 0)
	for i := range sent {
		c.stats.add([]send{{Sent: 1, Refused: i < refused}})
	}
	c.stats.fetched = sent - refused
	return c.summarise(false, nil, late)
}

func TestDemoIsNotJudgedOnABusyMachine(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		sent, got int
		late      time.Duration
		exit      int
		verdict   string
	}{
		{100, 100, 0, exitDone, "PASS: 0 refused, 100.0 % of the quota used"},
		{100, 100, 900 * ms, exitDone, "PASS: 0 refused, 100.0 % of the quota used"},
		{99, 99, 0, exitDone, "PASS: 0 refused, 99.0 % of the quota used"}, // one lost costs one
		{97, 97, 125 * ms, exitNotDone, "FAIL: only 97.0 % of the quota used, "},
		{97, 97, 126 * ms, exitTooBusy, "TOO BUSY: this machine was up to 126ms late, too busy to judge: only 97.0 % of the quota used, "},
		{103, 103, 20 * ms, exitNotDone, "FAIL: 3 refused"},
		{103, 103, 300 * ms, exitTooBusy, "TOO BUSY: this machine was up to 300ms late, too busy to judge: 3 refused"},
		{100, 99, 300 * ms, exitNotDone, "FAIL: the provider counted 99 calls, "}, // no machine loses calls
	} {
		s := judged(row.sent, row.got, row.late)
		require.Equal(t, row.exit, s.exit, row.verdict)
		require.True(t, strings.HasPrefix(s.Verdict, row.verdict), s.Verdict)
	}
}
