package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

func yesFlag() cli.Flag { return &cli.BoolFlag{Name: "yes", Usage: "do not ask first"} }

func reasonFlag() cli.Flag {
	return &cli.StringFlag{Name: "reason", Usage: "TEXT: why, which every worker's events and \"ration status\" tell"}
}

func pauseCommand() *cli.Command {
	return &cli.Command{
		Name: "pause", Usage: "hold back all that spend a budget or an account", ArgsUsage: "BUDGET [ACCOUNT]",
		Description: `Keeps every process from sending anything with the account, or with any account of
the budget, for a time. Callers that wait book again behind the pause. A longer
pause that is in force stays. ACCOUNT is a label, an ID or its beginning.

  ration pause instagram -for 10m -reason "the provider is down"
  ration pause instagram ann -for 1h -endpoint "GET https://api.test/users/7"`,
		Flags: []cli.Flag{redisFlag(), &cli.DurationFlag{Name: "for", Usage: "TIME: how long, such as 10m (required)"}, reasonFlag(), yesFlag(),
			&cli.StringFlag{Name: "endpoint", Usage: "ENDPOINT: it alone, as \"GET https://api.test/users\"; IDs in the\npath do not matter; or a key of \"ration status -json\""}},
		Action: func(ctx context.Context, c *cli.Command) error {
			length := c.Duration("for")
			if length <= 0 {
				return usagef("say how long: -for 10m")
			}
			key, err := endpointKey(c, "endpoint")
			if err != nil {
				return err
			}
			return steer(ctx, c, "pause", func(ctx context.Context, kept *ration.RedisStore, d *store.Description, account, _ string) (string, error) {
				reply, err := kept.Pause(ctx, store.PauseRequest{Budget: d.Budget, Account: account, Key: key, For: length, Cause: causeOf(c)})
				return "paused until " + reply.Until.Local().Format(time.DateTime), err
			})
		},
	}
}

// endpointKey returns the key of an endpoint that a flag names; "": it names none.
func endpointKey(c *cli.Command, flag string) (string, error) {
	key, err := view.EndpointKey(c.String(flag))
	if err != nil {
		return "", usagef("-%s %w", flag, err)
	}
	return key, nil
}

func resumeCommand() *cli.Command {
	return &cli.Command{
		Name: "resume", Usage: "end pauses and quarantines before their time", ArgsUsage: "BUDGET [ACCOUNT]",
		Description: `Ends the pauses of an account, those of its endpoints included, and its pace; or all
pauses, paces and quarantines of the budget; or has the next request try a
quarantined token. Running processes go on at once. What was booked stays: a quota
that is spent is not given back. A pause of all accounts ends with all of the budget
only. With -endpoint only the pauses of that endpoint end, of all accounts or of one,
and those of its objects. ACCOUNT is a label, an ID or its beginning.

  ration resume instagram
  ration resume instagram ann
  ration resume instagram -token bob
  ration resume instagram -endpoint "GET https://api.test/users"
  ration resume instagram -except-endpoint "GET https://api.test/users"`,
		Flags: []cli.Flag{redisFlag(), &cli.StringFlag{Name: "token", Usage: "TOKEN: a quarantined one, by its label, its ID or the beginning\nof that"}, reasonFlag(), yesFlag(),
			&cli.StringFlag{Name: "endpoint", Usage: "ENDPOINT: the pauses of it alone; written as that of pause"},
			&cli.StringFlag{Name: "except-endpoint", Usage: "ENDPOINT: which stays paused for all accounts, for as long as\nanything was; written as that of pause"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			only, err := endpointKey(c, "endpoint")
			if err != nil {
				return err
			}
			except, err := endpointKey(c, "except-endpoint")
			switch {
			case err != nil:
				return err
			case except != "" && (c.NArg() > 1 || c.String("token") != "" || only != ""):
				return usagef("-except-endpoint frees a whole budget: name no account, no token and no other endpoint")
			case only != "" && c.String("token") != "":
				return usagef("name an endpoint or a token, not both")
			}
			return steer(ctx, c, "resume", func(ctx context.Context, kept *ration.RedisStore, d *store.Description, account, token string) (string, error) {
				if only != "" {
					n, err := view.ResumeParts(ctx, kept, d, account, only)
					return "resumed: " + view.Counted(n, "pause") + " of the endpoint", err
				}
				if token != "" {
					return "resumed", view.TryToken(ctx, kept, d, token)
				}
				last, found := longestPause(d, except)
				if !found {
					return "resumed", view.Resume(ctx, kept, d.Budget, account, operator())
				}
				if _, err := kept.Resume(ctx, store.ResumeRequest{Budget: d.Budget}); err != nil {
					return "", err
				}
				_, err := kept.Pause(ctx, store.PauseRequest{Budget: d.Budget, Key: except, For: last.Until.Sub(d.Now), SlowStart: last.SlowStart, Row: last.Row, Cause: last.Cause})
				if err == nil {
					err = view.EndPaces(ctx, kept, d.Budget, "", operator())
				}
				return "resumed, but for the endpoint", err
			})
		},
	}
}

// longestPause returns the pause that ends last of those of an endpoint; if there are none, of accounts. Without an endpoint there is none.
func longestPause(d *store.Description, endpoint string) (last store.Pause, found bool) {
	if endpoint == "" {
		return last, false
	}
	for _, key := range [...]string{endpoint, ""} {
		for _, p := range slices.Backward(d.Pauses) { // the last ends last
			if p.Key == key {
				return p, true
			}
		}
	}
	return last, false
}

func forgetCommand() *cli.Command {
	return &cli.Command{
		Name: "forget", Usage: "drop what is known of an account, as if it had never been booked", ArgsUsage: "BUDGET ACCOUNT",
		Description: `Drops what was booked of an account, its pauses and its limits. The next booking
finds an account of which nothing is used: do it if the log is wrong, not to get
more quota, since the provider goes on counting. Callers that wait book again.

  ration forget instagram ann`,
		Flags: []cli.Flag{redisFlag(), reasonFlag(), yesFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.NArg() < 2 {
				return usagef("name a budget and an account: ration forget BUDGET ACCOUNT")
			}
			return steer(ctx, c, "forget", func(ctx context.Context, kept *ration.RedisStore, d *store.Description, account, _ string) (string, error) {
				_, err := kept.Resume(ctx, store.ResumeRequest{Budget: d.Budget, Account: account, Forget: true})
				return "forgotten", err
			})
		},
	}
}

func resetCommand() *cli.Command {
	return &cli.Command{
		Name: "reset", Usage: "correct when an account's window that began with a call ends", ArgsUsage: "BUDGET ACCOUNT",
		Description: `Sets the end of the window under way, for the account's limits with first-use: a
provider's page says another than the log has. Other limits have no window to correct.

  ration reset shop ann -at 2026-01-15T12:30:00Z`,
		Flags: []cli.Flag{redisFlag(), &cli.StringFlag{Name: "at", Usage: "TIME: when it ends, such as 2026-01-15T12:30:00Z (required)"}, reasonFlag(), yesFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			at, err := time.Parse(time.RFC3339, c.String("at"))
			if err != nil {
				return usagef("say when the window ends: -at 2026-01-15T12:30:00Z")
			}
			if c.NArg() < 2 {
				return usagef("name a budget and an account: ration reset BUDGET ACCOUNT -at TIME")
			}
			return steer(ctx, c, "reset", func(ctx context.Context, kept *ration.RedisStore, d *store.Description, account, _ string) (string, error) {
				one := store.Account{ID: account}
				for _, a := range d.Accounts {
					for _, l := range a.Limits {
						if a.Account == account {
							one.Limits = append(one.Limits, l.Limit)
						}
					}
				}
				if !slices.ContainsFunc(one.Limits, func(l limit.Limit) bool { return l.FirstUse }) {
					return "", fmt.Errorf("the account has no limit with first-use, whose window begins with a call")
				}
				err := kept.Reset(ctx, store.ResetRequest{Budget: d.Budget, Account: one, At: at})
				return "reset: its window ends at " + at.Local().Format(time.DateTime), err
			})
		},
	}
}

// steer finds what is meant, shows it, asks, acts, and says what came of it.
func steer(ctx context.Context, c *cli.Command, verb string, act func(ctx context.Context, kept *ration.RedisStore, d *store.Description, account, token string) (string, error)) error {
	if c.NArg() < 1 || c.NArg() > 2 {
		return usagef("write ration %s %s", verb, c.ArgsUsage)
	}
	kept, client, err := openStore(c)
	if err != nil {
		return err
	}
	defer client.Close()
	d, err := describe(ctx, kept, c.Args().First())
	if err != nil {
		return err
	}
	what, account, token := "all accounts of "+d.Budget, "", ""
	if name := c.Args().Get(1); name != "" {
		if account, err = findAccount(&d, name); err != nil {
			return err
		}
		what = "account " + view.Printable(name) + " of " + d.Budget
	}
	if name := c.String("token"); name != "" {
		if account != "" {
			return usagef("name an account or a token, not both")
		}
		if token, err = findToken(&d, name); err != nil {
			return err
		}
		what = "token " + view.ShortID(token) + " of " + d.Budget
	}
	if name := c.String("endpoint"); name != "" {
		what = view.Printable(name) + " of " + what
	}
	out := c.Root().Writer
	fmt.Fprintf(out, "before: %s\n", heldBack(&d, account, token))
	if !c.Bool("yes") {
		if err := confirm(c, fmt.Sprintf("%s %s?", verb, what)); err != nil {
			return err
		}
	}
	did, err := act(ctx, kept, &d, account, token)
	if err != nil {
		return err
	}
	done := action{Budget: d.Budget, By: operator(), Did: what + " " + did, Reason: reasonOf(c)}
	if err := done.record(ctx, client); err != nil {
		return err
	}
	if d, err = kept.Describe(ctx, d.Budget); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\nnow: %s\n", what, did, heldBack(&d, account, token))
	return nil
}

// heldBack says what holds back an account, a token or, without either, a budget, and what an account has left.
func heldBack(d *store.Description, account, token string) string {
	var all []string
	for _, h := range view.Stopped(d, account, token) {
		all = append(all, h.What+h.For(d.Now))
	}
	for _, a := range d.Accounts {
		if a.Account != account {
			continue
		}
		for _, l := range a.Limits {
			all = append(all, fmt.Sprintf("%d of %s left", l.Remaining, view.Limit(l.Limit)))
		}
	}
	nothing := "nothing paused or quarantined"
	if token != "" {
		nothing = "the token is not quarantined"
	}
	return cmp.Or(strings.Join(all, ", "), nothing)
}

// confirm asks whether to go on. Where nobody can be asked it is an error.
func confirm(c *cli.Command, question string) error {
	in := c.Root().Reader
	if file, is := in.(*os.File); is && !isTerminal(file) {
		return usagef("%s Say -yes: there is no terminal on which to ask", question)
	}
	fmt.Fprintf(c.Root().Writer, "%s [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return fmt.Errorf("nothing was done")
	}
	return nil
}

// reasonOf returns why somebody acts, in a line.
func reasonOf(c *cli.Command) string {
	return strings.Join(strings.Fields(view.Printable(c.String("reason"))), " ")
}

// operator says who acts.
func operator() string {
	name := "an operator"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = "operator " + u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	return view.Printable(name)
}

// causeOf says in a line who acts, and why.
func causeOf(c *cli.Command) string {
	name := operator()
	if reason := reasonOf(c); reason != "" {
		name = reason + " (" + name + ")"
	}
	for len(name) > 500 || strings.ToValidUTF8(name, "") != name {
		name = strings.ToValidUTF8(name[:min(len(name), 500)], "")
	}
	return name
}
