package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harnesstest"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
	"github.com/ration-go/ration/store"
)

// The command starts itself again: here that is the test.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childFlag {
		main()
		return
	}
	redistest.Main(m)
}

// small is a bench on a Redis of the test's own.
func small(t *testing.T) *bench {
	server := redistest.Start(t)
	b := newBench(config{rounds: 3, each: 20 * time.Millisecond, before: 1000, large: 2000, waiting: 50, fleet: time.Second}, server.Addr, t.Output())
	t.Cleanup(b.close)
	return b
}

// Figures of so small a run mean nothing, so that it may end with either verdict.
func TestEveryRowIsPrinted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results")
	page := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(page, []byte("as it was\n"), 0o644))
	var stdout bytes.Buffer
	args := []string{"-rounds", "1", "-each", "5ms", "-calls", "1000", "-large", "2000", "-waiting", "100", "-fleet", "1s", "-out", out, "-page", page}
	err := measure(t.Context(), args, &stdout, t.Output())
	if err != nil {
		require.ErrorIs(t, err, errNotMet)
	}
	t.Logf("%s", stdout.String())
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")[2:]
	checks := map[int]int{1: 3, 2: 1, 3: 1, 4: 1, 5: 5, 6: 1, 7: 2, 8: 3, 9: 2, 10: 2, 11: 3, 12: 5, 13: 1, 14: 28, 15: 6}
	for _, row := range rows {
		seen := 0
		for _, line := range lines {
			if strings.HasPrefix(line, fmt.Sprintf("| %d | %s: ", row.number, row.what)) {
				seen++
				require.Regexp(t, `\| (at least|at most|none)[^|]* \| (met|\*\*not met\*\*) \|`, line)
			}
		}
		require.Equal(t, checks[row.number], seen, "row %d", row.number)
	}

	document, err := os.ReadFile(filepath.Join(out, "targets.md"))
	require.NoError(t, err)
	require.Contains(t, string(document), stdout.String())
	require.Contains(t, string(document), "\n    go -C benchmarks run ./targets -calls 1000 -each 5ms -fleet 1s -large 2000 -rounds 1 -waiting 100\n")
	requireBenchmarks(t, filepath.Join(out, "bench.txt"), len(rows))
	kept, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "as it was\n", string(kept), "the page shows runs at full size only")
}

// requireBenchmarks reads the file as benchstat does.
func requireBenchmarks(t *testing.T, name string, rows int) {
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	seen := make(map[string]bool)
	for reader := benchfmt.NewReader(file, name); reader.Scan(); {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			seen[string(record.Name.Base())] = true
			require.NotEmpty(t, record.Values)
		case *benchfmt.SyntaxError:
			require.NoError(t, record)
		}
	}
	for i := range rows {
		require.True(t, seen[fmt.Sprintf("Row%d", i+1)], "Row%d in %v", i+1, seen)
	}
}

// Of two contenders of which one does the other's work and more, the slower has a
// ratio below one, and a row of it is not met.
func TestTheSlowerOfTwoIsToldFromTheOther(t *testing.T) {
	b := small(t)
	more := racer{name: "more", ready: func(context.Context) (peers.Work, error) {
		return func(ctx context.Context) error {
			for range 4 {
				if err := b.rdb.Ping(ctx).Err(); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
	speeds, err := b.speeds(t.Context(), 4, more, b.of("PING", 0))
	require.NoError(t, err)
	times, err := b.medians(t.Context(), more, b.of("PING", 0))
	require.NoError(t, err)
	for _, row := range []struct {
		check check
		met   bool
	}{
		{check{row: 1, measured: speeds.over("more", "PING"), target: atLeast(1, "x")}, false},
		{check{row: 2, measured: speeds.over("PING", "more"), target: atLeast(1, "x")}, true},
		{check{row: 3, measured: times.over("more", "PING"), target: atMost(1, "x")}, false},
		{check{row: 4, measured: times.over("PING", "more"), target: atMost(1, "x")}, true},
	} {
		require.Len(t, row.check.measured, b.rounds)
		require.Equal(t, row.met, row.check.met(), "%+v", row.check)
		r := report{checks: []check{row.check}}
		if row.met {
			require.Contains(t, r.table(), "| met |")
			require.NoError(t, r.verdict())
			continue
		}
		require.Contains(t, r.table(), "| **not met** |")
		require.ErrorIs(t, r.verdict(), errNotMet)
		require.ErrorContains(t, r.verdict(), fmt.Sprint("rows ", row.check.row))
		row.check.hindrance = "physics"
		r = report{checks: []check{row.check}}
		require.Contains(t, r.table(), "| physics |")
		require.NoError(t, r.verdict(), "what stands in the way was shown")
	}
}

// What is raced is what it says: with quota left nobody waits, and with it spent
// everybody does, behind as many calls as the row is about.
func TestContendersAreReadyAsTheirRowsSay(t *testing.T) {
	b := small(t)
	for _, of := range [][]ration.Account{
		{account("one", ration.PerHour(b.before))},
		{account("one", ration.PerHour(b.before/2)), account("two", ration.PerHour(b.before/2))},
	} {
		require.NoError(t, b.rdb.FlushAll(t.Context()).Err())
		work, err := b.spent("spent", 1, of...).ready(t.Context())
		require.NoError(t, err)
		list, kept, err := b.store(of)
		require.NoError(t, err)
		require.ErrorIs(t, peers.BookOn(kept, list, 1, 0)(t.Context()), peers.ErrRefused)
		require.NoError(t, work(t.Context()), "it is booked ahead")
		require.Equal(t, b.before+1, used(t, kept, list))
	}
	more := account("more", ration.PerHour(b.before+1))
	_, err := b.spent("spent", 1, more).ready(t.Context())
	require.ErrorContains(t, err, "not spent")

	work, err := b.free("free", 1, account("free", ration.PerHour(peers.Plenty))).ready(t.Context())
	require.NoError(t, err)
	require.NoError(t, work(t.Context()), "it does not wait")
}

func used(t *testing.T, kept ration.Store, list *store.Accounts) (units int) {
	all, err := kept.Usage(t.Context(), store.UsageRequest{Budget: peers.Budget, Accounts: list})
	require.NoError(t, err)
	for _, u := range all {
		units += u.Limits[0].Used + u.Limits[0].Ahead
	}
	return units
}

func TestTimersAndAllocationsAreCounted(t *testing.T) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	defer func() { runtime.MemProfileRate = rate }()
	before := holding(10)
	var timers []*time.Timer
	for range 70 {
		timers = append(timers, time.NewTimer(time.Hour))
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	require.Equal(t, 71.0, holding(10).timers-before.timers)
	stop()
	runtime.KeepAlive(timers)
	runtime.KeepAlive(ctx)

	var kept []*[100]byte
	n, err := allocated(t.Context(), func(context.Context) error {
		kept = append(kept[:0], new([100]byte), new([100]byte))
		return nil
	}, 1000)
	require.NoError(t, err)
	require.InDelta(t, 2, n, 0.2)
}

// The fleet's figures are the provider's, or an error.
func TestFleetIsJudged(t *testing.T) {
	b := small(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := Order{At: at, Length: 59 * time.Second, Limit: 10, Window: 15 * time.Second}
	seen := simulated.Report{Accepted: 36, Refused: 2, Tokens: []simulated.TokenReport{{First: at, Last: at.Add(50 * time.Second)}}}
	did := Crawled{Calls: []int{18, 18}, Late: make([]time.Duration, 36), Refused: 2, Requests: 72}
	did.Late[7] = 9 * time.Millisecond
	checks, err := b.judge(o, did, seen)
	require.NoError(t, err)
	var got []string
	for _, c := range checks {
		got = append(got, fmt.Sprintf("%s %v", c.value(), c.met()))
	}
	require.Equal(t, []string{"2 calls false", "90 % false", "2 a call false", "1 true", "9 ms false"}, got)

	for _, wrong := range []func(*Crawled, *simulated.Report){
		func(c *Crawled, _ *simulated.Report) { c.Refused = 0 },
		func(c *Crawled, _ *simulated.Report) { c.Calls[0]++ },
		func(_ *Crawled, r *simulated.Report) { r.Unauthorised = 1 },
	} {
		did, seen := did, seen
		did.Calls = []int{18, 18}
		wrong(&did, &seen)
		_, err := b.judge(o, did, seen)
		require.ErrorContains(t, err, "the provider")
	}
}

func TestFillLogProvesWhatItFilled(t *testing.T) {
	b := small(t)
	kept := &ration.RedisStore{Client: b.rdb}
	of := account("filled", ration.PerHour(5000))
	require.NoError(t, fillLog(t.Context(), b.rdb, kept, of, 2500, nil))
	require.ErrorContains(t, fillLog(t.Context(), b.rdb, kept, of, 100, nil), "2600 units of 100")
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0123: "0.012", 0.5: "0.5", 1: "1", 1.154: "1.15", 12.34: "12.3", 123.4: "123",
		1234.5: "1,234", 1_234_567: "1,234,567", -1234: "-1,234", 100: "100"} {
		require.Equal(t, want, number(v))
	}
	require.Equal(t, "at least 5 x", atLeast(5, "x").String())
	require.Equal(t, "at most 1.15 x", atMost(1.15, "x").String())
	require.Equal(t, "none", atMost(0, "calls").String())
	require.Equal(t, "3 x (1 to 9)", check{measured: []float64{9, 1, 3}, target: atLeast(1, "x")}.value())
	require.Equal(t, []float64{2, 3}, worse([]float64{2, 3}, []float64{4, 5}))
	require.Equal(t, []float64{4, 5}, worseOf([]float64{2, 3}, []float64{4, 5}))
}

func TestTheTableOfThePageIsRenewed(t *testing.T) {
	page := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+openMark+"| old |\n"+closeMark+"\nbehind\n"), 0o644))
	require.NoError(t, renew(page, "| new |\n"))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "before\n"+openMark+"| new |\n"+closeMark+"\nbehind\n", string(text))
	require.NoError(t, os.WriteFile(page, []byte("no marks\n"), 0o644))
	require.ErrorContains(t, renew(page, "| new |\n"), "no place")
}

// The table of costs in benchmarks/README.md is the one that was measured, and there is none
// before.
func TestTheTableOfThePageIsTheMeasuredOne(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	results, err := os.ReadFile(filepath.Join("..", "results", "targets.md"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	table := regexp.MustCompile(`(?m)(^\|.*\n)+`).Find(results)
	require.Equal(t, len(results) > 0, len(table) > 0)
	require.Contains(t, string(page), openMark+string(table)+closeMark)
}

func TestCommandLines(t *testing.T) {
	harnesstest.Refuses(t, measure, [][2]string{})
	all, err := choose("")
	require.NoError(t, err)
	full := config{rows: all, before: fullBefore, large: fullLarge, waiting: fullWaiting, fleet: fullFleet}
	require.True(t, full.whole())
	for _, less := range []func(*config){
		func(c *config) { c.rows = c.rows[1:] }, func(c *config) { c.before-- }, func(c *config) { c.large-- },
		func(c *config) { c.waiting-- }, func(c *config) { c.fleet-- },
	} {
		c := full
		less(&c)
		require.False(t, c.whole())
	}
	chosen, err := choose("3, 1,3")
	require.NoError(t, err)
	require.Equal(t, []int{1, 3}, chosen)
}
