package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// An order is what a process of this command is told to do. A process takes orders
// from its standard input, one JSON object each, and answers each with one on its
// standard output. It ends when its input does, and so with the process that
// started it, however that ends.
type order struct {
	Do string // the name of a job

	Redis      string // address
	Contender  string // of hammer
	Goroutines int
	At         time.Time // when to begin
	Length     time.Duration

	URL     string // of crawl
	Tokens  []string
	Limit   int
	Window  time.Duration
	Profile bool        // of wait
	Slots   []time.Time // of replay
	Came    []bool      // of replay, whether the slot had come
}

// jobs are what a process can do. What must be kept until the process ends is
// closed by what the job adds to ends.
var jobs = map[string]func(ctx context.Context, o order, ends *[]func()) (any, error){
	"hammer":  hammerInChild,
	"serve":   serveInChild,
	"provide": provideInChild,
	"crawl":   crawlInChild,
	"replay":  replayInChild,
	"wait":    waitInChild,
	"spin":    spinInChild,
}

// obey is such a process.
func obey(ctx context.Context, in io.Reader, out io.Writer) error {
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		job := jobs[o.Do]
		if job == nil {
			return fmt.Errorf("there is no job %q", o.Do)
		}
		answer, err := job(ctx, o, &ends)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Do, err)
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
}

// A child is a process of this command as the one sees it that started it.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
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
	return &child{cmd: cmd, in: in, out: json.NewDecoder(bufio.NewReader(out))}, nil
}

// tell gives an order.
func (c *child) tell(o order) error { return json.NewEncoder(c.in).Encode(o) }

// hear reads the answer.
func (c *child) hear(answer any) error {
	if err := c.out.Decode(answer); err != nil {
		return fmt.Errorf("a process of this command ended before it answered: %w", err)
	}
	return nil
}

// ask does both.
func (c *child) ask(o order, answer any) error {
	if err := c.tell(o); err != nil {
		return err
	}
	return c.hear(answer)
}

// end ends the process and waits for it.
func (c *child) end() {
	_ = c.in.Close()
	_ = c.cmd.Wait() // what went wrong was said in place of an answer
}

// askAll gives each of some processes an order, and then reads all their answers.
func askAll[T any](children []*child, o func(i int) order) ([]T, error) {
	for i, c := range children {
		if err := c.tell(o(i)); err != nil {
			return nil, err
		}
	}
	answers := make([]T, len(children))
	for i, c := range children {
		if err := c.hear(&answers[i]); err != nil {
			return nil, err
		}
	}
	return answers, nil
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
