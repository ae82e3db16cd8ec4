package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harnesstest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestEveryAccountIsDealtOnce(t *testing.T) {
	budgets, err := deal(1000, 7, true)
	require.NoError(t, err)
	require.Len(t, budgets, 7)
	seen := make(map[string]bool)
	for _, in := range budgets {
		require.InDelta(t, 1000/7, in.accounts.Len(), 40)
		for i := range in.accounts.Len() {
			require.False(t, seen[in.accounts.At(i).ID])
			seen[in.accounts.At(i).ID] = true
		}
	}
	require.Len(t, seen, 1000)
}

func TestTables(t *testing.T) {
	r := report{
		rows: []row{
			{1, false, sample{9000, 1, 50}, sample{8000, 1, 40}},
			{12, true, sample{60_000, 5, 10}, sample{50_000, 4.04, 20}},
		},
		memory: map[ration.Algorithm]float64{ration.SlidingLog: 600_000, ration.StreamLog: 50_000},
	}
	page := r.tables()
	for _, want := range []string{
		"| 1 | one by one | 1.0 / 1.0 | 9,000 / 8,000 | 50.0 / 40.0 |\n",
		"| 12 | combined | 5.0 / 4.0 | 60,000 / 50,000 | 10.0 / 20.0 |\n",
		// 1 s / 50 µs; half of it; over 5,000 / 3,600 s; times 600 kB.
		"| one by one, at worst | 50.0 | 20,000 | 10,000 | 7,200 | 4.3 GB |\n",
		"| SlidingLog | 600,000 | 120.0 |\n",
		// 138,889 a second of 50 µs are 6.9 cores, half of which are 13.9.
		"| 100,000 | 138,889 | 14 | 6 | 60 GB | 5.0 GB |\n",
	} {
		require.Contains(t, page, want)
	}
}

func TestCapacityWritesTheTables(t *testing.T) {
	page := harnesstest.Page(t, capacity, "-accounts 60 -budgets 1,6 -workers 4 -rounds 1 -each 10ms -tokens 1",
		"go -C benchmarks run ./capacity -accounts 60 -budgets 1,6 -each 10ms -rounds 1 -tokens 1 -workers 4")
	require.NotRegexp(t, `NaN|Inf`, page)
}

func TestBadCommandLines(t *testing.T) {
	harnesstest.Refuses(t, capacity, [][2]string{{"-budgets 0", "each must be from 1"}, {"-rounds 0", "-rounds is 0"}})
}
