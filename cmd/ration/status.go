package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
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
			&cli.BoolFlag{Name: "watch", Usage: "show it anew every two seconds"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			if _, err := budgetArg(c); err != nil {
				return err
			}
			kept, client, err := openStore(c)
			if err != nil {
				return err
			}
			defer client.Close()
			if !c.Bool("watch") {
				return showStatus(ctx, c, kept, c.Root().Writer)
			}
			return watchStatus(ctx, c, kept)
		},
	}
}

const watchEvery = 2 * time.Second

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
	var all []store.Description
	if name := c.Args().First(); name != "" {
		d, err := describe(ctx, kept, name)
		if err != nil {
			return err
		}
		all = append(all, d)
	} else {
		var err error
		if all, err = describeAll(ctx, kept, ""); err != nil {
			return err
		}
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
		printBudget(out, d, colours(c.Root().Writer))
	}
	return nil
}

// printBudget prints one budget, in lines of at most 80 columns where names and causes allow.
func printBudget(out io.Writer, d store.Description, paint func(colour, text string) string) {
	fmt.Fprintf(out, "%s: %s, %s\n", paint(bold, d.Budget), counted(len(d.Accounts), "account"), counted(len(d.Workers), "worker"))
	if view.InForce(d) {
		fmt.Fprintf(out, "  limits set %s ago: %s\n", view.Round(d.Now.Sub(d.Card.Since())), strings.Join(view.Limits(d.Card.Limits), " and "))
	}
	printAccounts(out, d.Accounts, paint)
	for _, p := range d.Pauses {
		what := "all accounts"
		if p.Account != "" {
			what = "account " + view.NameOf(d.Accounts, p.Account)
		}
		if p.Key != "" {
			what = "part " + view.ShortID(p.Key) + " of " + what
		}
		printHoldup(out, paint, what+" paused", p.Until.Sub(d.Now), p.Cause)
	}
	for _, q := range d.Quarantined {
		printHoldup(out, paint, "token "+view.ShortID(q.Token)+" quarantined ("+q.Reason+")", q.Until.Sub(d.Now), q.Cause)
	}
	for _, w := range d.Workers {
		fmt.Fprintf(out, "  worker %s, heard of %s ago%s\n", view.Printable(w.ID), view.Round(d.Now.Sub(w.Seen)), loadText(w.Load))
	}
}

// loadText says what the callers of a worker do, as the rest of a line.
func loadText(l store.Load) string {
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(l.Waiting)) {
		why = append(why, fmt.Sprintf("%d for %s", l.Waiting[reason], view.Printable(reason)))
	}
	text := ""
	if waiting := view.Waiting(l); waiting > 0 {
		text += fmt.Sprintf(", %d waiting: %s", waiting, strings.Join(why, ", "))
	}
	if l.InFlight > 0 {
		text += fmt.Sprintf(", %d in flight", l.InFlight)
	}
	return text
}

// printAccounts prints a line for each limit of each account.
func printAccounts(out io.Writer, accounts []store.DescribedAccount, paint func(colour, text string) string) {
	if len(accounts) == 0 {
		return
	}
	rows, paints := [][]string{{"account", "limit", "used", "ahead", "left", "next in", "state"}}, []string{faint}
	for _, a := range accounts {
		name, full := view.Name(a), view.Full(a)
		for i, l := range a.Limits {
			state, colour, next := "free", "", ""
			switch {
			case a.PausedUntil.After(a.Now):
				state, colour = "paused "+view.Round(a.PausedUntil.Sub(a.Now)).String(), red
			case l.Remaining == 0:
				state, colour = "spent", yellow
			}
			if full[i] != "" {
				state += ", lowered from " + full[i]
			}
			if l.FreeAt.After(a.Now) {
				next = view.Round(l.FreeAt.Sub(a.Now)).String()
			}
			rows = append(rows, []string{name, view.Limit(l.Limit), fmt.Sprint(l.Used), fmt.Sprint(l.Ahead), fmt.Sprint(l.Remaining), next, state})
			paints = append(paints, colour)
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

func printHoldup(out io.Writer, paint func(colour, text string) string, what string, length time.Duration, cause string) {
	fmt.Fprintf(out, "  %s\n", paint(red, what+" for "+view.Round(length).String()+" more"))
	if cause != "" {
		for _, line := range wrap(view.Printable(cause), 76) {
			fmt.Fprintf(out, "    %s\n", line)
		}
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

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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
