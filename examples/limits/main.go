// Limits keeps several limits at once: a request leaves when all of them have room.
//
//	go run ./examples/limits -limit 10/s -limit 5000/h
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/ration-go/ration"
)

func main() {
	var limits []ration.Limit
	flag.Func("limit", "at most `MAX/WINDOW` requests; may be repeated (default 10/s and 5000/h)", func(s string) error {
		limit, err := ration.ParseLimit(s)
		limits = append(limits, limit)
		return err
	})
	requests := flag.Int("requests", 25, "how many requests to send")
	flag.Parse()
	if limits == nil {
		limits = []ration.Limit{ration.PerSecond(10), ration.PerHour(5000)}
	}
	if err := run(limits, *requests); err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

func run(limits []ration.Limit, requests int) error {
	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	budget := &ration.Budget{Name: "limits", Limits: limits, Store: new(ration.MemoryStore)}
	token := ration.NewToken("the secret")
	client := &http.Client{
		Transport: &ration.Transport{Pool: ration.NewPool(budget, token)},
		Timeout:   time.Minute, // counts the wait: a slot that comes later is an error at once
	}

	begun := time.Now()
	for i := range requests {
		resp, err := client.Get(api.URL)
		if err != nil {
			return err
		}
		resp.Body.Close()
		usage, err := budget.Usage(context.Background(), token)
		if err != nil {
			return err
		}
		fmt.Printf("%5.2fs  request %2d", time.Since(begun).Seconds(), i+1)
		for _, limit := range usage.Limits {
			fmt.Printf("  %v: %d left", limit.Limit, limit.Remaining)
		}
		fmt.Println()
	}
	return nil
}
