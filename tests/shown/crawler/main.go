// Command crawler is a process of the fleet of tests/shown. The test builds it without the race detector, which would make every
// call late. It reads an order from standard input, crawls until that ends, and says goodbye.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
)

// An order is what a process does.
type order struct {
	URL     string // of the provider
	Redis   string // address
	Budgets []budget
}

// A budget is what its callers spend: as many as Callers, each of whom asks for one of the Paths again and again.
type budget struct {
	Name     string
	Limit    string
	Revision int
	Tokens   []string
	Callers  int
	Paths    []string
}

func main() {
	var o order
	in := json.NewDecoder(os.Stdin)
	if err := in.Decode(&o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the test ends it
		stop()
	}()
	if err := crawl(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// crawl calls until ctx ends.
func crawl(ctx context.Context, o order) error {
	client := redis.NewClient(&redis.Options{Addr: o.Redis, PoolSize: 20})
	defer client.Close()
	store := &ration.RedisStore{Client: client}
	var callers sync.WaitGroup
	for _, of := range o.Budgets {
		limit, err := ration.ParseLimit(of.Limit)
		if err != nil {
			return err
		}
		b := &ration.Budget{Name: of.Name, Limits: []ration.Limit{limit}, Revision: of.Revision, Store: store,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
		pool := ration.NewPool(b)
		for _, secret := range of.Tokens {
			token := ration.NewToken(secret)
			token.Label = secret[len("secret-"):]
			pool.Add(token)
		}
		base := http.DefaultTransport.(*http.Transport).Clone()
		base.MaxIdleConnsPerHost = of.Callers
		crawler := &http.Client{Transport: &ration.Transport{Base: base, Pool: pool}}
		for i := range of.Callers {
			callers.Go(func() {
				call(ctx, crawler, o.URL+of.Paths[i%len(of.Paths)], fmt.Sprintf("%s-%d-%d", of.Name, os.Getpid(), i))
			})
		}
	}
	callers.Wait()
	leave, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	return store.Settle(leave)
}

// call asks for pages again and again. Each request tells the provider who asks, and how long that caller had waited for the response
// before, so that the test needs not ask the library.
func call(ctx context.Context, crawler *http.Client, path, name string) {
	took := time.Duration(0)
	for n := 0; ctx.Err() == nil; n++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, path+strconv.Itoa(n), nil)
		if err != nil {
			panic(err)
		}
		req.Header.Set("Caller", name)
		req.Header.Set("Caller-Took", took.String())
		begun := time.Now()
		resp, err := crawler.Do(req)
		took = time.Since(begun)
		if err != nil {
			time.Sleep(100 * time.Millisecond) // a crawler logs it and goes on
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
