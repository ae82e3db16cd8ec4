package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// explain reads a response and prints what ration concludes from it.
func explain(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("explain", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("provider", "generic", "")
	at := flags.String("at", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage{err}
	}
	if *name == "list" {
		_, err := fmt.Fprintln(out, strings.Join(presets.Names(), "\n"))
		return err
	}
	api, err := presets.Named(*name)
	if err != nil {
		return errUsage{fmt.Errorf("%w; -provider list lists all", err)}
	}
	if flags.NArg() > 1 {
		return usagef("name one file: there are %d (flags come before the file)", flags.NArg())
	}
	var arrived time.Time
	if *at != "" {
		if arrived, err = time.Parse(time.RFC3339, *at); err != nil {
			return usagef("-at %q: write it as 2026-01-15T12:00:00Z", *at)
		}
	}
	if file := flags.Arg(0); file != "" && file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return errUsage{err}
		}
		defer opened.Close()
		in = opened
	}
	resp, err := readResponse(in)
	if err != nil {
		return err
	}
	if arrived.IsZero() {
		arrived = time.Now()
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			arrived = date
		}
	}
	feedback := api.ReadResponse(resp, arrived)
	if *asJSON {
		return json.NewEncoder(out).Encode(concluded(feedback))
	}
	_, err = io.WriteString(out, inWords(resp, api, feedback))
	return err
}

// A conclusion is what -json prints. An unknown value is null.
type conclusion struct {
	Refused          bool          `json:"refused"`
	Reason           ration.Reason `json:"reason"`
	Limit            *int64        `json:"limit"`
	Remaining        *int64        `json:"remaining"`
	RemainingPercent *float64      `json:"remaining_percent"`
	Wait             *float64      `json:"wait_s"`
	Cooldown         *float64      `json:"cooldown_s"`
	Scope            *ration.Scope `json:"scope"`
	DeadToken        bool          `json:"dead_token"`
	Retryable        bool          `json:"retryable"`
}

func concluded(f ration.Feedback) conclusion {
	c := conclusion{
		Refused: f.Refused, Reason: f.Reason, Limit: known(f.Limit), Remaining: known(f.Remaining),
		RemainingPercent: known(f.RemainingPercent), Wait: secondsOf(f.Wait), Cooldown: secondsOf(f.Cooldown),
		DeadToken: f.DeadToken, Retryable: f.Retryable,
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
