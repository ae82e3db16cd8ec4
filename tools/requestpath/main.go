// Requestpath counts the functions and the files of the library that one request enters,
// in six scenarios on a store that is warm:
//
//	go -C tools run ./requestpath
//
// It builds the library with a first statement in every function that records the entry,
// and runs it on a redis-server of its own. For each scenario it prints
//
//   - entries: the calls of declared functions and methods,
//   - functions: how many different ones they are,
//   - files: in how many files these are declared,
//   - changes: how often an entry is in another file than the entry before,
//   - scripts: how many scripts Redis ran.
//
// Function literals are not counted, nor is what the library calls in other modules. The
// entries of all goroutines are one sequence, in the order in which they come. It is that
// of one processor, and the same in nearly every run.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"text/tabwriter"
)

// A scenario is what the scenarios' program tells of one of them.
type scenario struct {
	Name    string
	Entries []entry
	Scripts int // of Redis
}

// An entry is one call of a function.
type entry struct{ File, Function string }

func main() {
	dir := flag.String("dir", "..", "the root of the library to measure")
	list := flag.Bool("v", false, "list the functions in the order in which they are entered")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var scenarios []scenario
	err := measure(ctx, *dir, func(measured []scenario) (again bool) {
		scenarios = measured
		return false
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "requestpath:", err)
		os.Exit(1)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	if *list {
		for _, s := range scenarios {
			fmt.Fprintf(w, "%s:\n", s.Name)
			for i, e := range s.Entries {
				fmt.Fprintf(w, "%d\t%s\t%s\n", i+1, e.File, e.Function)
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintln(w, "entries\tfunctions\tfiles\tchanges\tscripts\tscenario")
	for _, s := range scenarios {
		functions, files, changes := s.count()
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%s\n", len(s.Entries), functions, files, changes, s.Scripts, s.Name)
	}
}

// measure builds the scenarios' program on the library in dir, and runs it as long as it is asked to again.
func measure(ctx context.Context, dir string, measured func([]scenario) (again bool)) error {
	temp, err := os.MkdirTemp("", "requestpath-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	program, err := build(ctx, dir, temp)
	if err != nil {
		return err
	}
	for {
		scenarios, err := run(ctx, program, temp)
		if err != nil || !measured(scenarios) {
			return err
		}
	}
}

// run runs the scenarios' program once, on a Redis of its own.
func run(ctx context.Context, program, temp string) (scenarios []scenario, err error) {
	addr, stop, err := startRedis(ctx, temp)
	if err != nil {
		return nil, err
	}
	defer stop()
	cmd := exec.CommandContext(ctx, program, addr)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the scenarios: %w", err)
	}
	return scenarios, json.Unmarshal(out, &scenarios)
}

// count returns the figures of a scenario but for its entries.
func (s *scenario) count() (functions, files, changes int) {
	inFunctions, inFiles := map[entry]bool{}, map[string]bool{}
	for i, e := range s.Entries {
		inFunctions[e], inFiles[e.File] = true, true
		if i > 0 && e.File != s.Entries[i-1].File {
			changes++
		}
	}
	return len(inFunctions), len(inFiles), changes
}
