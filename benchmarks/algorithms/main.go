// Command algorithms measures what each algorithm costs, and what it lets through
// at worst. It is run in the directory benchmarks:
//
//	go run ./algorithms
//	go run ./algorithms -algorithms gcra,stream-log -max 100000 -large 0
//
// Every algorithm gets the same limit, -max units in -window, without a margin. The
// columns of the table:
//
//   - in Redis: MEMORY USAGE of all keys of a budget with one account, after -max
//     bookings of one unit, spread evenly over one window; then the same per
//     booking.
//   - in memory: by how much the heap grows, after a garbage collection, when a
//     MemoryStore holds the same bookings.
//   - round trips: requests that the client sent to Redis per booking, counted by a
//     hook of go-redis while the speed is measured.
//   - bookings/s: -workers goroutines book one unit at a time on one account. "none
//     waits": the limit is never reached. "spent": -max units are booked first. Each
//     further booking then advances the clock of the requests by the mean time
//     between units, so that the log keeps its size and every booking takes the slot
//     that has just become free. Each figure is followed by its ratio to INCR on the
//     same Redis by as many goroutines. Figures and ratios are medians of -rounds
//     rounds, and each ratio is to an INCR measured just before. Compare ratios:
//     absolute figures drift with whatever else the machine does.
//   - over Max at worst: the most units with slots in any one window of any
//     alignment, less Max, in % of Max. It is the worst of -demands demands that are
//     designed to exceed the limit: bursts and pauses on both sides of the edges of
//     windows, callers with a reserve and others that overtake them, costs of many
//     units. It is followed by what the algorithm promises; more than that is an
//     error. This command counts it by itself, from the slots alone.
//   - a queue gets: a queue of twelve times Max is booked. The units granted until
//     its last slot are divided by Max for each window of that time. The figure is
//     the lowest of queues that begin at several phases of the window. The next
//     column is the same with -margin, the default of a ration.Budget for a limit
//     of an hour.
//
// With -large a last table shows how much the exact logs take for that many bookings
// in a day. That takes a minute for each.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
)

func main() { harness.Main("algorithms", compare) }

// A config is what all measurements have in common.
type config struct {
	max     int
	window  time.Duration
	burst   int           // of the token bucket
	margin  time.Duration // of the second queue
	large   int           // bookings in the last table; 0: none
	workers int
	length  time.Duration // of one measurement of speed
	rounds  int
	demands int // made by chance, for each algorithm
}

func (c config) check() error {
	err := cmp.Or(
		harness.Between("max", c.max, 10, 1_000_000),
		harness.Between("window", c.window, time.Second, 24*time.Hour),
		harness.Between("burst", c.burst, 2, 1_000_000),
		harness.Between("margin", c.margin, time.Microsecond, c.window),
		harness.Between("large", c.large, 0, 10_000_000),
		harness.Between("workers", c.workers, 1, 1024),
		harness.Between("length", c.length, time.Millisecond, time.Minute),
		harness.Between("rounds", c.rounds, 1, 100),
		harness.Between("demands", c.demands, 0, 10_000),
	)
	switch {
	case err != nil:
		return err
	case 24*time.Hour%c.window != 0:
		return fmt.Errorf("-window is %v: it must divide a day", c.window)
	case c.burst > c.max:
		return fmt.Errorf("-burst is %d: it must be at most -max, %d", c.burst, c.max)
	}
	return nil
}

// compare is the command.
func compare(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := harness.Flags("algorithms", stderr)
	var cfg config
	flags.IntVar(&cfg.max, "max", 5000, "Max of the limit, in `units`")
	flags.DurationVar(&cfg.window, "window", time.Hour, "its Window")
	flags.IntVar(&cfg.burst, "burst", 100, "Burst of the second row of GCRA, in `units`; the first has 1")
	flags.DurationVar(&cfg.margin, "margin", time.Second, "Margin of the limit for the second queue")
	flags.IntVar(&cfg.large, "large", 1_000_000, "how many `bookings` in a day the last table is of; 0 for none")
	flags.IntVar(&cfg.workers, "workers", 64, "how many `goroutines` share the account")
	flags.DurationVar(&cfg.length, "length", time.Second, "how long one measurement of speed takes")
	flags.IntVar(&cfg.rounds, "rounds", 5, "how many `measurements` of speed each figure is the median of")
	flags.IntVar(&cfg.demands, "demands", 20, "how many `demands` are made by chance, beside those that are not")
	chosen := flags.String("algorithms", "", "which to measure, by `names` as ParseLimit reads them; empty: all")
	out := flags.String("out", filepath.Join("results", "algorithms.md"), "`file` for the tables; - for none")
	if err := harness.Parse(flags, args); err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return harness.Usage(err)
	}
	which, err := harness.Choose("algorithms", *chosen, contestants(cfg), contestant.name)
	if err != nil {
		return harness.Usage(err)
	}
	command := harness.CommandLine("go -C benchmarks run ./algorithms", flags, "out")
	return harness.Publish(ctx, command, stdout, *out, func(redis string, run harness.Run) (string, error) {
		r, err := measure(ctx, cfg, which, redis, stderr)
		if err != nil {
			return "", err
		}
		return document(cfg, r, run), nil
	})
}
