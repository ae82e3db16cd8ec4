package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration/cmd/internal/forecast"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

func planCommand() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "when a crawl will be done, what binds, what one more token would do", ArgsUsage: "",
		Description: `Books the calls of a crawl in a log in memory whose clock is made to go on, as a
fleet would, and says when the last is sent. Without -workers there are as many as
are needed.

  ration plan -calls 1000000 -tokens 3 -limit 5000/1h -limit 10/1s
  ration plan -calls 20000 -limit 5000/1h -workers 8 -latency 2s
  ration plan -calls 20000 -redis redis://localhost:6379/0 -budget instagram
  ration plan -trace pages.jsonl -tokens 2 -limit 10/1s

With -api it says what comes of a fleet whose API allows something else than it is told:
how much is used, how much refused, and how the rate is found.

  ration plan -limit 6000/1m -api 3000/1m:gcra,burst=50`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "calls", Usage: "N: how many calls (required, or -trace)"},
			&cli.StringFlag{Name: "trace", Usage: "FILE: ask for calls when a log has them, as crawler-demo -out\nwrites it: what would have been under other limits?"},
			&cli.IntFlag{Name: "tokens", Value: 1, Usage: "N: tokens, each with an account of its own (default 1)"},
			&cli.StringSliceFlag{Name: "limit", Usage: "LIMIT: what each token may spend, such as 5000/1h or\n10/1s:gcra,burst=5; give it again for a further one"},
			&cli.StringSliceFlag{Name: "api", Usage: "LIMIT: what the API really allows, where that is another than\n-limit; give it again for a further one"},
			&cli.DurationFlag{Name: "for", Value: 5 * time.Minute, Usage: "TIME: how long the fleet asks, with -api (default 5m)"},
			&cli.IntFlag{Name: "cost", Value: 1, Usage: "N: units that a call costs (default 1)"},
			&cli.IntFlag{Name: "workers", Usage: "N: calls that are in flight at once at most (default: any number)"},
			&cli.DurationFlag{Name: "latency", Usage: "TIME: how long a call takes, such as 300ms"},
			redisFlag(),
			&cli.StringFlag{Name: "budget", Usage: "NAME: begin where the accounts of that budget in -redis stand now"},
			jsonFlag(),
		},
		Action: plan,
	}
}

func plan(ctx context.Context, c *cli.Command) error {
	if c.IsSet("api") {
		return planMisled(ctx, c)
	}
	p, err := planned(ctx, c)
	if err != nil {
		return err
	}
	var all []forecast.Forecast // of no, one and two tokens more
	for more := range 3 {
		with := p
		with.Accounts = slices.Clone(p.Accounts)
		for i := range more {
			with.Accounts = append(with.Accounts, store.Account{ID: fmt.Sprint("another-", i), Limits: p.Accounts[0].Limits})
		}
		one, err := with.Run(ctx)
		if wrong := new(forecast.Error); errors.As(err, &wrong) {
			return errUsage{err}
		} else if err != nil {
			return err
		}
		all = append(all, one)
	}
	return tell(c, &p, all)
}

// tell prints what comes of the crawl, and of one and of two tokens more.
func tell(c *cli.Command, p *forecast.Crawl, all []forecast.Forecast) error {
	first, binds, out, tokens := all[0], binding(p, all[0]), c.Root().Writer, len(p.Accounts)
	if c.Bool("json") {
		type more struct {
			Tokens  int     `json:"tokens"`
			Seconds float64 `json:"seconds"`
		}
		v := struct {
			Calls   int       `json:"calls"`
			Tokens  int       `json:"tokens"`
			Done    time.Time `json:"done"`
			Seconds float64   `json:"seconds"`
			Binds   string    `json:"binds"`
			Waited  int       `json:"waited,omitempty"` // with -trace
			Longest float64   `json:"longest_wait_s,omitempty"`
			More    []more    `json:"with_more_tokens"`
		}{p.Calls, tokens, first.Done, first.Took.Seconds(), binds, first.Waited, first.Longest.Seconds(), nil}
		for i, f := range all[1:] {
			v.More = append(v.More, more{tokens + i + 1, f.Took.Seconds()})
		}
		return printJSON(out, v)
	}
	fmt.Fprintf(out, "%s with %s: the last is sent after %v, at %s.\n", view.Counted(p.Calls, "call"), view.Counted(tokens, "token"),
		view.Round(first.Took), first.Done.Local().Format(time.DateTime))
	if p.Arrivals != nil {
		asked := p.Arrivals[len(p.Arrivals)-1].Sub(p.Begin)
		fmt.Fprintf(out, "They were asked for within %v: %d wait, at longest %v.\n", view.Round(asked), first.Waited, view.Round(first.Longest))
	} else {
		fmt.Fprintf(out, "What binds: %s.\n", binds)
	}
	for i, f := range all[1:] {
		fmt.Fprintf(out, "With %s: %v.\n", view.Counted(tokens+i+1, "token"), view.Round(f.Took))
	}
	plotProgress(out, p.Calls, first)
	return nil
}

// planned reads the flags.
func planned(ctx context.Context, c *cli.Command) (forecast.Crawl, error) {
	p := forecast.Crawl{Calls: c.Int("calls"), Cost: c.Int("cost"), Workers: c.Int("workers"), Latency: c.Duration("latency"), Begin: time.Now()}
	limits, err := limitsOf(c, "limit")
	if err != nil {
		return p, err
	}
	tokens := c.Int("tokens")
	if name := c.String("trace"); name != "" {
		if c.IsSet("calls") || c.IsSet("budget") {
			return p, usagef("-trace has its own calls, and begins with nothing used: leave -calls and -budget out")
		}
		if err := readTrace(&p, c, name); err != nil {
			return p, err
		}
	}
	switch {
	case c.NArg() > 0:
		return p, usagef("%q is no flag: ration plan takes flags alone", c.Args().First())
	case p.Calls < 1 || p.Calls > 100_000_000:
		return p, usagef("say how many calls: -calls N, from 1 to 100,000,000")
	case tokens < 1 || tokens > 10_000:
		return p, usagef("-tokens is %d: it must be from 1 to 10,000", tokens)
	case p.Cost < 1:
		return p, usagef("-cost is %d: it must be at least 1", p.Cost)
	case p.Workers < 0 || p.Latency < 0:
		return p, usagef("-workers and -latency must not be negative")
	case p.Workers > 0 && p.Latency == 0:
		return p, usagef("-workers needs -latency, or they bind nothing: -latency 300ms")
	case c.String("budget") != "":
		if len(limits) > 0 || c.IsSet("tokens") {
			return p, usagef("-budget has its own limits and tokens: leave -limit and -tokens out")
		}
		return p, standsAt(ctx, &p, c)
	case len(limits) == 0:
		return p, usagef("say what each token may spend: -limit 5000/1h, or -budget NAME of a -redis")
	}
	if err := limit.Validate(limits); err != nil {
		return p, errUsage{err}
	}
	for i := range tokens {
		p.Accounts = append(p.Accounts, store.Account{ID: fmt.Sprint("token-", i+1), Limits: limits})
	}
	return p, nil
}

// limitsOf returns what a flag gives as limits.
func limitsOf(c *cli.Command, flag string) (all []limit.Limit, err error) {
	for _, text := range c.StringSlice(flag) {
		l, err := limit.Parse(text)
		if err != nil {
			return nil, errUsage{err}
		}
		if l.InFlight > 0 {
			return nil, usagef("-%s %s: a plan counts calls in windows; say how many are in flight at once by -workers", flag, text)
		}
		all = append(all, l)
	}
	return all, nil
}

// readTrace takes the calls of a log, of whatever token.
func readTrace(p *forecast.Crawl, c *cli.Command, name string) error {
	in, err := openInput(c, name)
	if err != nil {
		return err
	}
	defer in.Close()
	calls, err := readCalls(in, "", "sent", "token")
	if err != nil {
		return err
	}
	for _, times := range calls {
		p.Arrivals = append(p.Arrivals, times...)
	}
	slices.SortFunc(p.Arrivals, time.Time.Compare)
	p.Calls, p.Begin = len(p.Arrivals), p.Arrivals[0]
	return nil
}

// standsAt begins where a budget's accounts stand.
func standsAt(ctx context.Context, p *forecast.Crawl, c *cli.Command) error {
	kept, client, err := openStore(c)
	if err != nil {
		return err
	}
	defer client.Close()
	d, err := describe(ctx, kept, c.String("budget"))
	if err != nil {
		return err
	}
	p.Begin = d.Now
	for _, a := range d.Accounts {
		p.StandAt(a.Usage, true)
	}
	if len(p.Accounts) == 0 {
		return fmt.Errorf("the budget %q has no account with limits", d.Budget)
	}
	return nil
}

// binding says what keeps the crawl from being faster: what lets the fewest calls through in the long
// run.
func binding(p *forecast.Crawl, f forecast.Forecast) string {
	if f.Took <= p.Latency {
		return "nothing: all calls leave at once"
	}
	least, what := math.Inf(1), ""
	for _, l := range p.Accounts[0].Limits {
		rate := 0.0
		for _, a := range p.Accounts {
			for _, o := range a.Limits {
				if o.Window == l.Window && o.Algorithm == l.Algorithm {
					rate += float64(o.Max) / o.Window.Seconds() / float64(p.Cost)
				}
			}
		}
		// A limit with a long window binds only who sends as much as it lets through at once.
		if total := l.Capacity() * len(p.Accounts); rate < least && p.Calls*p.Cost > total {
			l.Margin = 0
			least, what = rate, fmt.Sprintf("the limit %v of each token, %s a second in all", l, rateText(rate))
		}
	}
	if p.Workers > 0 && float64(p.Workers)/p.Latency.Seconds() < least {
		least = float64(p.Workers) / p.Latency.Seconds()
		what = fmt.Sprintf("%s, each busy for %v with a call: %s calls a second", view.Counted(p.Workers, "worker"), p.Latency, rateText(least))
	}
	return cmp.Or(what, "the quota that was used before")
}

func rateText(rate float64) string { return fmt.Sprintf("%.3g", rate) }

// planMisled says what comes of a fleet that is told other limits than its API has.
func planMisled(ctx context.Context, c *cli.Command) error {
	m := forecast.Misled{Workers: cmp.Or(c.Int("workers"), 64), Latency: cmp.Or(c.Duration("latency"), 40*time.Millisecond), Lasts: c.Duration("for"),
		Begin: time.Now().Truncate(time.Minute)}
	for _, name := range []string{"calls", "trace", "tokens", "cost", "budget"} {
		if c.IsSet(name) {
			return usagef("-api is about one token that is asked for as much as it gives: leave -%s out", name)
		}
	}
	for _, flag := range []struct {
		name string
		into *[]limit.Limit
	}{{"limit", &m.Told}, {"api", &m.Allowed}} {
		var err error
		if *flag.into, err = limitsOf(c, flag.name); err != nil {
			return err
		}
		if err = limit.Validate(*flag.into); err != nil {
			return usagef("-%s: %v", flag.name, err)
		}
	}
	switch {
	case m.Workers < 1 || m.Workers > 10_000 || m.Latency < 0:
		return usagef("-workers must be from 1 to 10,000, and -latency not negative")
	case m.Lasts < 10*time.Second || m.Lasts > 24*time.Hour:
		return usagef("-for is %v: it must be from 10s to 24h", m.Lasts)
	}
	f, err := m.Run(ctx)
	if err != nil {
		return err
	}
	paced := ""
	if f.Pace != nil {
		paced = f.Pace.String()
	}
	out := c.Root().Writer
	if c.Bool("json") {
		return printJSON(out, struct {
			Used    float64 `json:"used"`
			Served  int     `json:"served"`
			Refused int     `json:"refused"`
			First   int     `json:"refused_in_2s"`
			Pace    string  `json:"pace,omitempty"`
			Seconds []int   `json:"served_each_second"`
		}{f.Used, f.Served, f.Refused, f.RefusedAtFirst, paced, f.PerSecond})
	}
	fmt.Fprintf(out, "Told %s, where the API allows %s: in %v %.1f %% of that is used.\n", limit.Join(m.Told), limit.Join(m.Allowed), view.Round(m.Lasts), 100*f.Used)
	fmt.Fprintf(out, "Refused: %s, %d of them in the first two seconds.\n", view.Counted(f.Refused, "call"), f.RefusedAtFirst)
	if paced != "" {
		fmt.Fprintf(out, "The pace at the end: %s. Give the limit that fits, and nothing is refused.\n", paced)
	}
	const columns = 60
	var series []float64
	each := max(1, len(f.PerSecond)/columns)
	for at := 0; at+each <= len(f.PerSecond)-1; at += each {
		sum := 0
		for _, n := range f.PerSecond[at : at+each] {
			sum += n
		}
		series = append(series, float64(sum)/float64(each))
	}
	fmt.Fprintf(out, "\n%s\n", asciigraph.Plot(series, asciigraph.Height(8), asciigraph.Precision(0), asciigraph.LowerBound(0),
		asciigraph.Caption(fmt.Sprintf("calls served a second, over %v", view.Round(m.Lasts)))))
	return nil
}

// plotProgress draws how many calls are sent by when.
func plotProgress(out io.Writer, calls int, f forecast.Forecast) {
	if f.Took <= 0 || len(f.Sent) < 2 {
		return
	}
	const columns = 60
	var series []float64
	for column := range columns + 1 {
		at := f.Took * time.Duration(column) / columns
		done, _ := slices.BinarySearchFunc(f.Sent, at, func(a, b time.Duration) int { return cmp.Compare(a, b+1) })
		series = append(series, float64(calls)*float64(done)/float64(len(f.Sent)))
	}
	fmt.Fprintf(out, "\n%s\n", asciigraph.Plot(series, asciigraph.Height(8), asciigraph.Precision(0), asciigraph.LowerBound(0),
		asciigraph.Caption(fmt.Sprintf("calls sent, over %v", view.Round(f.Took)))))
}
