// Command crawler-demo crawls an HTTP API with a few access tokens, and spends
// all of their quota without ever being refused: alone, or as a fleet of
// processes that share the quota through Redis.
//
// Without -urls it demonstrates that against a simulated provider, which keeps
// the quota by a log of its own and is the judge. Run it with -h for its flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// Exit statuses. One that was interrupted is 130, as shells have it.
const (
	exitDone        = 0
	exitNotDone     = 1
	exitBadInput    = 2
	exitTooBusy     = 3
	exitInterrupted = 130
)

func main() {
	// What go-redis logs of its own comes back as an error too, and bad input
	// is to be answered by one line.
	logging.Disable()
	if len(os.Args) == 2 && os.Args[1] == workerArg {
		os.Exit(workerProcess(os.Stdin, os.Stdout, os.Stderr))
	}
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, demo: fullDemo, grace: 10 * time.Second, newProcess: thisProgram, listen: listenLoopback}
	os.Exit(a.exec(untilSignal(), os.Args[1:]))
}

// untilSignal returns a context that the first signal ends, which stops the crawl
// cleanly. The second ends the process at once; what signals do by default would
// not always do that, because a shell starts what is in the background of a
// script with SIGINT ignored.
func untilSignal() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx
}

// thisProgram is this program as a process of the fleet. It gets its orders on stdin,
// the tokens among them: arguments and environment are seen by everyone on the
// machine.
func thisProgram() (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(path, workerArg), nil
}

// listenLoopback is where the demo's provider listens: on a free port of this machine.
func listenLoopback() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// An app is the command, with its streams and what a test replaces.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	demo           demoSize
	grace          time.Duration             // for calls that were sent when the crawl is stopped
	newProcess     func() (*exec.Cmd, error) // makes a process of the fleet
	listen         func() (net.Listener, error)
}

// badInput is an error that the user mends by changing the input. It is said
// in one line, and nothing has been written.
type badInput struct{ error }

func badf(format string, args ...any) error { return badInput{fmt.Errorf(format, args...)} }

// exec runs the command and returns its exit status.
func (a *app) exec(ctx context.Context, args []string) int {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(a.stdout, help)
		return exitDone
	}
	if err == nil {
		var status int
		if status, err = a.run(ctx, o); err == nil {
			return status
		}
	}
	fmt.Fprintln(a.stderr, "crawler-demo: "+oneLine(err))
	switch _, bad := errors.AsType[badInput](err); {
	case bad:
		return exitBadInput
	case ctx.Err() != nil:
		return exitInterrupted
	}
	return exitNotDone
}

// oneLine is the error without the library's name in front, and without breaks.
func oneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "ration: ", "")
	return strings.Join(strings.Fields(text), " ")
}

// run crawls, and prints the result.
func (a *app) run(ctx context.Context, o options) (status int, err error) {
	var p plan
	if o.isDemo() {
		p, err = a.planDemo(o)
	} else {
		p, err = a.planCrawl(o)
	}
	if err != nil {
		return 0, err
	}
	defer p.close()

	if o.plot != o.out+defaultPlotExt { // where -out cannot be written -plot is not to blame
		if err := checkPlot(o.plot); err != nil {
			return 0, err
		}
	}
	// Nothing is written before all that can be wrong with the input was looked
	// at; -out comes last.
	if err := checkStore(ctx, &p); err != nil {
		return 0, err
	}
	defer p.removeKeys()
	pages, err := openOutFile(o, p)
	if err != nil {
		return 0, err
	}
	defer pages.close()

	human := a.stdout
	if o.json {
		human = a.stderr
	}
	fmt.Fprint(human, p.opening(pages))
	select {
	case <-time.After(time.Until(p.begin)):
	case <-ctx.Done():
	}
	probing := make(chan struct{})
	var probe wakeProbe
	if p.judge != nil {
		go probe.run(probing)
	}
	c := newCrawl(a, p, pages)
	crawlErr := c.run(ctx)
	close(probing)
	if err := pages.close(); err != nil && crawlErr == nil {
		crawlErr = fmt.Errorf("-out: %w", err)
	}
	s := c.summarise(ctx.Err() != nil, crawlErr, time.Duration(probe.worst.Load()))
	if err := s.plotTo(p, c.stats); err != nil {
		fmt.Fprintln(a.stderr, "crawler-demo: "+oneLine(err))
	}
	fmt.Fprint(human, s.text())
	if o.json {
		if err := s.writeJSON(a.stdout); err != nil {
			return 0, err
		}
	}
	return s.exit, nil
}
