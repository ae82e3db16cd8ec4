package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/limit"
)

func auditCommand() *cli.Command {
	return &cli.Command{
		Name: "audit", Usage: "whether any window of a log of calls held more than a limit", ArgsUsage: "FILE",
		Description: `Reads a log of calls, a JSON object or a text a line, and says of each token whether
any window, of whatever alignment, held more calls than the limit, where and by how
much. The exit status is 1 if one did. "-" is standard input.

  ration audit -limit 5000/1h pages.jsonl          what crawler-demo -out writes
  ration audit -limit 10/1s -time ts -token key access.jsonl
  ration audit -limit 60/1m -layout "2006-01-02 15:04:05" access.log`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "limit", Usage: "LIMIT: such as 5000/1h (required)"},
			&cli.StringFlag{Name: "time", Value: "sent", Usage: "FIELD: the field of JSON with the time (default sent)"},
			&cli.StringFlag{Name: "token", Value: "token", Usage: "FIELD: the field of JSON by which calls are told apart\n(default token); empty: all are of one"},
			&cli.StringFlag{Name: "layout", Usage: "LAYOUT: lines are text that begins with a time, written as Go does"},
			jsonFlag(),
		},
		Action: audit,
	}
}

// An excess is the fullest window of a token.
type excess struct {
	Token string    `json:"token"`
	Calls int       `json:"calls"`
	Most  int       `json:"most_in_window"`
	Over  int       `json:"over"`
	From  time.Time `json:"from"` // of the fullest window
	times []time.Time
}

func audit(_ context.Context, c *cli.Command) error {
	if c.String("limit") == "" {
		return usagef("say the limit: -limit 5000/1h")
	}
	l, err := limit.Parse(c.String("limit"))
	if err != nil {
		return errUsage{err}
	}
	if l.InFlight > 0 {
		return usagef("-limit %s: a log of calls does not say how many were in flight; give a limit with a window", l)
	}
	if c.NArg() != 1 {
		return usagef("name one file, or - for standard input")
	}
	in, err := openInput(c, c.Args().First())
	if err != nil {
		return err
	}
	defer in.Close()
	calls, err := readCalls(in, c.String("layout"), c.String("time"), c.String("token"))
	if err != nil {
		return err
	}
	var all []excess
	for token, times := range calls {
		all = append(all, fullest(token, times, l))
	}
	slices.SortFunc(all, func(a, b excess) int { return cmp.Or(-cmp.Compare(a.Most, b.Most), strings.Compare(a.Token, b.Token)) })
	over := slices.ContainsFunc(all, func(e excess) bool { return e.Over > 0 })
	out := c.Root().Writer
	if c.Bool("json") {
		err = printJSON(out, all)
	} else {
		for _, e := range all {
			verdict := "never more than the limit"
			if e.Over > 0 {
				verdict = fmt.Sprintf("%d MORE than the limit", e.Over)
			}
			fmt.Fprintf(out, "%s: %s; the fullest window of %v holds %d of %d, from %s: %s\n", cmp.Or(view.Printable(view.ShortID(e.Token)), "all"),
				view.Counted(e.Calls, "call"), l.Window, e.Most, l.Max, e.From.Format("2006-01-02 15:04:05.000000"), verdict)
		}
		plotWindow(out, all[0], l)
	}
	if err == nil && over {
		err = errFound
	}
	return err
}

// readCalls returns when the calls of each token were.
func readCalls(in io.Reader, layout, timeField, tokenField string) (map[string][]time.Time, error) {
	calls := make(map[string][]time.Time)
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			token, at, err := readCall(text, layout, timeField, tokenField)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			calls[token] = append(calls[token], at)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("there is no call in it")
	}
	return calls, nil
}

func readCall(text, layout, timeField, tokenField string) (token string, at time.Time, err error) {
	if layout != "" {
		at, err = time.ParseInLocation(layout, text[:min(len(layout), len(text))], time.Local)
		if err != nil {
			return "", at, fmt.Errorf("it does not begin with a time such as %q", layout)
		}
		return "", at, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return "", at, fmt.Errorf("it is no JSON object: say -layout for lines of text")
	}
	raw, found := fields[timeField]
	if !found {
		return "", at, fmt.Errorf("it has no field %q: say -time", timeField)
	}
	var said string
	var seconds float64
	switch {
	case json.Unmarshal(raw, &said) == nil:
		if at, err = time.Parse(time.RFC3339Nano, said); err != nil {
			return "", at, fmt.Errorf("its %s is no time such as 2026-01-15T12:00:00Z", timeField)
		}
	case json.Unmarshal(raw, &seconds) == nil:
		at = time.UnixMicro(int64(seconds * 1e6))
	default:
		return "", at, fmt.Errorf("its %s is neither a time nor a number of seconds", timeField)
	}
	if raw, found := fields[tokenField]; found && json.Unmarshal(raw, &token) != nil {
		token = string(raw)
	}
	return token, at, nil
}

// fullest finds the window that holds the most calls: one that begins with a call. A window does not
// hold what is a window later.
func fullest(token string, times []time.Time, l limit.Limit) excess {
	slices.SortFunc(times, time.Time.Compare)
	e := excess{Token: token, Calls: len(times), times: times}
	begins := 0
	for i, at := range times {
		for at.Sub(times[begins]) >= l.Window {
			begins++
		}
		if held := i - begins + 1; held > e.Most {
			e.Most, e.From = held, times[begins]
		}
	}
	e.Over = max(0, e.Most-l.Max)
	return e
}

// plotWindow draws how many calls the window that ends at each instant holds.
func plotWindow(out io.Writer, e excess, l limit.Limit) {
	first, last := e.times[0], e.times[len(e.times)-1]
	if !last.After(first) {
		return
	}
	const columns = 60
	held, most := make([]float64, columns+1), make([]float64, columns+1)
	begins := 0
	for i, at := range e.times {
		for at.Sub(e.times[begins]) >= l.Window {
			begins++
		}
		column := int(at.Sub(first) * columns / last.Sub(first))
		held[column] = max(held[column], float64(i-begins+1))
	}
	for i := range most {
		most[i] = float64(l.Max)
		if held[i] == 0 { // no call: what the window before held that is still in it
			end := first.Add(last.Sub(first) * time.Duration(i) / columns)
			for _, at := range e.times {
				if !at.After(end) && end.Sub(at) < l.Window {
					held[i]++
				}
			}
		}
	}
	fmt.Fprintf(out, "\n%s\n", asciigraph.PlotMany([][]float64{most, held}, asciigraph.Height(8), asciigraph.Precision(0), asciigraph.LowerBound(0),
		asciigraph.Caption(fmt.Sprintf("calls of %s in any %v, over %v; the line is the limit", cmp.Or(view.Printable(view.ShortID(e.Token)), "all"), l.Window, view.Round(last.Sub(first))))))
}
