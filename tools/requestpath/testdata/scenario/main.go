// Scenario runs the scenarios on the Redis whose address it is given, and prints as JSON
// what each enters. Requestpath builds it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	trace "github.com/ration-go/ration/internal/requestpathtrace"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

const (
	// warmUps is how often a scenario runs before it is recorded.
	warmUps = 3
	// retryAfter is the wait that a 429 asks for, in seconds. Who has waited for a second
	// asks the store once more whether the slot stands: with 1 some runs would.
	retryAfter = "2"
)

// A scenario is something that a caller of the library does.
type scenario struct {
	Name    string
	Entries []trace.Entry
	Scripts int // of Redis, that were run
	run     func() error
}

func main() {
	// Goroutines that ran at once would enter functions in another order each time.
	runtime.GOMAXPROCS(1)
	// It is patient: the server may have only begun.
	client := redis.NewClient(&redis.Options{Addr: os.Args[1], DialerRetries: 25})
	if err := client.Ping(context.Background()).Err(); err != nil {
		log.Fatalf("redis-server: %v", err)
	}
	var scripts scriptCounter
	client.AddHook(&scripts)
	budget := func(name string, limits ...ration.Limit) *ration.Budget {
		return &ration.Budget{Name: name, Limits: limits, Store: &ration.RedisStore{Client: client}}
	}
	hourly := ration.PerHour(5000)
	github := presets.GitHub()
	inMemory := &ration.Budget{Name: "memory", Limits: []ration.Limit{hourly}, Store: &ration.MemoryStore{}}
	scenarios := []scenario{
		{Name: "a GET that is answered 200", run: get(pool(budget("plain", hourly), 1), nil, http.StatusOK)},
		{Name: "a GET whose 200 has limit headers, under the preset github",
			run: get(pool(budget("github", github.Limits...), 1), github, http.StatusOK)},
		{Name: "a GET that is answered 200, on a MemoryStore", run: get(pool(inMemory, 1), nil, http.StatusOK)},
		{Name: "a GET that is answered 200, by one of three tokens", run: get(pool(budget("pool", hourly), 3), nil, http.StatusOK)},
		{Name: "a GET that is answered 429, and its retry 200",
			run: get(pool(budget("refused", hourly), 1), nil, http.StatusTooManyRequests, http.StatusOK)},
		{Name: "a wait that is cancelled", run: cancelled(budget("cancelled", ration.PerHour(1)))},
	}
	for i := range scenarios {
		s := &scenarios[i]
		var err error
		for n := 0; n < warmUps && err == nil; n++ {
			err = s.run()
		}
		if err == nil {
			trace.Rest()
			before := scripts.run.Load()
			s.Entries, err = trace.Record(s.run)
			s.Scripts = int(scripts.run.Load() - before)
		}
		if err != nil {
			log.Fatalf("%s: %v", s.Name, err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(scenarios); err != nil {
		log.Fatal(err)
	}
}

// pool returns a pool of that many tokens of a budget.
func pool(budget *ration.Budget, tokens int) *ration.Pool {
	var all []ration.Token
	for i := range tokens {
		all = append(all, ration.NewToken(fmt.Sprintf("secret %d", i)))
	}
	return ration.NewPool(budget, all...)
}

// get returns what makes a request that a server answers with one status after the other, without a body. With
// an api it has the headers that GitHub sends, which agree with what this program has used.
func get(pool *ration.Pool, api *provider.Provider, answers ...int) func() error {
	var asked atomic.Int64
	reset := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		status := answers[int(n-1)%len(answers)]
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", retryAfter)
		}
		if api != nil {
			w.Header().Set("X-RateLimit-Limit", "5000")
			w.Header().Set("X-RateLimit-Remaining", strconv.FormatInt(5000-n, 10))
			w.Header().Set("X-RateLimit-Used", strconv.FormatInt(n, 10))
			w.Header().Set("X-RateLimit-Reset", reset)
			w.Header().Set("X-RateLimit-Resource", "core")
		}
		w.WriteHeader(status)
	}))
	client := &http.Client{Transport: &ration.Transport{Pool: pool, Provider: api}}
	return func() error {
		before := asked.Load()
		resp, err := client.Get(server.URL)
		if err != nil {
			return err
		}
		sent := asked.Load() - before
		if resp.StatusCode != http.StatusOK || sent != int64(len(answers)) {
			return fmt.Errorf("%s after %d sendings, not %d", resp.Status, sent, len(answers))
		}
		return resp.Body.Close()
	}
}

// cancelled spends the quota, and returns what waits for a slot and gives up.
func cancelled(budget *ration.Budget) func() error {
	token := ration.NewToken("secret")
	if _, err := budget.Wait(context.Background(), token, 1); err != nil {
		log.Fatal(err)
	}
	return func() error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		time.AfterFunc(300*time.Millisecond, cancel) // it sleeps by then
		if _, err := budget.Wait(ctx, token, 1); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the wait was not cancelled: %v", err)
		}
		return nil
	}
}

// A scriptCounter is a hook of a client, and counts the scripts that are run, and answered.
type scriptCounter struct{ run atomic.Int64 }

func (c *scriptCounter) count(cmd redis.Cmder) {
	if name := cmd.Name(); (name == "evalsha" || name == "eval" || name == "fcall") && !redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		c.run.Add(1)
	}
}

func (c *scriptCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *scriptCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		c.count(cmd)
		return err
	}
}

func (c *scriptCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			c.count(cmd)
		}
		return err
	}
}
