// Priority lets what somebody waits for overtake what nobody does: a backfill keeps
// a quarter of the quota back, in which interactive requests find a slot at once.
// Both finish, and neither loses a slot that it has booked.
//
//	go run ./examples/priority -keep 0.25
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
)

func main() {
	keep := flag.Float64("keep", 0.25, "the `share` of the quota, from 0 to 0.999, that the backfill leaves")
	flag.Parse()
	if err := run(context.Background(), *keep); err != nil {
		fmt.Fprintln(os.Stderr, "priority:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keep float64) error {
	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	budget := &ration.Budget{
		Name: "priority", Limits: []ration.Limit{ration.PerSecond(20)},
		Margin: 100 * time.Millisecond, // for machines as busy as those that run tests
		Store:  new(ration.MemoryStore),
	}
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, ration.NewToken("the secret"))}}

	var tasks errgroup.Group
	var backfill, interactive task
	for range 60 { // all at once: each has its slot booked before anything else comes
		tasks.Go(func() error { return backfill.send(ration.WithReserve(ctx, keep), client, api.URL) })
	}
	for range 10 {
		time.Sleep(300 * time.Millisecond) // somebody clicks
		tasks.Go(func() error { return interactive.send(ctx, client, api.URL) })
	}
	if err := tasks.Wait(); err != nil {
		return err
	}
	fmt.Println("backfill:   ", &backfill)
	fmt.Println("interactive:", &interactive)
	return nil
}

type task struct {
	mu      sync.Mutex
	sent    int
	longest time.Duration
}

func (t *task) send(ctx context.Context, client *http.Client, url string) error {
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	t.longest = max(t.longest, time.Since(begun))
	return resp.Body.Close()
}

func (t *task) String() string {
	return fmt.Sprintf("%2d requests, the longest took %.2fs", t.sent, t.longest.Seconds())
}
