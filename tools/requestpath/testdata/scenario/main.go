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
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	trace "github.com/ration-go/ration/internal/requestpathtrace"
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
	budget := func(name string, perHour int) *ration.Budget {
		store := &ration.RedisStore{Client: client}
		return &ration.Budget{Name: name, Limits: []ration.Limit{ration.PerHour(perHour)}, Store: store}
	}
	scenarios := []scenario{
		{Name: "a GET that is answered 200", run: get(budget("plain", 5000), http.StatusOK)},
		{Name: "a GET that is answered 429, and its retry 200",
			run: get(budget("refused", 5000), http.StatusTooManyRequests, http.StatusOK)},
		{Name: "a wait that is cancelled", run: cancelled(budget("cancelled", 1))},
	}
	for i := range scenarios {
		s := &scenarios[i]
		var err error
		for n := 0; n < warmUps && err == nil; n++ {
			err = s.run()
		}
		if err == nil {
			s.Entries, err = trace.Record(s.run)
		}
		if err != nil {
			log.Fatalf("%s: %v", s.Name, err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(scenarios); err != nil {
		log.Fatal(err)
	}
}

// get returns what makes a request that a server answers with one status after the other,
// without a body.
func get(budget *ration.Budget, answers ...int) func() error {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := answers[int(asked.Add(1)-1)%len(answers)]
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
	}))
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, ration.NewToken("secret"))}}
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
