// Package harness is what the commands of this module have in common: how they are
// run, and how they have goroutines work.
package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ErrUsage is matched by errors of the command line.
var ErrUsage = errors.New("run with -h for the flags")

// Usage says that the command line is wrong, and how.
func Usage(err error) error { return fmt.Errorf("%w; %w", err, ErrUsage) }

// Main is the main of a command. An interrupt ends the context.
func Main(name string, command func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if status := report(os.Stderr, name, command(ctx, os.Args[1:], os.Stdout, os.Stderr)); status != 0 {
		os.Exit(status)
	}
}

// report says what went wrong and returns the status to exit with.
func report(stderr io.Writer, name string, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		return 2
	}
	return 1
}

// Parse parses the arguments of a command, which are flags only.
func Parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return ErrUsage // the flag set has said what is wrong
	}
	if flags.NArg() > 0 {
		return Usage(fmt.Errorf("there are arguments that no flag takes: %q", flags.Args()))
	}
	return nil
}

// CommandLine is how to run a command again: its beginning, and the flags that were
// set but for those that only say where the results go.
func CommandLine(begin string, flags *flag.FlagSet, where ...string) string {
	var b strings.Builder
	b.WriteString(begin)
	flags.Visit(func(f *flag.Flag) {
		if !slices.Contains(where, f.Name) {
			fmt.Fprintf(&b, " -%s %s", f.Name, f.Value)
		}
	})
	return b.String()
}

// Publish writes a page to stdout and to a file, unless that is "-".
func Publish(page string, stdout io.Writer, file string) error {
	if _, err := io.WriteString(stdout, page); err != nil {
		return err
	}
	if file == "-" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(page), 0o644)
}
