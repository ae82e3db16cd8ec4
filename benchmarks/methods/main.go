// Command methods compares ways to keep a fleet within one quota. It is run in
// the directory benchmarks:
//
//	go run ./methods
//	go run ./methods -methods ration,redis_rate -length 60s
//
// Each method gets the same workers, the same loop and HTTP client, one access
// token, an emptied Redis, and a provider of its own on loopback: the simulated
// Instagram, which keeps an exact sliding window by arrival and shares no code with
// any method. A worker asks the method whether it may call, calls, and repeats this
// until the time is over. A refused call is counted, and the worker goes on without
// a pause.
//
// The columns of the table:
//
//   - use of quota: accepted calls, over those that an exact sliding window
//     allows from the first call to the end of the run. With Max calls a Window
//     and a time D between these, that is Max x (floor(D/Window) + 1): a full burst
//     at the beginning of every window. No call starts in the last fiftieth of a
//     window, so that a run of 20 s with windows of 5 s has four windows and not
//     the first moment of a fifth. D lasts until the end of the run, not until the
//     last call: a method that delays everybody has not used the quota.
//   - accepted, refused: the results of the calls. The provider and the workers
//     count them separately; if they differ the run is an error.
//   - Redis commands per call: requests that clients sent to Redis per accepted
//     call, without those that only set up a connection. Counted by a hook of
//     go-redis. A MULTI...EXEC is sent in one piece and counts as one here; the
//     table's note says how many commands it contains. A script that Redis has not
//     loaded yet may cost each worker a second request, and a booking whose slot
//     lies beyond the end is a request without a call: together up to 128 requests
//     in a run with 64 workers, however long it is.
//   - fairness: Jain's index over the workers' accepted calls, 1 when all had
//     the same number, 1/n when one of n had all.
package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
)

func main() { harness.Main("methods", compare) }

// A config is what all methods of a comparison have in common.
type config struct {
	limit   ration.Limit
	workers int
	length  time.Duration // of each method's run
	latency time.Duration // the provider's, on average
}

// mostCalls bounds a run: no method can make more calls than workers without a
// throttle can.
const mostCalls = 1_000_000

func (c config) check() error {
	switch {
	case c.workers < 1 || c.workers > 1024:
		return fmt.Errorf("-workers is %d: it must be from 1 to 1024", c.workers)
	case c.limit.Max < c.workers:
		return fmt.Errorf("-limit is %v: with %d workers it must allow as many calls, or an equal share is no call at all", c.limit, c.workers)
	case c.limit.Window < 100*time.Millisecond:
		return fmt.Errorf("-limit is %v: its window must be at least 100ms", c.limit)
	case c.length < c.limit.Window || c.length > 10*time.Minute:
		return fmt.Errorf("-length is %v: it must be from one window, %v, to 10m", c.length, c.limit.Window)
	case c.latency < time.Millisecond || c.latency > c.limit.Window:
		return fmt.Errorf("-latency is %v: it must be from 1ms to one window, %v", c.latency, c.limit.Window)
	case float64(c.workers)*float64(c.length)/float64(c.latency) > mostCalls:
		return fmt.Errorf("%d workers for %v at %v a call may be more than %d calls: take fewer workers, a shorter length or a longer latency",
			c.workers, c.length, c.latency, mostCalls)
	}
	return nil
}

// compare is the command.
func compare(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := harness.Flags("methods", stderr)
	var cfg config
	limit := flags.String("limit", "500/5s", "the quota, as `MAX/WINDOW`")
	flags.IntVar(&cfg.workers, "workers", 64, "how many goroutines share the token")
	flags.DurationVar(&cfg.length, "length", 20*time.Second, "how long each method runs")
	flags.DurationVar(&cfg.latency, "latency", 80*time.Millisecond, "how long the provider takes on average; each call takes from half of it to one and a half")
	chosen := flags.String("methods", "", "which to run, in this `order`; empty: all")
	out := flags.String("out", filepath.Join("results", "methods.md"), "`file` for the table; - for none")
	if err := harness.Parse(flags, args); err != nil {
		return err
	}
	var err error
	if cfg.limit, err = ration.ParseLimit(*limit); err != nil {
		return harness.Usage(err)
	}
	if err := cfg.check(); err != nil {
		return harness.Usage(err)
	}
	which, err := harness.Choose("methods", *chosen, methods, method.id)
	if err != nil {
		return harness.Usage(err)
	}

	command := harness.CommandLine("go run ./methods", flags, "out")
	return harness.Publish(ctx, command, stdout, *out, func(redis string, made harness.Run) (string, error) {
		client := newHTTPClient(cfg.workers)
		defer client.CloseIdleConnections()
		results := make([]result, 0, len(which))
		for _, m := range which {
			fmt.Fprintf(stderr, "%s: %v\n", m.name, cfg.length)
			r, err := run(ctx, m, cfg, redis, client)
			if err != nil {
				return "", fmt.Errorf("%s: %w", m.name, err)
			}
			results = append(results, r)
		}
		return document(cfg, results, made), nil
	})
}
