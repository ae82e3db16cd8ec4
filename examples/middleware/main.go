// Middleware is the other side: an HTTP server that gives each client a budget, and
// answers 429 with Retry-After when it is spent. Here it starts on this machine, and
// two clients send to it.
//
//	go run ./examples/middleware
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "middleware:", err)
		os.Exit(1)
	}
}

func run() error {
	kept := &breakable{Store: new(ration.MemoryStore)} // a *RedisStore, where several servers share the clients
	limits := &limiter{
		budget: &ration.Budget{
			Name:   "clients",
			Limits: []ration.Limit{{Max: 3, Window: 1500 * time.Millisecond}},
			Margin: -1, // it is we who count, when the request is here
			Store:  kept,
		},
		keys: map[string]string{"key-of-ann": "ann"},
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	server := httptest.NewServer(limits.limit(hello))
	defer server.Close()

	for range 4 {
		if err := get(server.URL, "key-of-ann"); err != nil {
			return err
		}
	}
	if err := get(server.URL, ""); err != nil { // by address: another client
		return err
	}
	time.Sleep(2 * time.Second) // as Retry-After says
	if err := get(server.URL, "key-of-ann"); err != nil {
		return err
	}
	kept.broken.Store(true)
	return get(server.URL, "key-of-ann")
}

// A breakable store fails on request, as Redis does when it is gone.
type breakable struct {
	ration.Store
	broken atomic.Bool
}

func (s *breakable) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	if s.broken.Load() {
		return store.Booking{}, &ration.StoreError{Op: "book", Err: errors.New("it is gone")}
	}
	return s.Store.Book(ctx, r)
}

// get sends a request as a client does and prints the answer.
func get(url, key string) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Printf("key %-12q  %s", key, resp.Status)
	for _, name := range []string{"RateLimit", "Retry-After"} {
		if value := resp.Header.Get(name); value != "" {
			fmt.Printf("  %s: %s", name, value)
		}
	}
	fmt.Println()
	return nil
}
