// Discord keeps a bot within 50 requests a second, and each route within a bucket of
// its own. A request whose route is spent waits; those of other routes pass it.
//
//	go run ./examples/discord
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "discord:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	budget := &ration.Budget{
		Name: "discord",
		Limits: []ration.Limit{
			// All that the bot does.
			{Max: 50, Window: time.Second, Algorithm: ration.GCRA, Burst: 50},
			// Each route, as X-RateLimit-Limit and -Reset-After tell of it.
			{Max: 5, Window: 2 * time.Second, Algorithm: ration.GCRA, Burst: 5, Scope: "messages"},
			{Max: 1, Window: 250 * time.Millisecond, Algorithm: ration.GCRA, Scope: "typing"},
		},
		Margin: 100 * time.Millisecond, // for machines as busy as those that run tests
		Store:  new(ration.MemoryStore),
	}
	bot := ration.NewToken("Bot SECRET")
	client := &http.Client{Transport: &ration.Transport{
		Pool:   ration.NewPool(budget, bot),
		Attach: provider.HeaderNamed("Authorization"),
		// A route that no limit has for a Scope is covered by the first alone.
		Scopes: func(r *http.Request) []string { return []string{path.Base(r.URL.Path)} },
	}}

	begun := time.Now()
	var tasks errgroup.Group
	for _, task := range []struct {
		route    string
		requests int
	}{{"/channels/1/messages", 10}, {"/channels/1/typing", 5}, {"/guilds/3/members", 60}} {
		tasks.Go(func() error {
			for range task.requests {
				resp, err := client.Get(api.URL + task.route)
				if err != nil {
					return err
				}
				resp.Body.Close()
			}
			fmt.Printf("%5.2fs  %2d to %s\n", time.Since(begun).Seconds(), task.requests, task.route)
			return nil
		})
	}
	if err := tasks.Wait(); err != nil {
		return err
	}

	usage, err := budget.Usage(ctx, bot)
	if err != nil {
		return err
	}
	for _, limit := range usage.Limits {
		fmt.Printf("%v: %d left\n", limit.Limit, limit.Remaining)
	}
	return nil
}
