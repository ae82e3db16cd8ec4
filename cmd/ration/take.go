package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v3"
)

func takeCommand() *cli.Command {
	return &cli.Command{
		Name: "take", Usage: "run a command once its slot has come", ArgsUsage: "BUDGET -- COMMAND...",
		Description: `Asks a running "ration proxy" for a slot, waits for it, and runs a command that sends one
request. Where the configuration hands out tokens, the command's environment has what is
to be sent: RATION_HEADER is "Authorization: Bearer ...". RATION_TOKEN is the token's ID.

  ration take github -- sh -c 'curl -sH "$RATION_HEADER" https://api.github.com/user'
  ration take -cost 2 -max-wait 10s github -- ./crawl-one

The exit status is the command's; 1: there was no slot, and nothing was run.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "proxy", Usage: "URL: of the proxy (default $RATION_PROXY, or http://127.0.0.1:8080)"},
			&cli.IntFlag{Name: "cost", Usage: "UNITS: what the request costs (default what the budget says)"},
			&cli.StringFlag{Name: "url", Usage: "URL: what is going to be asked for, so that pauses of it hold"},
			&cli.StringFlag{Name: "caller", Usage: "NAME: under which the proxy counts it"},
			&cli.StringFlag{Name: "max-wait", Usage: "TIME: the longest to wait (default what the proxy allows)"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			budget, command := c.Args().First(), c.Args().Tail()
			if len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			if budget == "" || len(command) == 0 {
				return usagef("name a budget, and after -- the command to run")
			}
			asked := map[string]any{"budget": budget}
			for flag, key := range map[string]string{"url": "url", "caller": "caller", "max-wait": "max_wait"} {
				if c.IsSet(flag) {
					asked[key] = c.String(flag)
				}
			}
			if c.IsSet("cost") {
				asked["cost"] = c.Int("cost")
			}
			var taken struct {
				Grant, Token string
				Headers      map[string]string
			}
			if err := askProxy(ctx, proxyAddress(c)+"/v1/take", asked, &taken); err != nil {
				return err
			}
			env := append(os.Environ(), "RATION_TOKEN="+taken.Token)
			for name, value := range taken.Headers {
				env = append(env, fmt.Sprintf("RATION_HEADER=%s: %s", name, value))
			}
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, c.Root().Reader, c.Root().Writer, c.Root().ErrWriter
			ran := cmd.Run()
			// What the origin said is not known here: a command prints it, and nobody reads that.
			_ = askProxy(context.WithoutCancel(ctx), proxyAddress(c)+"/v1/report", map[string]any{"grant": taken.Grant}, nil)
			if exit, is := errors.AsType[*exec.ExitError](ran); is {
				return errStatus(exit.ExitCode())
			}
			return ran
		},
	}
}

// direct asks the proxy itself, and nobody else on the way: there are secrets in what it says.
var direct = &http.Client{Transport: &http.Transport{Proxy: nil}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// askProxy sends JSON to a proxy, and reads its answer.
func askProxy(ctx context.Context, address string, asked, into any) error {
	text, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return errUsage{err}
	}
	req.Header.Set("Ration-Secret", os.Getenv("RATION_SECRET"))
	resp, err := direct.Do(req)
	if err != nil {
		return fmt.Errorf("no proxy answers: start \"ration proxy\", or name it by -proxy: %v", errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var said struct{ Detail string }
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		if json.Unmarshal(text, &said) != nil || said.Detail == "" {
			said.Detail = resp.Status
		}
		return errors.New(strings.TrimPrefix(said.Detail, "ration: "))
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// proxyAddress is where "ration take" asks.
func proxyAddress(c *cli.Command) string {
	return strings.TrimSuffix(cmp.Or(c.String("proxy"), os.Getenv("RATION_PROXY"), "http://127.0.0.1:8080"), "/")
}
