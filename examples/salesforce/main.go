// Salesforce keeps a limit that rolls: 100,000 calls in any 24 hours, however the day
// is cut. No call of the day is remembered, only how many there were in each hour, so
// that a unit is free again up to an hour late and never early.
//
//	go run ./examples/salesforce -hour 100ms
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/ration-go/ration"
)

const perDay = 100 // thousands at Salesforce

func main() {
	hour := flag.Duration("hour", 100*time.Millisecond, "the `length` of an hour, from 50ms")
	flag.Parse()
	if err := run(context.Background(), *hour); err != nil {
		fmt.Fprintln(os.Stderr, "salesforce:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, hour time.Duration) error {
	if hour < 50*time.Millisecond || hour > time.Hour {
		return errors.New("-hour must be from 50ms to 1h")
	}
	// Your provider stands here.
	org := &rolling{day: 24 * hour}
	api := httptest.NewServer(org)
	defer api.Close()

	budget := &ration.Budget{
		Name:   "salesforce",
		Limits: []ration.Limit{{Max: perDay, Window: 24 * hour, Algorithm: ration.SubWindows, Resolution: hour}},
		Margin: 100 * time.Millisecond, // for machines as busy as those that run tests
		Store:  new(ration.MemoryStore),
	}
	token := ration.NewToken("the org's secret")
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, token)}}

	begun := time.Now()
	for call := 1; call <= 2*perDay+perDay/2; call++ {
		resp, err := client.Get(api.URL)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if call%(perDay/2) != 0 {
			continue
		}
		usage, err := budget.Usage(ctx, token)
		if err != nil {
			return err
		}
		day := usage.Limits[0]
		fmt.Printf("%5.2fs  %d calls, %d left, more in %.2fs\n", time.Since(begun).Seconds(), call, day.Remaining,
			day.FreeAt.Sub(usage.Now).Seconds())
	}
	fmt.Println(org.refused, "refused")
	return nil
}

// rolling counts the calls of the last day exactly.
type rolling struct {
	day time.Duration

	mu      sync.Mutex
	calls   []time.Time
	refused int
}

func (o *rolling) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for len(o.calls) > 0 && now.Sub(o.calls[0]) >= o.day {
		o.calls = o.calls[1:]
	}
	if len(o.calls) == perDay {
		o.refused++
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	o.calls = append(o.calls, now)
}
