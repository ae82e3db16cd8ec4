// Cloudflare keeps a limit that an edge estimates from two counters: the calls of
// this window, and those of the last one, weighted by how much of it still overlaps
// the window that ends now. Cloudflare's own API allows 1,200 calls in five minutes.
//
//	go run ./examples/cloudflare -limit 60/2s:sliding-window
package main

import (
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
	limit := ration.Limit{Max: 60, Window: 2 * time.Second, Algorithm: ration.SlidingWindow}
	flag.Func("limit", fmt.Sprintf("at most `MAX/WINDOW[:ALGORITHM]` calls (default %v)", limit), func(s string) (err error) {
		limit, err = ration.ParseLimit(s)
		return err
	})
	calls := flag.Int("calls", 150, "how many calls to make")
	flag.Parse()
	if err := run(limit, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "cloudflare:", err)
		os.Exit(1)
	}
}

func run(limit ration.Limit, calls int) error {
	// Your provider stands here.
	edge := &estimate{max: limit.Max, window: limit.Window}
	api := httptest.NewServer(edge)
	defer api.Close()

	budget := &ration.Budget{
		Name: "cloudflare", Limits: []ration.Limit{limit},
		Margin: 100 * time.Millisecond, // for machines as busy as those that run tests
		Store:  new(ration.MemoryStore),
	}
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, ration.NewToken("the secret"))}}

	begun := time.Now()
	const workers = 5
	var fleet errgroup.Group
	for worker := range workers {
		fleet.Go(func() error {
			for range (calls + worker) / workers {
				resp, err := client.Get(api.URL)
				if err != nil {
					return err
				}
				resp.Body.Close()
			}
			return nil
		})
	}
	if err := fleet.Wait(); err != nil {
		return err
	}
	fmt.Printf("%5.2fs  %d calls at %v, %d refused\n", time.Since(begun).Seconds(), edge.accepted, limit, edge.refused)
	return nil
}

// An estimate counts as an edge does.
type estimate struct {
	max    int
	window time.Duration

	mu                sync.Mutex
	number            int64 // of this window
	last, this        int
	accepted, refused int
}

func (e *estimate) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now().UnixNano()
	if number := now / int64(e.window); number != e.number {
		e.last = e.this
		if number != e.number+1 {
			e.last = 0
		}
		e.number, e.this = number, 0
	}
	overlap := 1 - float64(now%int64(e.window))/float64(e.window)
	if float64(e.last)*overlap+float64(e.this+1) > float64(e.max) {
		e.refused++
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	e.this++
	e.accepted++
}
