// Tiktok keeps 600 calls in any minute to each endpoint of TikTok's API. An exact log
// is the default; the same log in a Redis stream is one word more in the limit, and
// grants the same slots in a sixth of the memory, which examples/millions weighs.
//
//	go run ./examples/tiktok
package main

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
)

func main() {
	limit := ration.Limit{Max: 30, Window: 1500 * time.Millisecond} // a minute would be long to watch
	flag.Func("limit", fmt.Sprintf("at most `MAX/WINDOW` calls to each endpoint (default %v)", limit), func(s string) (err error) {
		limit, err = ration.ParseLimit(s)
		return err
	})
	flag.Parse()
	for _, algorithm := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		if err := run(limit.Using(algorithm)); err != nil {
			fmt.Fprintln(os.Stderr, "tiktok:", err)
			os.Exit(1)
		}
	}
}

// run calls each of two endpoints as often as two windows allow, and once more.
func run(limit ration.Limit) error {
	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	endpoints := []string{"/v2/video/list", "/v2/user/info"}
	var limits []ration.Limit
	for _, endpoint := range endpoints {
		limit.Scope = path.Base(endpoint)
		limits = append(limits, limit)
	}
	budget := &ration.Budget{Name: "tiktok", Limits: limits, Store: new(ration.MemoryStore)}
	client := &http.Client{Transport: &ration.Transport{
		Pool:   ration.NewPool(budget, ration.NewToken("the app's secret")),
		Scopes: func(r *http.Request) []string { return []string{path.Base(r.URL.Path)} },
	}}

	var calls errgroup.Group
	for _, endpoint := range endpoints {
		calls.Go(func() error {
			begun := time.Now()
			for range 2*limit.Max + 1 {
				resp, err := client.Get(api.URL + endpoint)
				if err != nil {
					return err
				}
				resp.Body.Close()
			}
			fmt.Printf("%5.2fs  %v: %d calls to %s\n", time.Since(begun).Seconds(), limit.Algorithm, 2*limit.Max+1, endpoint)
			return nil
		})
	}
	return calls.Wait()
}
