package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/urfave/cli/v3"

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
  ration plan -trace pages.jsonl -tokens 2 -limit 10/1s`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "calls", Usage: "N: how many calls (required, or -trace)"},
			&cli.StringFlag{Name: "trace", Usage: "FILE: ask for calls when a log has them, as crawler-demo -out\nwrites it: what would have been under other limits?"},
			&cli.IntFlag{Name: "tokens", Value: 1, Usage: "N: tokens, each with an account of its own (default 1)"},
			&cli.StringSliceFlag{Name: "limit", Usage: "LIMIT: what each token may spend, such as 5000/1h or\n10/1s:gcra,burst=20; give it again for a further one"},
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

// A crawl is what is planned.
type crawl struct {
	calls, cost, workers int
	latency              time.Duration
	accounts             []store.Account
	spent                map[string][]store.Spending // by account, what is used at the beginning
	arrivals             []time.Time                 // when each call is asked for, in order; nil: at the beginning
	begin                time.Time
}

// A forecast is what comes of a crawl.
type forecast struct {
	Calls  int             `json:"calls"`
	Tokens int             `json:"tokens"`
	Took   time.Duration   `json:"-"`
	Done   time.Time       `json:"done"`
	sent   []time.Duration // when each 500th of the calls was sent, from the beginning
	// Of calls that are asked for one after the other: how many waited, and the longest of them.
	waited  int
	longest time.Duration
}

func plan(ctx context.Context, c *cli.Command) error {
	p, err := planned(ctx, c)
	if err != nil {
		return err
	}
	first, err := p.run(ctx)
	if err != nil {
		return err
	}
	all := []forecast{first}
	for more := range 2 {
		with := p
		with.accounts = slices.Clone(p.accounts)
		for i := range more + 1 {
			with.accounts = append(with.accounts, store.Account{ID: fmt.Sprint("another-", i), Limits: p.accounts[0].Limits})
		}
		one, err := with.run(ctx)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	return p.tell(c, all)
}

// tell prints what comes of the crawl, and of one and of two tokens more.
func (p *crawl) tell(c *cli.Command, all []forecast) error {
	first, binds, out := all[0], p.binding(all[0]), c.Root().Writer
	if c.Bool("json") {
		type more struct {
			Tokens  int     `json:"tokens"`
			Seconds float64 `json:"seconds"`
		}
		v := struct {
			forecast
			Seconds float64 `json:"seconds"`
			Binds   string  `json:"binds"`
			Waited  int     `json:"waited,omitempty"` // with -trace
			Longest float64 `json:"longest_wait_s,omitempty"`
			More    []more  `json:"with_more_tokens"`
		}{first, first.Took.Seconds(), binds, first.waited, first.longest.Seconds(), nil}
		for _, f := range all[1:] {
			v.More = append(v.More, more{f.Tokens, f.Took.Seconds()})
		}
		return printJSON(out, v)
	}
	fmt.Fprintf(out, "%s with %s: the last is sent after %v, at %s.\n", counted(first.Calls, "call"), counted(first.Tokens, "token"),
		round(first.Took), first.Done.Local().Format(time.DateTime))
	if p.arrivals != nil {
		asked := p.arrivals[len(p.arrivals)-1].Sub(p.begin)
		fmt.Fprintf(out, "They were asked for within %v: %d wait, at longest %v.\n", round(asked), first.waited, round(first.longest))
	} else {
		fmt.Fprintf(out, "What binds: %s.\n", binds)
	}
	for _, f := range all[1:] {
		fmt.Fprintf(out, "With %s: %v.\n", counted(f.Tokens, "token"), round(f.Took))
	}
	plotProgress(out, first)
	return nil
}

// planned reads the flags.
func planned(ctx context.Context, c *cli.Command) (crawl, error) {
	p := crawl{calls: c.Int("calls"), cost: c.Int("cost"), workers: c.Int("workers"), latency: c.Duration("latency"), begin: time.Now()}
	var limits []limit.Limit
	for _, text := range c.StringSlice("limit") {
		l, err := limit.Parse(text)
		if err != nil {
			return p, errUsage{err}
		}
		limits = append(limits, l)
	}
	tokens := c.Int("tokens")
	if name := c.String("trace"); name != "" {
		if c.IsSet("calls") || c.IsSet("budget") {
			return p, usagef("-trace has its own calls, and begins with nothing used: leave -calls and -budget out")
		}
		if err := p.readTrace(c, name); err != nil {
			return p, err
		}
	}
	switch {
	case c.NArg() > 0:
		return p, usagef("%q is no flag: ration plan takes flags alone", c.Args().First())
	case p.calls < 1 || p.calls > 100_000_000:
		return p, usagef("say how many calls: -calls N, from 1 to 100,000,000")
	case tokens < 1 || tokens > 10_000:
		return p, usagef("-tokens is %d: it must be from 1 to 10,000", tokens)
	case p.cost < 1:
		return p, usagef("-cost is %d: it must be at least 1", p.cost)
	case p.workers < 0 || p.latency < 0:
		return p, usagef("-workers and -latency must not be negative")
	case p.workers > 0 && p.latency == 0:
		return p, usagef("-workers needs -latency, or they bind nothing: -latency 300ms")
	case c.String("budget") != "":
		if len(limits) > 0 || c.IsSet("tokens") {
			return p, usagef("-budget has its own limits and tokens: leave -limit and -tokens out")
		}
		return p, p.standsAt(ctx, c)
	case len(limits) == 0:
		return p, usagef("say what each token may spend: -limit 5000/1h, or -budget NAME of a -redis")
	}
	for i := range limits {
		if limits[i].Margin == 0 {
			limits[i].Margin = limits[i].DefaultMargin()
		}
	}
	if err := limit.Validate(limits); err != nil {
		return p, errUsage{err}
	}
	for i := range tokens {
		p.accounts = append(p.accounts, store.Account{ID: fmt.Sprint("token-", i+1), Limits: limits})
	}
	return p, nil
}

// readTrace takes the calls of a log, of whatever token.
func (p *crawl) readTrace(c *cli.Command, name string) error {
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
		p.arrivals = append(p.arrivals, times...)
	}
	slices.SortFunc(p.arrivals, time.Time.Compare)
	p.calls, p.begin = len(p.arrivals), p.arrivals[0]
	return nil
}

// standsAt begins where a budget's accounts stand: what is used of a limit was spent evenly from when
// the first of it left, as far as anybody knows.
func (p *crawl) standsAt(ctx context.Context, c *cli.Command) error {
	kept, client, err := openStore(c)
	if err != nil {
		return err
	}
	defer client.Close()
	d, err := describe(ctx, kept, c.String("budget"))
	if err != nil {
		return err
	}
	p.begin, p.spent = d.Now, make(map[string][]store.Spending)
	for _, a := range d.Accounts {
		if len(a.Limits) == 0 {
			continue
		}
		account := store.Account{ID: a.Account}
		longest := a.Limits[0]
		for _, l := range a.Limits {
			account.Limits = append(account.Limits, l.Limit)
			if l.Limit.Window > longest.Limit.Window {
				longest = l
			}
		}
		if units := longest.Used + longest.Ahead; units > 0 {
			p.spent[a.Account] = spread(units, longest.FreeAt.Add(-longest.Limit.Window), d.Now)
		}
		p.accounts = append(p.accounts, account)
	}
	if len(p.accounts) == 0 {
		return fmt.Errorf("the budget %q has no account with limits", d.Budget)
	}
	return nil
}

// spread returns so many units that were spent evenly between two instants.
func spread(units int, from, to time.Time) (all []store.Spending) {
	const most = 100
	if from.After(to) || from.IsZero() {
		from = to
	}
	parts := min(units, most)
	for i := range parts {
		part := units*(i+1)/parts - units*i/parts
		at := from.Add(to.Sub(from) * time.Duration(i) / time.Duration(parts))
		all = append(all, store.Spending{Slot: at.Truncate(time.Microsecond), Cost: part})
	}
	return all
}

// binding says what keeps the crawl from being faster: what lets the fewest calls through in the long
// run.
func (p *crawl) binding(f forecast) string {
	if f.Took <= p.latency {
		return "nothing: all calls leave at once"
	}
	least, what := math.Inf(1), ""
	for _, l := range p.accounts[0].Limits {
		rate := 0.0
		for _, a := range p.accounts {
			for _, o := range a.Limits {
				if o.Window == l.Window && o.Algorithm == l.Algorithm {
					rate += float64(o.Max) / o.Window.Seconds() / float64(p.cost)
				}
			}
		}
		// A limit with a long window binds only who sends as much as it lets through at once.
		if total := l.Capacity() * len(p.accounts); rate < least && p.calls*p.cost > total {
			l.Margin = 0
			least, what = rate, fmt.Sprintf("the limit %v of each token, %s a second in all", l, rateText(rate))
		}
	}
	if p.workers > 0 && float64(p.workers)/p.latency.Seconds() < least {
		least = float64(p.workers) / p.latency.Seconds()
		what = fmt.Sprintf("%s, each busy for %v with a call: %s calls a second", counted(p.workers, "worker"), p.latency, rateText(least))
	}
	return cmp.Or(what, "the quota that was used before")
}

func rateText(rate float64) string { return fmt.Sprintf("%.3g", rate) }

// plotProgress draws how many calls are sent by when.
func plotProgress(out io.Writer, f forecast) {
	if f.Took <= 0 || len(f.sent) < 2 {
		return
	}
	const columns = 60
	var series []float64
	for column := range columns + 1 {
		at := f.Took * time.Duration(column) / columns
		done, _ := slices.BinarySearchFunc(f.sent, at, func(a, b time.Duration) int { return cmp.Compare(a, b+1) })
		series = append(series, float64(f.Calls)*float64(done)/float64(len(f.sent)))
	}
	fmt.Fprintf(out, "\n%s\n", asciigraph.Plot(series, asciigraph.Height(8), asciigraph.Precision(0), asciigraph.LowerBound(0),
		asciigraph.Caption(fmt.Sprintf("calls sent, over %v", round(f.Took)))))
}
