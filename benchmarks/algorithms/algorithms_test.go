package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/harnesstest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func small() config {
	return config{max: 60, window: time.Minute, burst: 10, margin: time.Second, large: 100, workers: 4, length: 5 * time.Millisecond, rounds: 1, demands: 10}
}

// No algorithm is forgotten, and each is measured as what its row says.
func TestEveryAlgorithmHasARow(t *testing.T) {
	var seen []ration.Algorithm
	for _, c := range contestants(small()) {
		seen = append(seen, c.limit.Algorithm)
		parsed, err := ration.ParseLimit("60/1m:" + c.name())
		require.NoError(t, err, c.title)
		parsed.Burst = c.limit.Burst
		require.Equal(t, c.limit, parsed, c.title)
	}
	require.Equal(t, limit.Algorithms(), slices.Compact(seen))
}

func TestMostInAnyWindow(t *testing.T) {
	const w = 10 * time.Second
	for _, row := range []struct {
		grants []grant
		want   int
	}{
		{nil, 0},
		{[]grant{{0, 3}, {w, 4}}, 4}, // a window apart: not in one
		{[]grant{{0, 3}, {w - 1, 4}}, 7},
		{[]grant{{w, 4}, {1, 3}}, 7}, // in no order
		{[]grant{{0, 1}, {w / 2, 1}, {w, 1}, {w + w/2 - 1, 1}, {3 * w, 2}}, 3},
		{[]grant{{5, 2}, {5, 2}, {5, 2}}, 6},
	} {
		require.Equal(t, row.want, mostIn(row.grants, w), "%v", row.grants)
	}
}

// The demands find the worst that there is: what each algorithm promises not to
// exceed is what they get.
func TestDemandsGetWhatIsPromised(t *testing.T) {
	for _, c := range contestants(small()) {
		t.Run(c.title, func(t *testing.T) {
			most, name, err := worst(t.Context(), c.limit, 30)
			require.NoError(t, err)
			require.Equal(t, c.promised, most-c.limit.Max, name)
		})
	}
}

func TestAQueueGetsTheQuota(t *testing.T) {
	for _, c := range contestants(small()) {
		share, err := queue(t.Context(), c.limit)
		require.NoError(t, err)
		require.GreaterOrEqual(t, share, 0.98, c.title) // SlidingWindow and SubWindows round
		require.LessOrEqual(t, share, 1.1, c.title)
	}
}

// What is read from Redis is all of a budget but the answers.
func TestRedisBytesAreThoseOfTheBudget(t *testing.T) {
	server := redistest.Start(t)
	rdb := harness.NewClient(server.Addr, nil)
	defer rdb.Close()
	one := ration.PerHour(1000)
	bytes, err := redisBytes(t.Context(), rdb, one, 1000, 3)
	require.NoError(t, err)
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	var want int64
	for _, key := range keys {
		size, err := rdb.MemoryUsage(t.Context(), key, 0).Result()
		require.NoError(t, err)
		want += size
	}
	require.Equal(t, want, bytes)
	entries, err := rdb.ZCard(t.Context(), "ration:v2:{algorithms}:log:"+accountID).Result()
	require.NoError(t, err)
	require.Equal(t, int64(1000), entries)
}

// A MemoryStore says that it takes 24 bytes of an entry, in a slice that grows.
func TestMemoryBytesAreThoseOfTheEntries(t *testing.T) {
	bytes, err := memoryBytes(t.Context(), ration.PerHour(5000), 5000)
	require.NoError(t, err)
	require.InDelta(t, 24*5000, bytes, 30_000)
}

// Where the quota is spent each booking is made where one becomes free.
func TestSpentIsSpent(t *testing.T) {
	kept := new(ration.MemoryStore)
	one := ration.PerHour(100)
	work, err := booker(t.Context(), kept, one, true)
	require.NoError(t, err)
	for range 50 {
		require.NoError(t, work(t.Context()))
	}
	accounts, err := account(one)
	require.NoError(t, err)
	usage, err := kept.Usage(t.Context(), store.UsageRequest{Budget: budgetName, Accounts: accounts, Now: begin.Add(149 * 36 * time.Second)})
	require.NoError(t, err)
	require.Equal(t, 100, usage[0].Limits[0].Used+usage[0].Limits[0].Ahead)
}

func TestFigures(t *testing.T) {
	log, counter := contestant{}, contestant{limit: ration.Limit{Algorithm: ration.GCRA}}
	for _, row := range []struct{ got, want string }{
		{percent(0, 5000), "0"}, {percent(-3, 5000), "0"}, {percent(5000, 5000), "100 %"}, {percent(99, 5000), "1.98 %"}, {percent(4999, 5000), "99.98 %"},
		{log.each(565_952, 5000), "113"}, {log.each(93_000, 5000), "18.6"}, {counter.each(400, 5000), "–"},
		{harness.Rounded(115_432), "120,000"}, {harness.Rounded(16_449), "16,000"}, {harness.Rounded(73), "73"}, {harness.Rounded(999), "1,000"},
		{harness.Group(1_234_567), "1,234,567"}, {harness.Group(12), "12"},
	} {
		require.Equal(t, row.want, row.got)
	}
	require.Equal(t, 3.0, harness.Median([]float64{9, 1, 3}))
	require.Equal(t, []float64{0.5, 2}, harness.Over([]float64{1, 4}, []float64{2, 2}))
}

func TestCompareWritesTheTables(t *testing.T) {
	page := harnesstest.Page(t, compare, "-max 60 -window 1m -burst 10 -large 100 -workers 4 -length 5ms -rounds 1 -demands 2",
		"go -C benchmarks run ./algorithms -burst 10 -demands 2 -large 100 -length 5ms -max 60 -rounds 1 -window 1m0s -workers 4")
	for _, c := range contestants(small()) {
		rows := 2
		if c.isLog() {
			rows = 3
		}
		require.Equal(t, rows, strings.Count(page, "\n| "+c.title+" | "), c.title)
		require.Equal(t, 1, strings.Count(page, "\n- "+c.title+": "), c.title)
	}
}

// That a promise is broken is an error, and no table.
func TestABrokenPromiseIsAnError(t *testing.T) {
	server := redistest.Start(t)
	c := contestants(small())[0]
	c.promised = -1
	_, err := measure(t.Context(), small(), []contestant{c}, server.Addr, io.Discard)
	require.ErrorContains(t, err, "0 units over Max in one window")
}

func TestBadCommandLines(t *testing.T) {
	harnesstest.Refuses(t, compare, [][2]string{})
}
