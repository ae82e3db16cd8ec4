// Quickstart sends requests from a fleet that shares the quota of two tokens. Run
// it in several terminals at once: together they keep the limit, and use it all.
//
//	go run ./examples/quickstart -redis localhost:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
)

func main() {
	addr := flag.String("redis", "localhost:6379", "the Redis that the fleet shares, as host:port")
	flag.Parse()
	if err := run(*addr); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	if err := rdb.Ping(context.Background()).Err(); err != nil {
		return fmt.Errorf("no Redis answers at %s (%w): start redis-server, or name another with -redis HOST:PORT; "+
			"a MemoryStore needs none", addr, err)
	}

	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	store := &ration.RedisStore{Client: rdb}
	budget := &ration.Budget{Name: "quickstart", Limits: []ration.Limit{ration.PerSecond(5)}, Store: store}
	pool := ration.NewPool(budget, ration.NewToken("the first secret"), ration.NewToken("the second secret"))
	client := &http.Client{Transport: &ration.Transport{Pool: pool}}

	begun := time.Now()
	for i := range 20 {
		resp, err := client.Get(api.URL)
		if err != nil {
			return err
		}
		resp.Body.Close()
		grant, _ := ration.GrantOf(resp)
		fmt.Printf("%5.2fs  request %2d  token %.8s  %s\n", time.Since(begun).Seconds(), i+1, grant.Token.ID(), resp.Status)
	}
	return nil
}
