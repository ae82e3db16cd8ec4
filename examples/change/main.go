// Change raises and lowers a limit while requests wait for their slots. They book
// anew, and nothing that was spent is forgotten. In a fleet one worker is told, and
// the others follow.
//
//	go run ./examples/change
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "change:", err)
		os.Exit(1)
	}
}

func run() error {
	// Your provider stands here.
	var arrived atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer api.Close()

	budget := &ration.Budget{
		Name: "change", Limits: []ration.Limit{ration.PerSecond(2)},
		Margin: 100 * time.Millisecond, // for machines as busy as those that run tests
		Store:  new(ration.MemoryStore),
	}
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, ration.NewToken("the secret"))}}

	begun := time.Now()
	tell := func(what string) {
		fmt.Printf("%4.1fs  %2d requests sent, %s\n", time.Since(begun).Seconds(), arrived.Load(), what)
	}
	tell("at 2 a second these take 15 s")

	var requests errgroup.Group
	for range 30 {
		requests.Go(func() error {
			resp, err := client.Get(api.URL)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
	}
	for _, change := range []struct {
		after  time.Duration
		perSec int
	}{{1500 * time.Millisecond, 10}, {1500 * time.Millisecond, 5}} {
		time.Sleep(change.after)
		if err := budget.SetLimits(ration.PerSecond(change.perSec)); err != nil {
			return err
		}
		tell(fmt.Sprintf("from now on %d a second", change.perSec))
	}
	if err := requests.Wait(); err != nil {
		return err
	}
	tell("all done")
	return nil
}
