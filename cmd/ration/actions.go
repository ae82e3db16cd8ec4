package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/view"
)

// What operators do is kept in a stream beside the budget's other keys: the last mostActions, for as long
// as keepActions.
const (
	mostActions = 200
	keepActions = 30 * 24 * time.Hour
)

// An action is what an operator did.
type action struct {
	At     time.Time `json:"at"` // on the store's clock
	Budget string    `json:"budget"`
	By     string    `json:"by"`
	Did    string    `json:"did"`
	Reason string    `json:"reason,omitempty"`
}

func actionsKey(budget string) string { return redisstore.BaseKey(budget) + ":actions" }

// record keeps what an operator did.
func (a action) record(ctx context.Context, client redis.UniversalClient) error {
	key := actionsKey(a.Budget)
	err := client.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: mostActions, Values: []any{"by", a.By, "did", a.Did, "reason", a.Reason}}).Err()
	if err == nil {
		err = client.PExpire(ctx, key, keepActions).Err()
	}
	if err != nil {
		return fmt.Errorf("it was done, but \"ration log\" will not have it: %w", err)
	}
	return nil
}

// actionsOf returns what was done to a budget, the oldest first.
func actionsOf(ctx context.Context, client redis.UniversalClient, budget string) (all []action, err error) {
	entries, err := client.XRange(ctx, actionsKey(budget), "-", "+").Result()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		said := func(field string) string { text, _ := e.Values[field].(string); return view.Printable(text) }
		var ms int64
		if _, err := fmt.Sscanf(e.ID, "%d-", &ms); err != nil {
			return nil, fmt.Errorf("the log of the budget %q has an entry with the ID %q", budget, e.ID)
		}
		all = append(all, action{time.UnixMilli(ms), budget, said("by"), said("did"), said("reason")})
	}
	return all, nil
}

func logCommand() *cli.Command {
	return &cli.Command{
		Name: "log", Usage: "what operators did, when and why", ArgsUsage: "[BUDGET]",
		Description: `Lists the pauses, resumptions, resets and losses of memory that operators asked for
with this tool: the last 200 of each budget, of the last 30 days.

  ration log instagram`,
		Flags: []cli.Flag{redisFlag(), jsonFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			budget, err := budgetArg(c)
			if err != nil {
				return err
			}
			kept, client, err := openStore(c)
			if err != nil {
				return err
			}
			defer client.Close()
			names, err := budgetsOf(ctx, kept, budget)
			if err != nil {
				return err
			}
			all := []action{}
			for _, name := range names {
				some, err := actionsOf(ctx, client, name)
				if err != nil {
					return err
				}
				all = append(all, some...)
			}
			out := c.Root().Writer
			if c.Bool("json") {
				return printJSON(out, all)
			}
			for _, a := range all {
				fmt.Fprintf(out, "%s  %s: %s, by %s%s\n", a.At.Local().Format(time.DateTime), a.Budget, a.Did, cmp.Or(a.By, "nobody knows whom"),
					strings.TrimSuffix(": "+a.Reason, ": "))
			}
			return nil
		},
	}
}
