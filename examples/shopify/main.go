// Shopify spends the points of Shopify's GraphQL API: a bucket of 1,000, of which 50
// are restored every second. A query costs what is in it.
//
//	go run ./examples/shopify -restore 50
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

const bucket = 1000

func main() {
	restore := flag.Int("restore", 500, "how many `points` the shop restores in a second: 50 at Shopify's cheapest")
	flag.Parse()
	if err := run(*restore); err != nil {
		fmt.Fprintln(os.Stderr, "shopify:", err)
		os.Exit(1)
	}
}

func run(restore int) error {
	if restore < 1 || restore > bucket {
		return fmt.Errorf("-restore must be from 1 to %d points a second", bucket)
	}
	// Your provider stands here.
	shopify := &shop{available: bucket, restore: float64(restore), last: time.Now()}
	api := httptest.NewServer(shopify)
	defer api.Close()

	budget := &ration.Budget{
		Name: "shopify",
		Limits: []ration.Limit{{
			// Restoring 50 a second is 1,000 in 20 seconds.
			Max: bucket, Window: time.Second * bucket / time.Duration(restore),
			Algorithm: ration.GCRA, Burst: bucket,
		}},
		Margin: 100 * time.Millisecond, // for machines as busy as those that run tests
		Store:  new(ration.MemoryStore),
	}
	client := &http.Client{Transport: &ration.Transport{
		Pool:   ration.NewPool(budget, ration.NewToken("the shop's secret")),
		Attach: provider.HeaderNamed("X-Shopify-Access-Token"),
	}}

	// A query's cost is known before it is sent: by Shopify's rules, or from
	// requestedQueryCost of the last answer to the same query.
	queries := []struct {
		text string
		cost int
	}{
		{"{ products(first: 250) { nodes { title } } }", 252},
		{"{ orders(first: 100) { nodes { lineItems(first: 5) { nodes { sku } } } } }", 702},
		{"{ shop { name } }", 1},
	}
	begun := time.Now()
	for i := range 9 {
		query := queries[i%len(queries)]
		ctx := ration.WithCost(context.Background(), query.cost)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, api.URL, strings.NewReader(query.text))
		if err != nil {
			return err
		}
		req.Header.Set("X-Cost", strconv.Itoa(query.cost)) // the simulated shop cannot read GraphQL
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.Header.Get("X-Throttled") != "" {
			return errors.New("the shop had too few points for " + query.text)
		}
		fmt.Printf("%5.2fs  %3d points, the shop has %4s left  %.20s...\n",
			time.Since(begun).Seconds(), query.cost, resp.Header.Get("X-Available"), query.text)
	}
	return nil
}

// A shop says in headers what Shopify says in the body: extensions.cost, and the
// error THROTTLED, with status 200.
type shop struct {
	mu                 sync.Mutex
	available, restore float64
	last               time.Time
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.available = min(bucket, s.available+s.restore*now.Sub(s.last).Seconds())
	s.last = now
	cost, err := strconv.ParseFloat(r.Header.Get("X-Cost"), 64)
	if err != nil || cost > s.available {
		w.Header().Set("X-Throttled", "true")
		return
	}
	s.available -= cost
	w.Header().Set("X-Available", strconv.Itoa(int(s.available)))
}
