package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "what ration reads in a response, and does", ArgsUsage: "[FILE|FOLDER]",
		Description: `Reads an HTTP response as "curl -i" prints it, from FILE or standard input, and
says what a Transport reads in it and does: whether it is a refusal and why, what is
left, what rests and for how long, and what was not understood. A line of a log that
tells of a refusal which was not understood is read too. Of a FOLDER of responses, or
with -har, it prints a table.

  curl -si https://api.github.com/users/golang | ration explain -provider github`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "provider", Value: "generic", Usage: "NAME: the API that sent it; \"list\" lists the names (default generic)"},
			&cli.StringFlag{Name: "at", Usage: "TIME: when it arrived, as 2026-01-15T12:00:00Z (default its Date, or now)"},
			&cli.BoolFlag{Name: "har", Usage: "FILE is a HAR file, as browsers save it: explain each response in it"},
			jsonFlag(),
		},
		Action: explain,
	}
}

// explain reads a response and prints what ration concludes from it.
func explain(_ context.Context, c *cli.Command) error {
	out := c.Root().Writer
	if c.String("provider") == "list" {
		_, err := fmt.Fprintln(out, strings.Join(presets.Names(), "\n"))
		return err
	}
	api, err := presets.Named(c.String("provider"))
	if err != nil {
		return errUsage{fmt.Errorf("%w; -provider list lists all", err)}
	}
	if c.NArg() > 1 {
		return usagef("name one file: there are %d", c.NArg())
	}
	var arrived time.Time
	if at := c.String("at"); at != "" {
		if arrived, err = time.Parse(time.RFC3339, at); err != nil {
			return usagef("-at %q: write it as 2026-01-15T12:00:00Z", at)
		}
	}
	if info, err := os.Stat(c.Args().First()); err == nil && info.IsDir() {
		all, err := responsesIn(c.Args().First(), arrived)
		if err != nil {
			return err
		}
		return explainAll(out, all, api, c.Bool("json"))
	}
	in, err := openInput(c, cmp.Or(c.Args().First(), "-"))
	if err != nil {
		return err
	}
	defer in.Close()
	if c.Bool("har") {
		all, err := readHAR(in, arrived)
		if err != nil {
			return err
		}
		return explainAll(out, all, api, c.Bool("json"))
	}
	resp, err := readResponse(in)
	if err != nil {
		return err
	}
	feedback := api.ReadResponse(resp, arrivalOf(resp, arrived))
	if c.Bool("json") {
		return json.NewEncoder(out).Encode(concluded(resp, api, feedback))
	}
	_, err = io.WriteString(out, inWords(resp, api, feedback))
	return err
}

// arrivalOf returns when a response arrived: as it was said, or else by its Date, or now.
func arrivalOf(resp *http.Response, said time.Time) time.Time {
	if !said.IsZero() {
		return said
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		return date
	}
	return time.Now()
}

// A conclusion is what -json prints. An unknown value is null.
type conclusion struct {
	Refused          bool            `json:"refused"`
	Reason           provider.Reason `json:"reason"`
	Limit            *int64          `json:"limit"`
	Remaining        *int64          `json:"remaining"`
	RemainingPercent *float64        `json:"remaining_percent"`
	Wait             *float64        `json:"wait_s"`
	Cooldown         *float64        `json:"cooldown_s"`
	Scope            *provider.Scope `json:"scope"`
	DeadToken        bool            `json:"dead_token"`
	Retryable        bool            `json:"retryable"`
	Does             doing           `json:"does"`
	Unread           []string        `json:"unread,omitempty"` // what was not understood
}

func concluded(resp *http.Response, api *ration.Provider, f ration.Feedback) conclusion {
	does := consequenceOf(resp, api, &f)
	c := conclusion{
		Refused: f.Refused, Reason: f.Reason, Limit: known(f.Limit), Remaining: known(f.Remaining),
		RemainingPercent: known(f.RemainingPercent), Wait: secondsOf(f.Wait), Cooldown: secondsOf(f.Cooldown),
		DeadToken: f.DeadToken, Retryable: f.Retryable, Does: does.inJSON(), Unread: unread(&f),
	}
	if f.Scope != "" {
		c.Scope = &f.Scope
	}
	return c
}

func known[T any](t provider.Optional[T]) *T {
	if !t.Known {
		return nil
	}
	return &t.Value
}

func secondsOf(t provider.Optional[time.Duration]) *float64 {
	if !t.Known {
		return nil
	}
	n := t.Value.Seconds()
	return &n
}
