// Package harness is what the commands of this module have in common: how they are
// run, and how they have goroutines work.
package harness

import (
	"cmp"
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
	"time"

	"github.com/ration-go/ration/internal/testkit/redistest"
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

// Flags returns the flags of a command, before it defines any.
func Flags(name string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	return flags
}

// Between is an error if the value of a flag lies outside of its range.
func Between[T cmp.Ordered](name string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("-%s is %v: it must be from %v to %v", name, value, least, most)
	}
	return nil
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

// Choose returns those of all that the value of a flag, a list with commas, names, in
// its order. An empty list names all.
func Choose[T any](flag, list string, all []T, name func(T) string) (chosen []T, err error) {
	if list == "" {
		return all, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		before := len(chosen)
		var names []string
		for _, one := range all {
			if names = append(names, name(one)); name(one) == strings.TrimSpace(text) {
				chosen = append(chosen, one)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("-%s has %q: there are %s", flag, text, strings.Join(slices.Compact(names), ", "))
		}
	}
	return chosen, nil
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

// Publish measures on a Redis of its own, and writes the page to stdout and to a file,
// unless that is "-". The page tells how to run the command again.
func Publish(ctx context.Context, command string, stdout io.Writer, file string, measure func(redis string, run Run) (page string, err error)) error {
	server, err := redistest.Run(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	page, err := measure(server.Addr, Run{Command: command, Redis: server.Version, Begun: time.Now()})
	if err != nil {
		return err
	}
	return write(page, stdout, file)
}

func write(page string, stdout io.Writer, file string) error {
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

// Show has a page show a text between the marks of that name.
func Show(page, name, text string) error {
	data, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	from, to := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(string(data), from)
	_, after, ended := strings.Cut(rest, to)
	if !found || !ended {
		return fmt.Errorf("%s has no marks %s%s", page, from, to)
	}
	return os.WriteFile(page, []byte(before+from+text+to+after), 0o644)
}
