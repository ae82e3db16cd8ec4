// Command scale measures how far one Redis goes, and what it takes to go further.
// It is run in the directory benchmarks:
//
//	go run ./scale
//	go run ./scale -budgets 1,64 -rounds 9
//
// It starts a single redis-server and a Redis Cluster on loopback. The same accounts
// are either in one budget, which is on one node, or divided among several budgets by
// their IDs. The name of a budget decides on which node it is. Workers book one unit
// after another, each time in the next budget, through one client with a connection
// for each worker:
//
//   - combined: all workers share a RedisStore, as the goroutines of one process
//     do. Workers that book in the same budget at the same time share a script.
//   - one by one: each worker has a RedisStore of its own, like a fleet of processes
//     that book one request at a time. Nothing is combined.
//
// Each is measured with quota left and with the quota spent, where every slot lies in
// the future. All cases take turns, round by round; figures are medians of the rounds.
//
// Crowds are processes whose callers all wait for calls of one pool, with and without a deadline. What they use is
// judged by when their calls left; possible is a burst of the whole quota a window and its margin.
//
// All servers and the workers share one machine, so the bookings a second are lower
// than those of as many machines. The server's time for a booking does not depend on
// that. It is the processor time of the whole server process, as INFO reports it
// before and after, divided by the bookings. It includes all work for a booking:
// reading and writing the connections, the script, and a share of the event loop. The
// time of the scripts alone is what commandstats reports of EVALSHA.
//
// The second and the fourth table are computed from the measurements. They assume a
// core that is busy half of the time. On a server that is busy for a share u of the
// time, a request that comes at random waits on average for u / (2 (1 - u)) scripts of
// others, if all take equally long: for half a script if u is 0.5, for 4.5 if it is
// 0.9. The number of nodes assumes that budgets are spread over them evenly.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

func main() {
	if order := os.Getenv(crowdEnv); order != "" {
		if err := callInCrowd(order, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "a process of a crowd:", err)
			os.Exit(1)
		}
		return
	}
	harness.Main("scale", scale)
}

// A config is what all cases have in common.
type config struct {
	nodes    int // of the Cluster
	accounts int
	budgets  []int // how many the accounts are dealt to
	workers  int
	rounds   int
	each     time.Duration // of one case in one round
	tokens   int           // whose memory is measured
	crowds   []crowd
	wait     time.Duration // of each crowd
}

func (c config) check() error {
	err := cmp.Or(
		harness.Between("nodes", c.nodes, 3, 16),
		harness.Between("accounts", c.accounts, 1, 100_000),
		harness.Between("workers", c.workers, 1, 1024),
		harness.Between("rounds", c.rounds, 1, 100),
		harness.Between("each", c.each, time.Millisecond, time.Minute),
		harness.Between("tokens", c.tokens, 1, 1000),
		harness.Between("wait", c.wait, time.Second, 10*time.Minute),
	)
	if err == nil && (slices.Min(c.budgets) < 1 || slices.Max(c.budgets) > c.accounts) {
		return fmt.Errorf("-budgets is %v: each must be from 1 to -accounts, %d", c.budgets, c.accounts)
	}
	return err
}

// scale is the command.
func scale(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := harness.Flags("scale", stderr)
	var cfg config
	flags.IntVar(&cfg.nodes, "nodes", 3, "how many `nodes` the Cluster has")
	flags.IntVar(&cfg.accounts, "accounts", 1200, "how many `accounts` are booked on")
	budgets := flags.String("budgets", "1,12,48", "how many budgets they are dealt to, as `numbers` with commas")
	flags.IntVar(&cfg.workers, "workers", 64, "how many `goroutines` book")
	flags.IntVar(&cfg.rounds, "rounds", 3, "how many `measurements` each figure is the median of")
	flags.DurationVar(&cfg.each, "each", 500*time.Millisecond, "how long one measurement takes")
	flags.IntVar(&cfg.tokens, "tokens", 10, "how many full `windows` of 5,000 calls the memory is measured of")
	crowds := flags.String("crowds", "8x1000,16x500,3x1000", "how many processes x callers wait at once, with commas; empty for none")
	flags.DurationVar(&cfg.wait, "wait", 12*time.Second, "how long each crowd calls")
	out := flags.String("out", filepath.Join("results", "scale.md"), "`file` for the tables; - for none")
	if err := harness.Parse(flags, args); err != nil {
		return err
	}
	for number := range strings.SplitSeq(*budgets, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			return harness.Usage(fmt.Errorf("-budgets has %q: it must be a number", number))
		}
		cfg.budgets = append(cfg.budgets, n)
	}
	var err error
	if cfg.crowds, err = parseCrowds(*crowds); err == nil {
		err = cfg.check()
	}
	if err != nil {
		return harness.Usage(err)
	}

	command := harness.CommandLine("go -C benchmarks run ./scale", flags, "out")
	return harness.Publish(ctx, command, stdout, *out, func(redis string, run harness.Run) (string, error) {
		nodes, err := redistest.RunCluster(ctx, cfg.nodes)
		if err != nil {
			return "", err
		}
		defer nodes.Close()
		r, err := measure(ctx, cfg, redis, nodes.Addrs(), stderr)
		if err != nil {
			return "", err
		}
		for _, of := range cfg.crowds {
			fmt.Fprintf(stderr, "a crowd of %d x %d callers\n", of.processes, of.callers)
			one, err := measureCrowd(ctx, redis, of, cfg.wait)
			if err != nil {
				return "", err
			}
			r.crowds = append(r.crowds, one)
		}
		return document(cfg, r, run), nil
	})
}
