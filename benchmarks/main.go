// Command benchmarks measures what ration costs beside other limiters, in one run on
// one machine:
//
//	go run .                         # all, in about four minutes
//	go run . -tables speed -rounds 9
//
// It starts a redis-server of its own on a loopback port. The contenders take turns,
// round by round, with as many goroutines and clients with default options; figures
// are medians of the rounds. Compare ratios: absolute figures drift with whatever else
// the machine does. README.md shows the tables of the last whole run, which results/benchmarks.md
// keeps with the versions.
//
// The tables:
//
//   - fleet: 64 workers spend one token's quota of 500 calls in any 5 s, against a
//     simulated provider with an exact log of its own, which takes 40 to 120 ms to
//     answer. Use of quota: accepted calls, of those that an exact window allows from
//     the first call to the end of the run. A refused call is counted, and the worker
//     goes on.
//   - speed: the median time of a lone caller's call, and calls a second from 64
//     goroutines on one token and on 1,000. No quota is spent. For ration in a pool
//     the store chooses the token; the others go through the tokens in turn.
//   - crowds: processes whose callers all wait for calls of a pool of 1,000 tokens with
//     20 calls in 2 s each. Possible is a burst of the whole quota a window and its
//     margin.
//   - memory: what Redis takes of 5,000 calls on one token, one at a time.
//   - transport: what a Transport adds to a request, over loopback.
//
// "Most in a window" is measured with a quota of 100 calls a second that 16 goroutines
// ask for without rest: the most that were let through in any window of a second, of
// whatever alignment. In the tables fleet and crowds it is that of the run.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
)

func main() {
	if order := os.Getenv(crowdEnv); order != "" {
		if err := callInCrowd(order, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "a process of a crowd:", err)
			os.Exit(1)
		}
		return
	}
	harness.Main("benchmarks", compare)
}

// A config is how long and how often is measured.
type config struct {
	rounds int
	each   time.Duration // of one contender in one round
	fleet  time.Duration // of a fleet's run
	crowds []crowd
	wait   time.Duration // of each crowd
}

func (c config) check() error {
	return cmp.Or(
		harness.Between("rounds", c.rounds, 1, 100),
		harness.Between("each", c.each, 10*time.Millisecond, time.Minute),
		harness.Between("fleet", c.fleet, time.Second, 10*time.Minute),
		harness.Between("wait", c.wait, time.Second, 10*time.Minute),
	)
}

// A table is one of the page.
type table struct {
	name, title string
	make        func(ctx context.Context, cfg config, redis string, progress io.Writer) (string, error)
}

var tables = []table{
	{"fleet", "A fleet that waits", fleetTable},
	{"speed", "Speed, and what it is worth", speedTable},
	{"crowds", "Crowds", crowdTable},
	{"memory", "Memory in Redis", memoryTable},
	{"transport", "What a Transport adds", transportTable},
}

// compare is the command.
func compare(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := harness.Flags("benchmarks", stderr)
	var cfg config
	chosen := flags.String("tables", "", "which `tables` to make, with commas; empty: all, which README.md then shows")
	flags.IntVar(&cfg.rounds, "rounds", 5, "how many `rounds` each figure is the median of")
	flags.DurationVar(&cfg.each, "each", time.Second, "how long one contender is measured in a round")
	flags.DurationVar(&cfg.fleet, "fleet", 20*time.Second, "how long each fleet calls")
	crowds := flags.String("crowds", "8x1000,16x500,3x1000", "how many processes x callers wait at once, with commas")
	flags.DurationVar(&cfg.wait, "wait", 12*time.Second, "how long each crowd calls")
	out := flags.String("out", filepath.Join("results", "benchmarks.md"), "`file` for the tables; - for none")
	readme := flags.String("readme", "README.md", "the `page` that shows them between its marks; - for none")
	if err := harness.Parse(flags, args); err != nil {
		return err
	}
	which, err := harness.Choose("tables", *chosen, tables, func(t table) string { return t.name })
	if err == nil {
		cfg.crowds, err = parseCrowds(*crowds)
	}
	if err == nil {
		err = cfg.check()
	}
	if err != nil {
		return harness.Usage(err)
	}
	command := harness.CommandLine("go -C benchmarks run .", flags, "out", "readme")
	return harness.Publish(ctx, command, stdout, *out, func(redis string, run harness.Run) (string, error) {
		begun := time.Now()
		var body strings.Builder
		for _, t := range which {
			fmt.Fprintf(stderr, "%s\n", t.name)
			text, err := t.make(ctx, cfg, redis, stderr)
			if err != nil {
				return "", fmt.Errorf("%s: %w", t.name, err)
			}
			fmt.Fprintf(&body, "## %s\n\n%s\n", t.title, text)
			if *readme != "-" {
				if err := harness.Show(*readme, t.name, text); err != nil {
					return "", err
				}
			}
		}
		run.Took = time.Since(begun)
		head := run.Head("Benchmarks", "Medians of rounds; `go doc .` says how each is measured.",
			harness.Versions("go-redis/redis_rate", "redis/go-redis/v9", "rueidis", "golang.org/x/time"))
		return head + strings.TrimSuffix(body.String(), "\n"), nil
	})
}
