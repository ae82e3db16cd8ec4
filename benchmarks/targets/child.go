package main

import (
	"context"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration/internal/testkit/simulated"
)

// An Order says how a process of this command does a job.
type Order struct {
	Redis      string // address
	Contender  string // of Hammer
	Goroutines int
	At         time.Time // when to begin
	Length     time.Duration

	URL     string // of Crawl
	Tokens  []string
	Limit   int
	Window  time.Duration
	Profile bool        // of Wait
	Slots   []time.Time // of Replay
	Came    []bool      // of Replay, whether the slot had come
}

// jobs are what such a process does: the methods that take an Order, by package
// net/rpc. What must be kept until the process ends is closed by what a job adds to
// ends.
type jobs struct {
	ctx      context.Context
	ends     []func()
	provider *simulated.Provider // the last that Provide started
}

// pipes are what two processes call each other through.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// obey does jobs until its input ends, and so until the process that gives them does,
// however that ends.
func obey(ctx context.Context, through pipes) error {
	j := &jobs{ctx: ctx}
	defer func() {
		for _, end := range j.ends {
			end()
		}
	}()
	server := rpc.NewServer()
	if err := server.RegisterName("jobs", j); err != nil {
		return err
	}
	server.ServeConn(through)
	return nil
}

// A child is a process of this command as the one sees it that started it.
type child struct {
	*rpc.Client
	cmd *exec.Cmd
}

func startChild(ctx context.Context, stderr io.Writer) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, childFlag)
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{rpc.NewClient(pipes{out, in}), cmd}, nil
}

// end ends the process and waits for it.
func (c *child) end() {
	_ = c.Close()
	_ = c.cmd.Wait() // what went wrong was said in place of an answer
}

// do has the process do a job.
func (c *child) do(job string, o Order, answer any) error {
	if err := c.Call("jobs."+job, o, answer); err != nil {
		return fmt.Errorf("%s, in a process of its own: %w", job, err)
	}
	return nil
}

// askAll has each of some processes do a job at once, and returns their answers.
func askAll[T any](children []*child, job string, order func(i int) Order) ([]T, error) {
	answers := make([]T, len(children))
	var group errgroup.Group
	for i, c := range children {
		o := order(i)
		group.Go(func() error { return c.do(job, o, &answers[i]) })
	}
	return answers, group.Wait()
}

// startChildren starts several.
func startChildren(ctx context.Context, stderr io.Writer, n int) (all []*child, end func(), err error) {
	end = func() {
		for _, c := range all {
			c.end()
		}
	}
	for range n {
		c, err := startChild(ctx, stderr)
		if err != nil {
			end()
			return nil, nil, err
		}
		all = append(all, c)
	}
	return all, end, nil
}
