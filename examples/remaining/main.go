// Remaining tells what the whole fleet has left of its tokens. It books nothing:
// run it as often as you like beside the workers.
//
//	go run ./examples/remaining -redis localhost:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
)

func main() {
	addr := flag.String("redis", "localhost:6379", "the Redis that the fleet shares, as host:port")
	flag.Parse()
	if err := run(context.Background(), *addr); err != nil {
		fmt.Fprintln(os.Stderr, "remaining:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("no Redis answers at %s (%w): start redis-server, or name another with -redis HOST:PORT", addr, err)
	}

	// The name, the limits and the tokens are those of the workers.
	budget := &ration.Budget{
		Name:   "remaining",
		Limits: []ration.Limit{ration.PerSecond(50), ration.PerHour(5000)},
		Store:  &ration.RedisStore{Client: rdb},
	}
	tokens := []ration.Token{ration.NewToken("the first secret"), ration.NewToken("the second secret")}

	// One worker's call, so that there is something to see.
	if _, err := budget.Wait(ctx, tokens[0], 3); err != nil {
		return err
	}

	for _, token := range tokens {
		left, err := budget.Remaining(ctx, token)
		if err != nil {
			return err
		}
		fmt.Printf("token %.8s: %d left\n", token.ID(), left)

		usage, err := budget.Usage(ctx, token)
		if err != nil {
			return err
		}
		for _, limit := range usage.Limits {
			fmt.Printf("  %-8v %4d used, %4d left", limit.Limit, limit.Used, limit.Remaining)
			if limit.Used > 0 {
				fmt.Printf(", more in %v", limit.FreeAt.Sub(usage.Now).Round(time.Millisecond))
			}
			fmt.Println()
		}
	}

	all, err := ration.NewPool(budget, tokens...).Remaining(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("all tokens: %d left\n", all)
	return nil
}
