// Millions keeps a quota of a million calls a day, for which a log that takes a
// hundred bytes a call is too large: StreamLog is as exact in 20, and SubWindows counts
// without a log. With a Redis it tells what each takes there.
//
//	go run ./examples/millions -redis localhost:6379
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
	addr := flag.String("redis", "", "a Redis as `HOST:PORT`, to see how much memory it takes (default none)")
	calls := flag.Int("calls", 5000, "how many calls to book with each algorithm")
	flag.Parse()
	if err := run(context.Background(), *addr, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "millions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string, calls int) error {
	var rdb *redis.Client
	if addr != "" {
		rdb = redis.NewClient(&redis.Options{Addr: addr})
		defer rdb.Close()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("no Redis answers at %s (%w): start redis-server, or name another with -redis HOST:PORT", addr, err)
		}
	}
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog, ration.SubWindows} {
		budget := &ration.Budget{
			Name:   "millions:" + algorithm.String(),
			Limits: []ration.Limit{ration.PerDay(1_000_000).Using(algorithm)},
			Store:  new(ration.MemoryStore),
		}
		if rdb != nil {
			budget.Store = &ration.RedisStore{Client: rdb}
		}
		token := ration.NewToken(fmt.Sprint("the secret at ", time.Now())) // what an earlier run booked is not weighed

		begun := time.Now()
		if err := book(ctx, budget, token, calls); err != nil {
			return err
		}
		took := time.Since(begun)
		left, err := budget.Remaining(ctx, token)
		if err != nil {
			return err
		}
		fmt.Printf("%5.2fs  %-10v  %d calls, %d left", took.Seconds(), algorithm, calls, left)
		if rdb != nil {
			bytes, err := memory(ctx, rdb, token)
			if err != nil {
				return err
			}
			fmt.Printf(", %5.1f bytes a call", float64(bytes)/float64(calls))
		}
		fmt.Println()
	}
	return nil
}

// book books calls that may leave at once, which are all as long as there is quota. One
// comes after the other: calls that are booked at once share an entry of a SlidingLog,
// which then takes a fraction of its bytes.
func book(ctx context.Context, budget *ration.Budget, token ration.Token, calls int) error {
	for range calls {
		if _, err := budget.Try(ctx, token, 1); err != nil {
			return err
		}
	}
	return nil
}

// memory returns what Redis keeps of a token's account.
func memory(ctx context.Context, rdb *redis.Client, token ration.Token) (sum int64, err error) {
	keys := rdb.Scan(ctx, 0, "ration:v1:*"+token.AccountID()+"*", 1000).Iterator()
	for keys.Next(ctx) {
		bytes, err := rdb.MemoryUsage(ctx, keys.Val(), 0).Result()
		if err != nil {
			return 0, err
		}
		sum += bytes
	}
	return sum, keys.Err()
}
