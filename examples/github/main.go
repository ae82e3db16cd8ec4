// Github asks GitHub for repositories, with one or several tokens from the
// environment. The preset knows GitHub's limits, how it refuses and how a token is
// attached. A token that is revoked is quarantined, and the others go on.
//
//	GITHUB_TOKENS=ghp_a,ghp_b go run ./examples/github golang/go redis/redis
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider/presets"
)

func main() {
	api := flag.String("api", "https://api.github.com", "the `URL` of the API: that of a GitHub Enterprise server, say")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // a request that waits hands its slot back
	defer stop()
	if err := run(ctx, *api, strings.Split(os.Getenv("GITHUB_TOKENS"), ","), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "github:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, api string, secrets, repositories []string) error {
	github := presets.GitHub()
	host, err := url.Parse(api)
	if err != nil {
		return err
	}
	budget := &ration.Budget{
		Name: "github", Limits: github.Limits,
		Store:   new(ration.MemoryStore), // a *RedisStore for several processes
		OnEvent: func(e ration.Event) { fmt.Println(e) },
	}
	pool := ration.NewPool(budget)
	for _, secret := range secrets {
		pool.Add(ration.NewToken(secret))
	}
	client := &http.Client{Transport: &ration.Transport{
		Pool: pool, Provider: github, Hosts: []string{host.Host},
		OnRefusal: func(resp *http.Response, g ration.Grant) {
			f, _ := ration.FeedbackOf(resp)
			fmt.Printf("token %.8s was refused: %s, by %s\n", g.Token.ID(), f.Reason, f.ReasonBy)
		},
	}}
	for _, repository := range repositories {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, api+"/repos/"+repository, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
		grant, _ := ration.GrantOf(resp)
		fmt.Printf("%s: %s, with token %.8s\n", repository, resp.Status, grant.Token.ID())
	}
	left, err := pool.Remaining(ration.WithScopes(ctx, "core"))
	if err != nil {
		return err
	}
	fmt.Println(left, "requests are left of all tokens")
	return nil
}
