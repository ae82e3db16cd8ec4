package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

// A flag is made anew for each command: what it was given is kept in it.
func redisFlag() cli.Flag {
	return &cli.StringFlag{Name: "redis", Sources: cli.EnvVars("RATION_REDIS"),
		Usage: "URL: redis://[USER:PASSWORD@]HOST:PORT/DB, or HOST:PORT, with ?addr=HOST:PORT for\neach further node of a Cluster, or ?master_name=NAME of a\nSentinel (default $RATION_REDIS)"}
}

func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

// openStore returns the store that -redis names, and its client.
func openStore(c *cli.Command) (*ration.RedisStore, redis.UniversalClient, error) {
	client, err := openRedis(c.String("redis"))
	if err != nil {
		return nil, nil, err
	}
	return &ration.RedisStore{Client: client, Timeout: 10 * time.Second}, client, nil
}

// openRedis returns a client of the server, Cluster or Sentinel at a URL. No error repeats the URL: it
// has a password in it.
func openRedis(address string) (redis.UniversalClient, error) {
	if address == "" {
		return nil, usagef("name the Redis: -redis redis://HOST:PORT/DB, or set RATION_REDIS")
	}
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, usagef("-redis is not a URL: write redis://HOST:PORT/DB")
	}
	var client redis.UniversalClient
	switch query := parsed.Query(); {
	case query.Has("master_name"):
		var options *redis.FailoverOptions
		if options, err = redis.ParseFailoverURL(address); err == nil {
			client = redis.NewFailoverClient(options)
		}
	case query.Has("addr"):
		var options *redis.ClusterOptions
		if options, err = redis.ParseClusterURL(address); err == nil {
			client = redis.NewClusterClient(options)
		}
	default:
		var options *redis.Options
		if options, err = redis.ParseURL(address); err == nil {
			client = redis.NewClient(options)
		}
	}
	if err != nil {
		if user := parsed.User; user != nil {
			if password, has := user.Password(); has && password != "" && strings.Contains(err.Error(), password) {
				return nil, usagef("-redis is wrong: write redis://[USER:PASSWORD@]HOST:PORT/DB")
			}
		}
		return nil, usagef("-redis: %s", strings.TrimPrefix(err.Error(), "redis: "))
	}
	return client, nil
}

// describe returns what the store has of a budget. It is an error if it has nothing.
func describe(ctx context.Context, kept *ration.RedisStore, budget string) (store.Description, error) {
	if err := store.ValidateBudgetName(budget); err != nil {
		return store.Description{}, errUsage{err}
	}
	d, err := kept.Describe(ctx, budget)
	if err != nil {
		return d, err
	}
	if d.Version == 0 && len(d.Accounts) == 0 && len(d.Pauses) == 0 {
		return d, fmt.Errorf("nothing is known of a budget %q: \"ration status\" lists those there are", budget)
	}
	return d, nil
}

// budgetArg returns the one budget that a command was given; empty: all are meant.
func budgetArg(c *cli.Command) (string, error) {
	if c.NArg() > 1 {
		return "", usagef("name one budget, or none for all")
	}
	return c.Args().First(), nil
}

// budgetsOf returns the names of those that are meant: one or, without a name, all.
func budgetsOf(ctx context.Context, kept *ration.RedisStore, name string) (names []string, err error) {
	if name != "" {
		return []string{name}, nil
	}
	known, err := kept.Budgets(ctx)
	for _, b := range known {
		names = append(names, b.Name)
	}
	return names, err
}

// describeAll returns what the store has of the budgets that are meant.
func describeAll(ctx context.Context, kept *ration.RedisStore, name string) (all []store.Description, err error) {
	if name == "" {
		return view.Read(ctx, kept)
	}
	d, err := kept.Describe(ctx, name)
	if err != nil {
		return nil, err
	}
	return []store.Description{d}, nil
}

// leastPrefix is how many characters of a digest name it.
const leastPrefix = 6

// findAccount returns the ID of the account that somebody means: by its label, its ID, or the
// beginning of that.
func findAccount(d *store.Description, name string) (id string, err error) {
	var found []string
	short := false
	for _, a := range d.Accounts {
		begins := strings.HasPrefix(a.Account, name)
		switch {
		case a.Account == name:
			return name, nil
		case a.Label == name || begins && len(name) >= leastPrefix:
			found = append(found, a.Account)
		}
		short = short || begins && len(name) < leastPrefix
	}
	// Who names an account means the account, and not its meters.
	found = slices.DeleteFunc(slices.Clone(found), func(id string) bool {
		return slices.ContainsFunc(found, func(of string) bool { return strings.HasPrefix(id, of+"_") })
	})
	if short && len(found) == 0 {
		return "", fmt.Errorf("%q is too short: give %d characters of the account's ID, or its label", name, leastPrefix)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("the budget %q has no account %q: \"ration status %s\" lists them", d.Budget, name, d.Budget)
	}
	return "", fmt.Errorf("%d accounts of the budget %q are called %q: give more of the ID", len(found), d.Budget, name)
}

// findToken returns the ID of the quarantined token that somebody means.
func findToken(d *store.Description, name string) (id string, err error) {
	found := make(map[string]bool) // a token may be quarantined for several reasons
	for _, q := range d.Quarantined {
		switch {
		case q.Token == name:
			return name, nil
		case view.NameOf(d.Accounts, q.Token) == name || len(name) >= leastPrefix && strings.HasPrefix(q.Token, name):
			id, found[q.Token] = q.Token, true
		}
	}
	switch len(found) {
	case 1:
		return id, nil
	case 0:
		return "", fmt.Errorf("no token %q of the budget %q is quarantined", name, d.Budget)
	}
	return "", fmt.Errorf("%d quarantined tokens of the budget %q are called %q: give more of the ID", len(found), d.Budget, name)
}

// openInput opens a file, or standard input if the name is "-".
func openInput(c *cli.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.Root().Reader), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, errUsage{err}
	}
	return file, nil
}

func printJSON(out io.Writer, what any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(what)
}
