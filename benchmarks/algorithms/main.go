// Command algorithms measures what each algorithm costs, and what it lets through
// at worst. It is run in the directory benchmarks:
//
//	go run ./algorithms
//	go run ./algorithms -algorithms gcra,stream-log -max 100000 -large 0
//
// Every algorithm gets the same limit, -max units in -window, without a margin. The
// columns of the table:
//
//   - in Redis: MEMORY USAGE of all keys of a budget with one account after -max
//     bookings, evenly over one window, of one unit each; and that over the
//     bookings.
//   - in memory: what the heap of a MemoryStore with as much in it has grown by, as
//     the garbage collector has it.
//   - round trips: requests that the client sent to Redis, over bookings, counted
//     by a hook of go-redis in the measurements of speed.
//   - bookings/s: -workers goroutines on one account, one unit each. "none waits":
//     the limit is never reached. "spent": -max units are booked to begin with, and
//     the clock of the requests goes on with each booking by what a unit takes on
//     average, so that what is kept stays as large and every booking is made where
//     one becomes free. Beside each stands its ratio to INCR on the same Redis by
//     as many goroutines. The figures are medians of -rounds rounds, and so are the
//     ratios, each to an INCR measured just before: compare ratios, because
//     absolute figures drift with whatever else the machine does.
//   - over Max at worst: the most units with slots in any one window of any
//     alignment, less Max, in % of Max, of -demands demands made to do harm: bursts
//     and rests on either side of the edges of windows, callers that keep back and
//     others that overtake them, costs of many units. Behind it what the algorithm
//     promises; more than that is an error. Counted by code of this command, from
//     the slots alone.
//   - a queue gets: what is granted of a queue of twelve times Max until its last
//     slot, over Max for each window of that time; the least of queues that begin
//     at several phases of the window.
//     And the same with -margin, which a ration.Budget gives a limit of an hour.
//
// With -large a last table tells what the exact logs take of so many bookings in
// a day. That takes a minute for each.
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
