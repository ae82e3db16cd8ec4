// Sharded deals the tokens of a fleet to several budgets, so that a Redis Cluster
// keeps them on several nodes. Give it some or all nodes of a Cluster, or one Redis.
//
//	go run ./examples/sharded -redis localhost:7000,localhost:7001,localhost:7002
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
)

func main() {
	addrs := flag.String("redis", "localhost:6379", "the Redis that the fleet shares, or nodes of a Cluster, as `HOST:PORT,...`")
	budgets := flag.Int("budgets", 4, "how many `budgets` to deal the tokens to; the same in all workers of a fleet")
	flag.Parse()
	if err := run(context.Background(), strings.Split(*addrs, ","), *budgets); err != nil {
		fmt.Fprintln(os.Stderr, "sharded:", err)
		os.Exit(1)
	}
}

const tokens, perToken = 24, 10 // requests that each token has in a second

func run(ctx context.Context, addrs []string, budgets int) error {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs}) // of several addresses: a Cluster's
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("no Redis answers at %s (%w): start redis-server, or name another with -redis HOST:PORT", strings.Join(addrs, ","), err)
	}

	// Your provider stands here.
	var mu sync.Mutex
	sent := make(map[string]int)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent[r.Header.Get("Authorization")]++
	}))
	defer api.Close()

	store := &ration.RedisStore{Client: rdb}
	all := make([]ration.Token, tokens)
	for i := range all {
		all[i] = ration.NewToken(fmt.Sprintf("secret %d", i))
	}
	sharded, err := Shard(budgets, all, func(shard int) *ration.Budget {
		return &ration.Budget{
			Name:   fmt.Sprintf("sharded-%d", shard), // a hash tag of its own
			Limits: []ration.Limit{ration.PerSecond(perToken)},
			Margin: 100 * time.Millisecond, // for machines as busy as those that run tests
			Store:  store,
		}
	})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: sharded}

	begun := time.Now()
	var workers errgroup.Group
	workers.SetLimit(32)
	for range 2 * tokens * perToken {
		workers.Go(func() error {
			resp, err := client.Get(api.URL)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	for _, of := range sharded.Shards {
		node := addrs[0]
		if cluster, found := rdb.(*redis.ClusterClient); found {
			master, err := cluster.MasterForKey(ctx, "ration:v2:{"+of.Budget.Name+"}")
			if err != nil {
				return err
			}
			node = master.Options().Addr
		}
		fmt.Printf("%s: %2d tokens at %s\n", of.Budget.Name, len(of.Pool.Tokens()), node)
	}
	fewest, most := tokens*perToken, 0
	for _, requests := range sent {
		fewest, most = min(fewest, requests), max(most, requests)
	}
	left, err := sharded.Remaining(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%5.2fs  each of %d tokens has sent from %d to %d requests, %d are left\n", time.Since(begun).Seconds(), len(sent), fewest, most, left)
	return nil
}
