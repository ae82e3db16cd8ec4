package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
	"github.com/ration-go/ration/limit"
)

// pairings has a limit of each algorithm, and of each of its shapes.
var pairings = []string{
	"60/1s",
	"60/1s:stream-log",
	"60/1s:fixed-window",
	"60/1s:fixed-window,zone=Asia/Kathmandu",
	"60/1s:fixed-window,first-use",
	"60/1s:sliding-window",
	"60/1s:sub-windows",
	"60/1s:sub-windows,resolution=250ms",
	"60/1s:gcra,burst=30",
	"60/1s:gcra,burst=60",
	"4/1s:gcra,margin=250ms", // nothing but the margin is between one call and the next
}

// pairingDemo is one of a few windows.
func pairingDemo() *app {
	return &app{demo: demoSize{tokens: 2, limit: ration.PerSecond(60), spends: 2 * time.Second, users: 20}}
}

// requireNotRefused runs a demo whose provider counts as the limiter does.
func requireNotRefused(t *testing.T, a *app, one string, more ...string) {
	t.Helper()
	status, stdout, stderr := run(t, a, append([]string{"-limit", one, "-workers", "16", "-json"}, more...)...)
	s := parseSummary(t, stdout)
	t.Logf("%s: %s, in %.1f s", one, s.Verdict, s.Elapsed)
	require.NotEqual(t, exitBadInput, status, stderr)
	require.Zero(t, s.Judge.Refused, "the provider refused: %s", s.Verdict)
	require.Equal(t, s.Requests, s.Judge.Accepted)
	require.Zero(t, s.Failed+s.Left+s.Refused)
	require.Positive(t, s.OK)
	require.LessOrEqual(t, s.QuotaUsed, 1.0, "more than the provider can have let in")
	l, err := ration.ParseLimit(one)
	require.NoError(t, err)
	require.Equal(t, []string{l.String()}, s.Limits)
}

// requireNotRefusedAtAnyPhase runs such a demo with its log in memory and in fake time,
// beginning at several moments of a window or, under -short, in the middle of one.
func requireNotRefusedAtAnyPhase(t *testing.T, one string, more ...string) {
	t.Helper()
	phases := []time.Duration{370 * time.Millisecond, 0, 999 * time.Millisecond}
	if testing.Short() {
		phases = phases[:1]
	}
	for _, phase := range phases {
		inFakeTime(t, phase, pairingDemo(), func(t *testing.T, a *app) { requireNotRefused(t, a, one, more...) })
	}
}

// pairingsInRedis are the pairings that are tried in real time: all of them or, under
// -short, the first of every other algorithm.
func pairingsInRedis(t *testing.T) []string {
	t.Helper()
	if !testing.Short() {
		return pairings
	}
	var some []string
	seen := make(map[ration.Algorithm]bool)
	for _, one := range pairings {
		l, err := ration.ParseLimit(one)
		require.NoError(t, err)
		if !seen[l.Algorithm] && len(seen)%2 == 0 {
			some = append(some, one)
		}
		seen[l.Algorithm] = true
	}
	require.NotEmpty(t, some)
	return some
}

// To run those of one algorithm:
//
//	go test -v ./cmd/crawler-demo -run TestEveryAlgorithmPairing/InMemory/gcra
func TestEveryAlgorithmPairingIsNotRefused(t *testing.T) {
	t.Run("InMemory", func(t *testing.T) {
		for _, one := range pairings {
			t.Run(strings.ReplaceAll(one, "/", " in "), func(t *testing.T) { requireNotRefusedAtAnyPhase(t, one) })
		}
	})
	t.Run("InRedis", func(t *testing.T) {
		server := redistest.Shared(t)
		// Few at a time: what is measured is when calls arrive, which a machine that is
		// kept busy delays.
		atATime := make(chan struct{}, 3)
		for _, one := range pairingsInRedis(t) {
			t.Run(strings.ReplaceAll(one, "/", " in "), func(t *testing.T) {
				t.Parallel()
				atATime <- struct{}{}
				defer func() { <-atATime }()
				requireNotRefused(t, pairingDemo(), one, "-redis", "redis://"+server.Addr)
			})
		}
	})
	covered := make(map[ration.Algorithm]bool)
	for _, one := range pairings {
		l, err := ration.ParseLimit(one)
		require.NoError(t, err)
		covered[l.Algorithm] = true
	}
	require.Len(t, covered, len(limit.Algorithms()), "a pairing of each")
}

// A margin that keeps most of what the provider admits free is no way to pass.
func TestADemoIsJudgedByWhatItsProviderAdmits(t *testing.T) {
	inFakeTime(t, 0, pairingDemo(), func(t *testing.T, a *app) {
		status, stdout, _ := run(t, a, "-limit", "20/1s:gcra", "-margin", "150ms", "-json")
		require.Equal(t, exitNotDone, status)
		require.Regexp(t, `^FAIL: 2[0-9]\.[0-9] % of what the provider admits used: the margin of 150ms keeps`, parseSummary(t, stdout).Verdict)
	})
}

func TestProviderCountsByTheLimit(t *testing.T) {
	for one, want := range map[string]*simulated.Provider{
		"9/3s:stream-log":                {Limit: 9, Window: 3 * time.Second, Count: simulated.CountLog},
		"9/3s:fixed-window":              {Limit: 9, Window: 3 * time.Second, Count: simulated.CountFixedWindow, Zone: time.UTC},
		"9/3s:fixed-window,first-use":    {Limit: 9, Window: 3 * time.Second, Count: simulated.CountFirstUse, Zone: time.UTC},
		"9/3s:sliding-window":            {Limit: 9, Window: 3 * time.Second, Count: simulated.CountWeighted},
		"9/3s:sub-windows":               {Limit: 9, Window: 3 * time.Second, Count: simulated.CountSubWindows, Resolution: 50 * time.Millisecond},
		"9/3s:sub-windows,resolution=1s": {Limit: 9, Window: 3 * time.Second, Count: simulated.CountSubWindows, Resolution: time.Second},
		"9/3s:gcra":                      {Limit: 9, Window: 3 * time.Second, Count: simulated.CountGCRA},
		"9/3s:gcra,burst=4":              {Limit: 9, Window: 3 * time.Second, Count: simulated.CountGCRA, Burst: 4},
	} {
		l, err := ration.ParseLimit(one)
		require.NoError(t, err)
		var got simulated.Provider
		setCounting(&got, l)
		// Not the whole: it has a lock.
		require.Equal(t, fmt.Sprint(want.Limit, want.Window, want.Count, want.Burst, want.Resolution, want.Zone),
			fmt.Sprint(got.Limit, got.Window, got.Count, got.Burst, got.Resolution, got.Zone), one)
	}
}

// longDemo is a demo of several windows.
var longDemo = demoSize{tokens: 3, limit: fullDemo.limit, spends: 15 * time.Second, users: fullDemo.users}

func TestDemoTakesAboutAsLongWithAnyLimit(t *testing.T) {
	for _, row := range []struct {
		limit string
		calls int
		lasts time.Duration // from the edge of a window on
	}{
		{"400/5s", 4800, 15750 * time.Millisecond},
		{"400/5s:fixed-window", 4800, 15 * time.Second},
		{"60/1s", 2880, 18750 * time.Millisecond},
		{"5000/1h", 15000, 0},
		{"5000/1h:gcra,burst=10", 90, 14410 * time.Millisecond},
		{"10/24h:gcra", 3, 0},
		{"400/5s:sliding-window", 3600, 15990 * time.Millisecond},
	} {
		l, err := ration.ParseLimit(row.limit)
		require.NoError(t, err)
		d, err := longDemo.withLimit(l)
		require.NoError(t, err)
		midnight := time.Date(2026, 1, 21, 0, 0, 0, 0, time.UTC)
		require.Equal(t, row.calls, d.calls(midnight), row.limit)
		require.InDelta(t, row.lasts, d.duration(midnight), float64(500*time.Millisecond), "%s: %v", row.limit, d.duration(midnight))
	}
	d, err := longDemo.withLimit(longDemo.limit)
	require.NoError(t, err)
	require.Equal(t, longDemo, d, "that of the demo changes nothing")
}

func TestBurstIsHeldBackAtTheEndOfAWindow(t *testing.T) {
	midnight := time.Date(2026, 1, 21, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		limit    string
		at, want time.Duration
	}{
		{"400/5s:fixed-window", 2 * time.Second, 0},
		{"400/5s:fixed-window", 4 * time.Second, time.Second},
		{"400/5s:fixed-window", 3040 * time.Millisecond, 0}, // 1,950 ms are needed
		{"400/5s:fixed-window", 3060 * time.Millisecond, 1940 * time.Millisecond},
		{"400/5s:sliding-window", 4 * time.Second, time.Second},
		{"400/5s:fixed-window,first-use", 4 * time.Second, 0},
		{"400/5s:sub-windows", 4 * time.Second, 0},
		{"400/24h:fixed-window,zone=Asia/Kathmandu", 18*time.Hour + 15*time.Minute - time.Second, time.Second},
	} {
		l, err := ration.ParseLimit(row.limit)
		require.NoError(t, err)
		require.Equal(t, row.want, demoSize{tokens: 3, limit: l}.startDelay(midnight.Add(row.at)), "%s at %v", row.limit, row.at)
	}
}

func TestIntroSaysHowTheProviderCounts(t *testing.T) {
	midnight := time.Date(2026, 1, 21, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct{ limit, rule, pace string }{
		{"400/5s", "allows each of 3 tokens 400 calls in any 5s, and judges.\nIt has pages without end.",
			"The quota admits 1200 at once and 1200 more every 5s: it is spent for 18.25s."},
		{"400/5s:fixed-window", "400 calls in each 5s of the clock in UTC,", "admits 1200 in each 5s of that clock: it is spent for 17.5s."},
		{"400/5s:fixed-window,first-use", "400 calls in the 5s from a first one on,", "admits 1200 at once and 1200 more every 5s:"},
		{"400/5s:sub-windows,resolution=500ms", "400 calls in 5s, counted in sub-windows of 500ms,", "1200 more every 5s: it is spent for 19.75s."},
		{"400/5s:sliding-window", "those of the 5s before weighted by", "from the next 5s of the clock on, 1200 more every 5s, evenly:"},
		{"400/5s:gcra,burst=20", "20 calls at once and one more every 12.5ms,", "admits 60 at once and 1200 more every 5s, evenly:"},
		{"400/5s:gcra", "1 call at once", "admits 3 at once"},
	} {
		l, err := ration.ParseLimit(row.limit)
		require.NoError(t, err)
		d, err := longDemo.withLimit(l)
		require.NoError(t, err)
		text := d.intro("http://127.0.0.1:1", midnight)
		require.Contains(t, text, row.rule)
		require.Contains(t, text, row.pace)
	}
}

// The plot is of calls in any window, which may be more than the limit.
func TestSummaryClaimsNoLimitOnAnyWindowThatThereIsNot(t *testing.T) {
	for one, claims := range map[string]bool{"3/1s": true, "3/1s:stream-log": true, "3/1s:fixed-window": false, "3/1s:gcra,burst=2": false} {
		l, err := ration.ParseLimit(one)
		require.NoError(t, err)
		p := plan{options: options{limits: []ration.Limit{l}, workers: 1, processes: 1}, secrets: []string{"a-secret"}}
		c := newCrawl(new(app), p, new(outFile))
		c.stats.add(0, []send{{Sent: 1_000_000}, {Sent: 1_400_000}, {Sent: 2_000_000}, {Sent: 2_100_000}})
		s := c.summarise(false, nil)
		text := s.text(c.stats)
		var svg bytes.Buffer
		chart := s.chart(c.stats)
		require.NoError(t, chart.WriteSVG(&svg))
		for _, claim := range []string{"where 3 are allowed", "; 3 are allowed"} {
			if claims {
				require.Contains(t, text, claim, one)
			} else {
				require.NotContains(t, text, claim, one)
			}
		}
		if claims {
			require.Contains(t, svg.String(), "Calls in any 1s against the limit of 3")
			continue
		}
		require.Contains(t, text, "the limit is "+one)
		require.Contains(t, svg.String(), "Calls in any 1s; the limit is "+one)
	}
}

func TestPastReachesBackAsLongAsACallCounts(t *testing.T) {
	for one, want := range map[string]time.Duration{
		"5/1h":                               time.Hour,
		"5/1h:stream-log":                    time.Hour,
		"5/1h:sliding-window":                2 * time.Hour,  // to the end of the window after it
		"5/24h:fixed-window,zone=Asia/Tokyo": 48 * time.Hour, // 25 where clocks are set
	} {
		l, err := ration.ParseLimit(one)
		require.NoError(t, err)
		p := plan{options: options{limits: []ration.Limit{l, ration.PerSecond(1)}}}
		require.Equal(t, want, p.longestCount(), one)
	}
}
