package forecast_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/cmd/internal/forecast"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A crawl in fake time takes as long as its forecast, under every algorithm, with as many workers.
func TestAForecastIsWhatACrawlTakes(t *testing.T) {
	for _, row := range []struct {
		limits  string
		more    string
		calls   int
		tokens  int
		workers int
		latency time.Duration
	}{
		{"100/10s", "", 950, 1, 200, 0},
		{"100/10s", "30/1s", 1950, 2, 200, 0},
		{"100/10s:stream-log", "", 950, 3, 20, 50 * time.Millisecond},
		{"100/10s:fixed-window", "", 950, 1, 200, 0},
		{"100/10s:fixed-window,first-use", "", 950, 1, 200, 0},
		{"100/10s:sliding-window", "", 950, 1, 200, 0},
		{"100/10s:sub-windows", "", 950, 2, 200, 0},
		{"100/10s:gcra,burst=10", "", 950, 1, 200, 0},
		{"10000/10s", "", 950, 1, 4, 300 * time.Millisecond},
	} {
		t.Run(row.limits+" "+row.more, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var limits []ration.Limit
				for _, text := range []string{row.limits, row.more} {
					if text != "" {
						l, err := limit.Parse(text)
						require.NoError(t, err)
						limits = append(limits, l)
					}
				}
				c := forecast.Crawl{Calls: row.calls, Cost: 1, Workers: row.workers, Latency: row.latency, Begin: time.Now()}
				var tokens []ration.Token
				for i := range row.tokens {
					tokens = append(tokens, ration.NewToken(string(rune('a'+i))))
					c.Accounts = append(c.Accounts, store.Account{ID: tokens[i].AccountID(), Limits: limits})
				}
				foreseen, err := c.Run(t.Context())
				require.NoError(t, err)

				pool := ration.NewPool(&ration.Budget{Name: "plan", Limits: limits, Store: new(ration.MemoryStore)}, tokens...)
				begun := time.Now()
				calls := make(chan int, row.calls)
				for i := range row.calls {
					calls <- i
				}
				close(calls)
				var workers sync.WaitGroup
				var mu sync.Mutex
				var last time.Duration
				for range row.workers {
					workers.Go(func() {
						for range calls {
							_, err := pool.Take(t.Context(), 1)
							require.NoError(t, err)
							mu.Lock()
							last = max(last, time.Since(begun))
							mu.Unlock()
							time.Sleep(row.latency)
						}
					})
				}
				workers.Wait()
				require.InEpsilon(t, last.Seconds(), foreseen.Took.Seconds(), 0.01)
			})
		})
	}
}
