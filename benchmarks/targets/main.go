// Command targets measures what ration costs against what it may cost. It is run
// in the directory benchmarks:
//
//	go run ./targets
//	go run ./targets -rows 1,3 -rounds 12
//
// Every row of its table is a target, which is met or not. It is measured in the same
// run as what it is compared to. The contenders of a row take turns, A B C, A B C, for
// -rounds rounds of -each, and each round begins with a warm-up of a tenth. They use
// the same machine, the same number of goroutines, and go-redis clients with default
// options. The contenders of a lone caller take turns call by call, in an order drawn
// at random for each turn: how long a call takes depends on whether the cores were
// asleep, and so on the call before it. A ratio is computed within each round. The
// table shows the median of the rounds' ratios and, in brackets, its confidence
// interval of 95 % from package benchmath, or all rounds if there are fewer than six.
// Compare ratios: absolute figures drift with whatever else the machine does.
//
// The table goes to standard output. If all rows were measured at their full size, it
// also goes to results/targets.md, with the figures of all contenders, and to
// benchmarks/README.md between its marks. The raw measurements then go to
// results/bench.txt in the format of Go's benchmarks, for benchstat. -out writes the
// files for a part of the rows too.
//
// If a row is not met the command exits with status 1, unless a measurement in the
// same run shows what prevents it: that a part of what any limiter must do misses the
// target by itself, in all of its confidence interval, or that the target is met
// without the delays that the machine causes. The last column names the reason, and
// is empty if none was shown.
//
// How the rows are measured:
//
//   - 1, 2, 5: calls a second from 64 goroutines, or from 16 in each of 4
//     processes, on one key in whose window 5,000 calls have been made: once
//     with quota left, and once with a quota of 5,000 that is spent, so that each
//     slot lies behind all others. The row shows the worse of the two. The MULTI of
//     the article and the sum of a stream make so few calls that their log stays at
//     about 5,000. The pool of 1,000 tokens has as much quota as the one token. Row 1
//     has twice as many rounds of half the length; contenders that have no target
//     there have half as many. On Linux, ration and what it is compared to are also
//     measured while a loop of the lowest priority keeps each core awake. The
//     cancelled slots of row 5 are of one unit, one on each account, each with a
//     booking behind it.
//   - 3, 4, 6: the median time of a lone caller's calls. The logs of 4 and 6 hold
//     single calls over the last hour, and the quota is spent.
//   - 7: calls a second of a lone caller, with quota left and with it spent.
//   - 8: MEMORY USAGE of the log after 5,000 calls, over the calls.
//   - 9: the mean of calls one after another, in a log of up to 100,000 entries.
//   - 10: each turn is a request through Transport, one without it and one that only
//     gets a token, on the same connection to a server in a process of its own. The
//     cost of a request is the median of the turns' differences: the requests of one
//     turn find the machine in nearly the same state.
//   - 11: in a process of its own. Timers are those that the allocation profile
//     finds alive, the heap is what the garbage collector leaves, and lateness is
//     read from the clock when Wait returns. A burst spends the quota, so that the
//     waiting callers also leave in bursts, of 2,000 a second.
//   - 12: the fleet is made of processes of this command; the judge is the
//     simulated provider with its own exact log, in a process of its own, which
//     takes 50 to 150 ms to answer. The workers begin within 0.6 s. Lateness is read
//     from the clock just before a call is sent.
//   - 13: every operation of a Store, one at a time, on logs made to be slow. The
//     time of a command is what the SLOWLOG says, or the processor time of Redis's
//     main thread if that is less: the SLOWLOG includes the time for which the
//     machine did not run Redis. Between the commands Redis counts to a number, for
//     as long as they took, which shows how often the machine alone makes a command
//     slow.
//   - 14: 5,000 calls were made before, one at a time. What a script takes is what INFO
//     commandstats says of EVALSHA. The floors are in floors.go: scripts that send the
//     commands of one booking and decide nothing, and such that also unpack and pack
//     its numbers. A round has five passes, in each of which each contender calls for
//     a fifth of its turn, in an order drawn at random.
//   - 15: as row 1, beside callers that do nothing but combine into the floor of row 14.
//     The row shows the worse of a quota that is left and one that is spent. StreamLog
//     is left out: it is for little memory.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// childFlag makes the command one of its own processes: see child.go.
const childFlag = "-child"

func main() {
	harness.Main("targets", func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		if len(args) == 1 && args[0] == childFlag {
			return obey(ctx, pipes{os.Stdin, os.Stdout})
		}
		return measure(ctx, args, stdout, stderr)
	})
}

// errNotMet says that a row is not met and nothing was shown to stand in its way.
var errNotMet = errors.New("not met")

// A config is what all rows have in common.
type config struct {
	rows    []int
	rounds  int
	each    time.Duration // of one contender in one round
	before  int           // calls in the log when a measurement begins
	large   int           // entries in a large log
	waiting int           // goroutines that wait at once
	fleet   time.Duration // how long the fleet runs
}

// whole reports whether the run is one that the page shows.
func (c config) whole() bool {
	return len(c.rows) == len(rows) && c.before == fullBefore && c.large == fullLarge && c.waiting == fullWaiting && c.fleet == fullFleet
}

const (
	fullBefore  = 5000
	fullLarge   = 1_000_000
	fullWaiting = 10_000
	fullFleet   = time.Minute
)

func (c config) check() error {
	if c.before%1000 != 0 {
		return fmt.Errorf("-calls is %d: it must be in thousands", c.before)
	}
	return cmp.Or(
		harness.Between("rounds", c.rounds, 1, 100),
		harness.Between("each", c.each, time.Millisecond, time.Minute),
		harness.Between("calls", c.before, 1000, 1_000_000),
		harness.Between("large", c.large, 2000, 10_000_000),
		harness.Between("waiting", c.waiting, 1, 100_000),
		harness.Between("fleet", c.fleet, time.Second, 10*time.Minute),
	)
}

// measure is the command.
func measure(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := harness.Flags("targets", stderr)
	var cfg config
	which := flags.String("rows", "", "which to measure, as `numbers` with commas; empty: all")
	flags.IntVar(&cfg.rounds, "rounds", 8, "how often the contenders of a row take `turns`")
	flags.DurationVar(&cfg.each, "each", 400*time.Millisecond, "how long one turn takes")
	flags.IntVar(&cfg.before, "calls", fullBefore, "how many `calls` the logs of rows 1, 2, 3, 5, 7 and 8 are of")
	flags.IntVar(&cfg.large, "large", fullLarge, "`entries` in the large logs of rows 4, 6 and 13, of which the last has fewer of all else with fewer")
	flags.IntVar(&cfg.waiting, "waiting", fullWaiting, "`goroutines` that wait in row 11")
	flags.DurationVar(&cfg.fleet, "fleet", fullFleet, "how long the fleet of row 12 runs")
	out := flags.String("out", "results", "`directory` for targets.md and bench.txt, of a whole run or where this is given; - for none")
	page := flags.String("page", "README.md", "`file` whose table is renewed by a whole run; - for none")
	if err := harness.Parse(flags, args); err != nil {
		return err
	}
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	if cfg.rows, err = choose(*which); err != nil {
		return harness.Usage(err)
	}
	if err := cfg.check(); err != nil {
		return harness.Usage(err)
	}

	server, err := redistest.Run(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	b := newBench(cfg, server.Addr, stderr)
	defer b.close()
	r := report{cfg: cfg, Run: harness.Run{Command: harness.CommandLine("go -C benchmarks run ./targets", flags, "out", "page"), Redis: server.Version, Begun: time.Now()}}
	for _, row := range rows {
		if !slices.Contains(cfg.rows, row.number) {
			continue
		}
		fmt.Fprintf(stderr, "row %d: %s\n", row.number, row.what)
		b.row = row.number
		runtime.GC() // what an earlier row left is not this one's to collect
		checks, err := row.run(ctx, b)
		if err != nil {
			return fmt.Errorf("row %d: %w", row.number, err)
		}
		for i := range checks {
			checks[i].row = row.number
		}
		r.checks = append(r.checks, checks...)
	}
	r.Took, r.others = time.Since(r.Begun), b.figures

	if _, err := io.WriteString(stdout, r.table()); err != nil {
		return err
	}
	// A part of the table does not replace the whole unasked.
	if *out != "-" && (cfg.whole() || given["out"]) {
		if err := r.write(*out, b); err != nil {
			return err
		}
	}
	if *page != "-" && cfg.whole() {
		if err := renew(*page, r.table()); err != nil {
			return err
		}
	}
	return r.verdict()
}

// choose returns the numbers of the rows that a list with commas names, in their own
// order.
func choose(list string) (chosen []int, err error) {
	which, err := harness.Choose("rows", list, rows, func(r row) string { return strconv.Itoa(r.number) })
	for _, row := range which {
		chosen = append(chosen, row.number)
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), err
}
