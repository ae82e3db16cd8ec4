package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration/dashboard"
	"github.com/ration-go/ration/internal/hosts"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "a page to watch a fleet by",
		Description: `Serves a page of every budget and account in the store, live: windows as charts,
who waits for what, pauses, quarantines and refusals. The same addresses answer
"Accept: application/json" with JSON. /metrics has the sums for Prometheus, and
/healthz says whether Redis answers.

The page answers this machine only. To serve others, give it a password, the name by
which they ask for it, and a proxy that speaks HTTPS: a password in clear is none.

  ration serve -redis redis://localhost:6379/0
  ration serve -listen 0.0.0.0:8300 -host fleet.internal -password-file /run/secrets/ration`,
		Flags: []cli.Flag{redisFlag(),
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8300", Usage: "HOST:PORT: where (default 127.0.0.1:8300)"},
			&cli.StringSliceFlag{Name: "host", Usage: "NAME: a name by which the page may be asked for, beside\nthose of this machine; may be repeated"},
			&cli.StringFlag{Name: "password-file", Usage: "FILE: has the password that is asked for"},
			&cli.BoolFlag{Name: "actions", Usage: "let people pause, resume and forget"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.NArg() > 0 {
				return usagef("serve takes no arguments: it serves every budget in the store")
			}
			password, err := readPassword(c.String("password-file"))
			if err != nil {
				return err
			}
			if err := checkListen(c.String("listen"), password); err != nil {
				return err
			}
			kept, client, err := openStore(c)
			if err != nil {
				return err
			}
			defer client.Close()
			return serve(ctx, c, &dashboard.Handler{Store: kept, Hosts: c.StringSlice("host"), Password: password, Actions: c.Bool("actions")})
		},
	}
}

// readPassword returns what a file has in its first line; without a file, none.
func readPassword(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", errUsage{err}
	}
	password, _, _ := strings.Cut(string(text), "\n")
	if password = strings.TrimRight(password, "\r"); password == "" {
		return "", usagef("-password-file %s: its first line is empty", file)
	}
	return password, nil
}

// checkListen returns an error if others than this machine could look without a password.
func checkListen(address, password string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return usagef("-listen %q: write HOST:PORT, such as 127.0.0.1:8300", address)
	}
	if password == "" && !hosts.IsLocal(address) {
		return usagef("-listen %s: others than this machine could look: give -password-file, or listen on 127.0.0.1", address)
	}
	return nil
}

// serve serves the page until it is interrupted.
func serve(ctx context.Context, c *cli.Command, h *dashboard.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.String("listen"))
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Root().Writer, "http://%s/\n", listener.Addr())
	// Streams end with the context: they would keep the server from its end.
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = h.Run(ctx) }()
	context.AfterFunc(ctx, func() {
		ending, stop := context.WithTimeout(context.Background(), 3*time.Second)
		defer stop()
		_ = server.Shutdown(ending)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
