package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/harnesstest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(crowdEnv); order != "" {
		main()
		return
	}
	redistest.Main(m)
}

// The tables rest on this: each contender counts on the token that it is given and on no other, and stops at the limit.
func TestContendersKeepTheirTokensApart(t *testing.T) {
	const limit, keys = 5, 3
	for _, p := range []peer{incr, multi, redisRate, rueidisOne, timeRate} {
		t.Run(p.name, func(t *testing.T) {
			asking, stop, err := p.start(setup{addr: redistest.Start(t).Addr, limit: ration.PerHour(limit), keys: keys})
			require.NoError(t, err)
			defer stop()
			for key := range keys {
				for n := range limit + 2 {
					again, err := asking(t.Context(), key)
					require.NoError(t, err)
					require.Equal(t, n < limit || p.unlimited, again == 0, "call %d of token %d", n+1, key)
				}
			}
		})
	}
}

// ration chooses the token: of a pool all quota is had, and no more.
func TestAPoolIsSpentWhole(t *testing.T) {
	for _, p := range []peer{rationOne, memory} {
		asking, stop, err := p.start(setup{addr: redistest.Start(t).Addr, limit: ration.PerHour(5), keys: 3})
		require.NoError(t, err)
		defer stop()
		for n := range 17 {
			again, err := asking(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, n < 15, again == 0, "call %d", n+1)
		}
	}
}

func TestMostInAWindowTellsExactOnesFromBuckets(t *testing.T) {
	addr := redistest.Start(t).Addr
	most, err := mostInAWindow(t.Context(), rationOne, addr)
	require.NoError(t, err)
	require.InDelta(t, mostLimit.Max, most, 2, "a call counts a little later than its slot, by up to the margin and what the machine adds")
	most, err = mostInAWindow(t.Context(), redisRate, addr)
	require.NoError(t, err)
	require.Greater(t, most, mostLimit.Max*3/2)
}

// runFleet itself demands that the judge counts what the workers count.
func TestEveryMethodReachesTheJudge(t *testing.T) {
	addr := redistest.Start(t).Addr
	for _, m := range methods {
		r, err := runFleet(t.Context(), m, config{fleet: 1500 * time.Millisecond}, addr)
		require.NoError(t, err, m.title)
		require.Equal(t, fleetLimit.Max, r.accepted, m.title)
		switch {
		case strings.HasPrefix(m.title, "**ration"):
			require.Zero(t, r.refused)
			require.LessOrEqual(t, r.most, fleetLimit.Max)
			require.Positive(t, r.requests)
		case m.title == "no throttling":
			require.Positive(t, r.refused)
			require.Zero(t, r.requests)
		}
	}
}

func TestTheTablesAreWrittenAndShown(t *testing.T) {
	readme := filepath.Join(t.TempDir(), "page.md")
	var marks strings.Builder
	for _, one := range tables {
		marks.WriteString("<!-- " + one.name + " -->\nold\n<!-- /" + one.name + " -->\n")
	}
	require.NoError(t, os.WriteFile(readme, []byte(marks.String()), 0o600))
	page := harnesstest.Page(t, compare, "-rounds 1 -each 10ms -fleet 1s -crowds 2x20 -wait 1s -tables speed,crowds,memory,transport -readme "+readme,
		"go -C benchmarks run . -crowds 2x20 -each 10ms -fleet 1s -rounds 1 -tables speed,crowds,memory,transport -wait 1s")
	require.NotRegexp(t, `NaN|Inf`, page)
	shown, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(shown), "old"), "of the fleet's table alone")
	for _, title := range []string{"**ration**, with a deadline", "redis_rate through rueidis", "SlidingLog, one call at a time", "**ration.Transport**"} {
		require.Contains(t, page, title)
		require.Contains(t, string(shown), title)
	}
}

func TestBadCommandLines(t *testing.T) {
	harnesstest.Refuses(t, compare, [][2]string{
		{"-tables speeed", "there are fleet, speed"}, {"-rounds 0", "-rounds is 0"}, {"-crowds 3", "it must be like 8x1000"},
	})
}

func TestPossible(t *testing.T) {
	require.Equal(t, 2*crowdTokens*crowdLimit.Max, possible(crowdLimit.Window+crowdLimit.DefaultMargin()))
	require.Equal(t, "1.07", perCall(107, 100))
	require.Equal(t, "292 ns", micros(0.292))
	require.Equal(t, 3.0, harness.Median([]float64{9, 1, 3}))
}
