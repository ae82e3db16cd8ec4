package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "what is left, who waits, what is paused and why", ArgsUsage: "[BUDGET]",
		Description: `Shows every budget and account in the store, the worst first: units used in the
window, booked ahead by callers that wait, and left; when the next is free; pauses
and quarantines with their causes; and the processes that share each budget.

  ration status -redis redis://localhost:6379/0
  ration status instagram -watch`,
		Flags: []cli.Flag{redisFlag(), jsonFlag(),
			&cli.BoolFlag{Name: "all", Usage: fmt.Sprintf("list all accounts, and not only the %d that are used most", mostAccounts)},
			&cli.BoolFlag{Name: "watch", Usage: "show it anew every two seconds"},
			&cli.BoolFlag{Name: "lines", Usage: "with -watch: a line a second of each budget, to scroll and to pipe"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			if _, err := budgetArg(c); err != nil {
				return err
			}
			kept, client, err := openStore(c)
			if err != nil {
				return err
			}
			defer client.Close()
			switch {
			case c.Bool("lines") && !c.Bool("watch"):
				return usagef("-lines needs -watch: ration status -watch -lines")
			case c.Bool("lines"):
				return watchLines(ctx, c, kept)
			case !c.Bool("watch"):
				return showStatus(ctx, c, kept, c.Root().Writer)
			}
			return watchStatus(ctx, c, kept)
		},
	}
}

const (
	watchEvery = 2 * time.Second
	linesEvery = time.Second
	// headEvery is after how many lines their head is printed again.
	headEvery = 20
)

// watchLines prints a line of each budget every second, until somebody has seen enough.
func watchLines(ctx context.Context, c *cli.Command, kept *ration.RedisStore) error {
	ticker := time.NewTicker(linesEvery)
	defer ticker.Stop()
	out, printed := c.Root().Writer, 0
	for {
		all, err := budgetsToShow(ctx, c, kept)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(out, time.Now().Format(time.TimeOnly)+" ration: "+err.Error())
		}
		if err == nil && len(all) == 0 {
			fmt.Fprintln(out, time.Now().Format(time.TimeOnly)+" no budget was booked in this Redis within a day")
		}
		for _, d := range all {
			if printed%headEvery == 0 {
				fmt.Fprintln(out, view.LineHead)
			}
			printed++
			fmt.Fprintln(out, time.Now().Format(time.TimeOnly)+" "+view.Line(&d))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// watchStatus shows the status until somebody has seen enough. A store that does not answer is asked
// again.
func watchStatus(ctx context.Context, c *cli.Command, kept *ration.RedisStore) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	out := c.Root().Writer
	for {
		var page bytes.Buffer
		if err := showStatus(ctx, c, kept, &page); err != nil && ctx.Err() == nil {
			fmt.Fprintln(&page, "ration: "+err.Error())
		}
		if isTerminal(out) {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		fmt.Fprintf(out, "%s\n\n%s", time.Now().Format(time.DateTime), page.String())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// showStatus writes the status. It has colours if the command's own output has.
func showStatus(ctx context.Context, c *cli.Command, kept *ration.RedisStore, out io.Writer) error {
	all, err := budgetsToShow(ctx, c, kept)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		views := []view.Budget{}
		for _, d := range all {
			views = append(views, view.Of(d))
		}
		return printJSON(out, views)
	}
	if len(all) == 0 {
		fmt.Fprintln(out, "No budget was booked in this Redis within a day.")
		return nil
	}
	view.WorstFirst(all)
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		printBudget(out, &d, c.Bool("all"), colours(c.Root().Writer))
	}
	return nil
}

// budgetsToShow returns the budget that the command names, or all.
func budgetsToShow(ctx context.Context, c *cli.Command, kept *ration.RedisStore) ([]store.Description, error) {
	name := c.Args().First()
	if name == "" {
		return describeAll(ctx, kept, "")
	}
	d, err := describe(ctx, kept, name)
	if err != nil {
		return nil, err
	}
	return []store.Description{d}, nil
}

// mostAccounts is how many accounts the status lists, the worst first, unless it is told to list all.
const mostAccounts = 20

// printBudget prints one budget, in lines of at most 80 columns where names and causes allow: how it is and why, and then the
// accounts and the workers.
func printBudget(out io.Writer, d *store.Description, every bool, paint func(colour, text string) string) {
	s := view.Summarize(d)
	for i, line := range wrap(view.Headline(d, s), 78) {
		fmt.Fprintln(out, strings.Repeat("  ", min(i, 1))+paint(headline(s), line))
	}
	for _, h := range view.Holdups(d, "") {
		printHoldup(out, paint, d.Budget, h, d.Now)
	}
	if s.Accounts > 0 {
		printWrapped(out, "  ", s.Rates(), 76)
	}
	for _, line := range []string{s.Failures(d.Accounts), s.Waits()} {
		if line != "" {
			printWrapped(out, "  ", line, 76)
		}
	}
	if line := s.Line(d.Now); line != "" {
		fmt.Fprintln(out, "  "+line)
	}
	if s.Accounts > 1 && s.In[view.StateQuarantined] == s.Accounts {
		fmt.Fprintln(out, "  all at once: look at the provider, the app and where secrets come from before\n  any token is replaced")
	}
	if view.InForce(*d) {
		by := ""
		if who := view.By(d.Card); who != "" {
			by = " by " + who
		}
		fmt.Fprintf(out, "  limits set %s ago%s: %s\n", view.Round(d.Now.Sub(d.Card.Since())), by, strings.Join(view.Limits(d.Card.Limits), " and "))
	}
	shown := d.Accounts
	if !every {
		shown = shown[:min(len(shown), mostAccounts)]
	}
	printAccounts(out, d, shown, paint)
	if more := len(d.Accounts) - len(shown); more > 0 {
		fmt.Fprintf(out, "  and %d more: -all lists them\n", more)
	}
	for _, p := range d.Permits {
		fmt.Fprintln(out, "  "+view.InFlightText(p))
	}
	printWorkers(out, d, every)
}

// printWorkers prints a line for each worker, and below it what is unusual about it; with every, also what it was given.
func printWorkers(out io.Writer, d *store.Description, every bool) {
	all := view.Workers(d)
	shown := all
	if !every {
		shown = all[:min(len(all), mostAccounts)]
	}
	for _, w := range shown {
		text := fmt.Sprintf("worker %s, heard of %s ago", view.Printable(w.ID), view.Round(d.Now.Sub(w.Seen)))
		switch doing := view.Doing(d, w.Worker); {
		case w.Silent || w.Load.IsIdle():
			text += ": " + doing
		case doing != "":
			text += ", " + doing
		}
		printWrapped(out, "  ", text, 78)
		if p := w.Load.Process; every && len(p.Limits) > 0 {
			line := fmt.Sprintf("given %s, revision %d", view.LimitsGiven(p), p.Revision)
			if p.Version != "" {
				line += ", ration " + view.Printable(p.Version)
			}
			fmt.Fprintln(out, "    "+line)
		}
		for _, odd := range w.Odd {
			printWrapped(out, "    ", odd, 74)
		}
	}
	if more := len(all) - len(shown); more > 0 {
		fmt.Fprintf(out, "  and %s more: -all lists them\n", view.Counted(more, "worker"))
	}
}

// headline is the colour of how a budget is.
func headline(s view.Summary) string {
	switch {
	case s.Stalled:
		return red
	case s.In[view.StatePaused]+s.In[view.StateQuarantined] > 0:
		return yellow
	}
	return bold
}

// printAccounts prints a line for each limit of each account.
func printAccounts(out io.Writer, d *store.Description, accounts []store.DescribedAccount, paint func(colour, text string) string) {
	if len(accounts) == 0 {
		return
	}
	rows, paints := [][]string{{"account", "limit", "used", "ahead", "left", "next in", "state"}}, []string{faint}
	for _, a := range accounts {
		name := view.Name(a)
		for _, l := range a.Limits {
			state, said, until := view.StateOf(d, a, l)
			left, next := fmt.Sprint(l.Remaining), ""
			if state >= view.StatePaused {
				left = "-" // of which nothing can be used
			}
			if until.After(a.Now) {
				next = view.Short(until.Sub(a.Now))
			}
			rows = append(rows, []string{name, view.Limit(l.Limit), fmt.Sprint(l.Used), fmt.Sprint(l.Ahead), left, next, said + view.PaceText(a, l)})
			paints = append(paints, map[view.State]string{view.StatePaused: red, view.StateQuarantined: red}[state])
			name = ""
		}
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		line := " "
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if isNumber := i >= 2 && i <= 5; isNumber {
				line += " " + gap + cell + " "
			} else {
				line += " " + cell + gap + " "
			}
		}
		if line = strings.TrimRight(line, " "); paints[n] != "" {
			line = paint(paints[n], line)
		}
		fmt.Fprintln(out, line)
	}
}

func printHoldup(out io.Writer, paint func(colour, text string) string, budget string, h view.Holdup, now time.Time) {
	colour := yellow
	if h.Stalls {
		colour = red
	}
	fmt.Fprintf(out, "  %s\n", paint(colour, h.What+h.For(now)))
	if h.Cause != "" {
		for _, line := range wrap(h.Cause, 76) {
			fmt.Fprintf(out, "    %s\n", line)
		}
	}
	if what, command := h.Cure(budget); command != "" {
		line := what + ": " + command
		if len(line) > 76 {
			line = what + ":\n      " + command
		}
		fmt.Fprintf(out, "    %s\n", line)
	}
}

// printWrapped prints a text in lines of at most so many characters, all but the first indented further.
func printWrapped(out io.Writer, indent, text string, width int) {
	for i, line := range wrap(text, width) {
		fmt.Fprintln(out, indent+strings.Repeat("  ", min(i, 1))+line)
	}
}

// wrap breaks a text into lines of at most so many characters, where it has spaces.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// What a terminal writes in colour.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	yellow = "33"
)

// colours returns what writes in colour, on a terminal that is to have any.
func colours(out io.Writer) func(colour, text string) string {
	if !isTerminal(out) || os.Getenv("NO_COLOR") != "" {
		return func(_, text string) string { return text }
	}
	return colourAlways
}

func colourAlways(colour, text string) string { return "\x1b[" + colour + "m" + text + "\x1b[0m" }

// paintIf writes in a colour, if there is one.
func paintIf(colour, text string) string {
	if colour == "" {
		return text
	}
	return colourAlways(colour, text)
}

func isTerminal(out io.Writer) bool {
	file, is := out.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}
