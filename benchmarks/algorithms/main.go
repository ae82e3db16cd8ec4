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
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/benchmarks/internal/ownredis"
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
	switch {
	case c.max < 10 || c.max > 1_000_000:
		return fmt.Errorf("-max is %d: it must be from 10 to 1000000", c.max)
	case c.window < time.Second || c.window > 24*time.Hour || 24*time.Hour%c.window != 0:
		return fmt.Errorf("-window is %v: it must be from 1s to 24h, and divide a day", c.window)
	case c.burst < 2 || c.burst > c.max:
		return fmt.Errorf("-burst is %d: it must be at least 2 and at most -max, %d", c.burst, c.max)
	case c.margin < time.Microsecond || c.margin > c.window:
		return fmt.Errorf("-margin is %v: it must be from 1µs to the window", c.margin)
	case c.large < 0 || c.large > 10_000_000:
		return fmt.Errorf("-large is %d: it must be from 0 to 10000000", c.large)
	case c.workers < 1 || c.workers > 1024:
		return fmt.Errorf("-workers is %d: it must be from 1 to 1024", c.workers)
	case c.length < time.Millisecond || c.length > time.Minute:
		return fmt.Errorf("-length is %v: it must be from 1ms to 1m", c.length)
	case c.rounds < 1 || c.rounds > 100:
		return fmt.Errorf("-rounds is %d: it must be from 1 to 100", c.rounds)
	case c.demands < 0 || c.demands > 10_000:
		return fmt.Errorf("-demands is %d: it must be from 0 to 10000", c.demands)
	}
	return nil
}

// compare is the command.
func compare(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("algorithms", flag.ContinueOnError)
	flags.SetOutput(stderr)
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
	which, err := choose(contestants(cfg), *chosen)
	if err != nil {
		return harness.Usage(err)
	}
	server, err := ownredis.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()

	r, err := measure(ctx, cfg, which, server.Addr, stderr)
	if err != nil {
		return err
	}
	page := document(cfg, r, harness.CommandLine("go -C benchmarks run ./algorithms", flags, "out"), server.Version, time.Now())
	return harness.Publish(page, stdout, *out)
}
