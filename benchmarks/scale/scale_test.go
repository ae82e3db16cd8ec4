package main

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/harnesstest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

func small() config {
	return config{nodes: 3, accounts: 60, budgets: []int{1, 6}, workers: 8, rounds: 1, each: 20 * time.Millisecond, tokens: 1, wait: time.Second}
}

func TestEveryAccountIsDealtOnce(t *testing.T) {
	for _, spent := range []bool{false, true} {
		budgets, err := deal(1000, 7, spent)
		require.NoError(t, err)
		require.Len(t, budgets, 7)
		seen := make(map[string]bool)
		for i, in := range budgets {
			require.Equal(t, "scale-"+strconv.Itoa(i), in.name)
			require.InDelta(t, 1000/7, in.accounts.Len(), 40)
			for j := range in.accounts.Len() {
				account := in.accounts.At(j)
				require.False(t, seen[account.ID])
				seen[account.ID] = true
				require.Equal(t, spent, account.Limits[0].Max == few)
			}
		}
		require.Len(t, seen, 1000)
	}
}

// slots is the number of slots of every Redis Cluster.
const slots = 16384

// Each budget is on the node that its name says, with all its accounts.
func TestBudgetsAreSpreadOverTheCluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	s := newSite(8, cluster.Addrs()...)
	defer s.close()
	budgets, err := deal(60, 6, true)
	require.NoError(t, err)
	require.NoError(t, prepare(t.Context(), small(), s, budgets, true))

	holders := make(map[int]bool)
	for _, in := range budgets {
		key := "ration:v2:{" + in.name + "}"
		slot, err := s.nodes[0].ClusterKeySlot(t.Context(), key).Result()
		require.NoError(t, err)
		for i, node := range s.nodes {
			logs, err := node.Keys(t.Context(), key+":log:*").Result()
			require.NoError(t, err)
			if i != int(slot)*len(s.nodes)/slots {
				require.Empty(t, logs, "%s on node %d", in.name, i)
				continue
			}
			require.Len(t, logs, in.accounts.Len(), in.name)
			holders[i] = true
		}
	}
	require.Len(t, holders, 3, "no node was left out")
	require.NoError(t, s.empty(t.Context()))
	for _, node := range s.nodes {
		require.Zero(t, node.DBSize(t.Context()).Val())
	}
}

func TestWhatIsSaidToBeSpentIsSpent(t *testing.T) {
	s := newSite(8, redistest.Start(t).Addr)
	defer s.close()
	budgets, err := deal(20, 2, false)
	require.NoError(t, err)
	require.NoError(t, prepare(t.Context(), small(), s, budgets, false))
	require.ErrorContains(t, prepare(t.Context(), small(), s, budgets, true), "not spent")
}

// A sample is of what was booked meanwhile, and by scripts of so many bookings.
func TestASampleIsWhatTheServersTell(t *testing.T) {
	server := redistest.Start(t)
	s := newSite(8, server.Addr)
	defer s.close()
	for _, combined := range []bool{false, true} {
		got, err := once(t.Context(), small(), setting{s, 1, combined}, false)
		require.NoError(t, err)
		require.Positive(t, got.perSecond)
		require.Positive(t, got.script)
		require.Equal(t, 1.0, got.most)
		require.Positive(t, got.busy)
		// Of one core: it is single-threaded, give or take a tick of its clocks.
		require.Less(t, got.busy, 1.5)
		require.InDelta(t, got.busy, got.perSecond*got.cpu/1e6, 1e-6)
		if combined {
			require.Greater(t, got.batch, 1.0)
			require.LessOrEqual(t, got.batch, 8.0)
		} else {
			require.Equal(t, 1.0, got.batch)
		}
	}
}

func TestNewSample(t *testing.T) {
	before := []nodeUsage{{time.Second, 10, time.Second}, {0, 0, 0}}
	after := []nodeUsage{{time.Second + 30*time.Millisecond, 110, time.Second + 20*time.Millisecond}, {10 * time.Millisecond, 100, 5 * time.Millisecond}}
	require.Equal(t, sample{perSecond: 2000, batch: 5, cpu: 40, script: 25, most: 0.75, busy: 0.06},
		newSample(1000, 500*time.Millisecond, before, after))
}

// A script that Redis does not know was no booking.
func TestScriptsThatFailedAreNotCounted(t *testing.T) {
	s := newSite(1, redistest.Start(t).Addr)
	defer s.close()
	node := s.nodes[0]
	require.Error(t, node.EvalSha(t.Context(), strings.Repeat("0", 40), nil).Err())
	sha, err := node.ScriptLoad(t.Context(), "return 1").Result()
	require.NoError(t, err)
	require.NoError(t, node.EvalSha(t.Context(), sha, nil).Err())
	all, err := s.usage(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1.0, all[0].scripts)
}

func TestMedians(t *testing.T) {
	require.Equal(t, sample{perSecond: 2, batch: 3, cpu: 5, script: 2, most: 8, busy: 1},
		medians([]sample{{1, 9, 5, 2, 8, 0}, {2, 3, 7, 1, 9, 1}, {3, 2, 4, 3, 7, 2}}))
}

// What Redis allocates is about what it says of the keys: of a sorted set it leaves
// out what the allocator rounds up, and of a stream it only estimates the index.
func TestMemoryIsThatOfFullWindows(t *testing.T) {
	s := newSite(1, redistest.Start(t).Addr)
	defer s.close()
	cfg := small()
	cfg.tokens = 4
	all, err := measureMemory(t.Context(), cfg, s, io.Discard)
	require.NoError(t, err)
	for _, m := range all {
		store := &ration.RedisStore{Client: s.client}
		require.NoError(t, fill(t.Context(), store, ration.PerHour(window).Using(m.log), "one"))
		keys, err := s.nodes[0].Keys(t.Context(), "*"+ration.NewToken("one").AccountID()+"*").Result()
		require.NoError(t, err)
		var used int64
		for _, key := range keys {
			used += s.nodes[0].MemoryUsage(t.Context(), key, 0).Val()
		}
		require.Greater(t, m.token, 0.75*float64(used), "%v", m.log)
		require.Less(t, m.token, 1.5*float64(used), "%v", m.log)
		require.NoError(t, s.empty(t.Context()))
	}
}

// A report that is easy to reckon with.
func easy() report {
	one, three := &site{name: "one server"}, &site{name: "a Cluster of 3"}
	return report{
		rows: []row{
			{setting{one, 1, false}, sample{9000, 1, 50, 40, 1, 0.45}, sample{8000, 1, 40, 30, 1, 0.4}},
			{setting{one, 1, true}, sample{200_000, 60, 2, 1, 1, 0.4}, sample{100_000, 50, 4, 3, 1, 0.4}},
			{setting{three, 12, true}, sample{60_000, 5, 10, 9, 0.42, 0.3}, sample{50_000, 4.04, 20, 18, 0.42, 0.3}},
		},
		memory: []memory{{ration.SlidingLog, 600_000}, {ration.StreamLog, 50_000}},
	}
}

func TestTables(t *testing.T) {
	page := document(small(), easy(), harness.Run{Command: "go run it", Redis: "7.0.15", Begun: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	for _, want := range []string{
		"60 accounts in one budget",
		"\n    go run it\n",
		"2026-01-02 03:04 UTC, go1.",
		"| one server | 1 | one by one | 1.0 / 1.0 | 9,000 / 8,000 | 50.0 / 40.0 | 40.0 / 30.0 | 100 % / 100 % | 45 % / 40 % |\n",
		"| a Cluster of 3 | 12 | combined | 5.0 / 4.0 | 60,000 / 50,000 | 10.0 / 20.0 | 9.0 / 18.0 | 42 % / 42 % | 30 % / 30 % |\n",
		// 1 s / 50 µs; half of it; over 5,000 / 3,600 s; times 600 kB.
		"| one by one, at worst | 50.0 | 20,000 | 10,000 | 7,200 | 4.3 GB |\n",
		"| combined, at worst | 20.0 | 50,000 | 25,000 | 18,000 | 11 GB |\n",
		"| combined, at best | 4.0 | 250,000 | 130,000 | 90,000 | 54 GB |\n",
		"| SlidingLog | 600,000 | 120.0 |\n",
		// 138,889 a second of 50 µs are 6.9 cores, half of which are 13.9.
		"| 100,000 | 138,889 | 14 | 6 | 60 GB | 5.0 GB |\n",
		"| 100 | 139 | 1 | 1 | 60 MB | 5.0 MB |\n",
	} {
		require.Contains(t, page, want)
	}
}

func TestFigures(t *testing.T) {
	for _, row := range []struct{ got, want string }{
		{harness.Rounded(115_432), "120,000"}, {harness.Rounded(999), "1,000"}, {harness.Rounded(73), "73"}, {harness.Rounded(0.4), "0"},
		{harness.Group(1_234_567), "1,234,567"}, {harness.Group(12), "12"},
		{bytes(48_000), "48 kB"}, {bytes(8.7e6), "8.7 MB"}, {bytes(610e9), "610 GB"}, {bytes(1.3e12), "1.3 TB"},
		{nodes(10_000, 50), "1"}, {nodes(10_001, 50), "2"},
	} {
		require.Equal(t, row.want, row.got)
	}
}

func TestScaleWritesTheTables(t *testing.T) {
	page := harnesstest.Page(t, scale, "-accounts 60 -budgets 1,6 -workers 4 -rounds 1 -each 10ms -tokens 1 -crowds 2x20 -wait 1s",
		"go -C benchmarks run ./scale -accounts 60 -budgets 1,6 -crowds 2x20 -each 10ms -rounds 1 -tokens 1 -wait 1s -workers 4")
	for _, on := range []string{"one server", "a Cluster of 3"} {
		for _, budgets := range []string{"1", "6"} {
			for _, how := range []string{"one by one", "combined"} {
				require.Regexp(t, `(?m)^\| `+on+` \| `+budgets+` \| `+how+` \|`, page)
			}
		}
	}
	require.Len(t, regexp.MustCompile(`(?m)(^\|.*\n)+`).FindAllString(page, -1), 5)
	require.NotRegexp(t, `NaN|Inf`, page)
}

func TestBadCommandLines(t *testing.T) {
	harnesstest.Refuses(t, scale, [][2]string{})
}
