package outages_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
	"github.com/ration-go/ration/store"
)

// A departures is what a provider sees of a fleet: when its calls came.
type departures struct {
	mu sync.Mutex
	at []time.Time
}

func (d *departures) add() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = append(d.at, time.Now())
}

func (d *departures) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.at)
}

// Redis without persistence is killed, and comes back empty while its workers live. What they had booked still
// counts: the provider sees no more calls in a window than the limit, and all that it allows. Readers find the
// budget and the names of its accounts again.
func TestALogThatIsLostInAnOutageStillCounts(t *testing.T) {
	t.Parallel()
	const callers = 2 // of each worker
	for _, row := range []struct {
		limit   string
		workers int
		down    time.Duration
		isBusy  bool // whether workers call while Redis is down
		isLong  bool // for long tests only
	}{
		{"1500/1h", 1, time.Second, true, false},
		{"100/1m", 1, 8 * time.Second, true, false},
		{"100/1m", 4, 3 * time.Second, true, false},
		{"100/1m", 2, 3 * time.Second, false, false},
		{"1500/1h", 1, 3 * time.Second, true, true},
		{"1500/1h", 1, 3 * time.Second, false, true},
		{"1500/1h", 1, 12 * time.Second, true, true},
		{"1500/1h", 4, 20 * time.Second, true, true},
		{"100/1m", 2, 60 * time.Second, true, true},
		{"1500/1h", 3, 60 * time.Second, false, true},
	} {
		calls := "idle"
		if row.isBusy {
			calls = "busy"
		}
		t.Run(fmt.Sprintf("%s, %d workers, %v down, %s", row.limit, row.workers, row.down, calls), func(t *testing.T) {
			if row.isLong {
				testkit.Long(t)
			}
			t.Parallel()
			server := redistest.Start(t)
			limit, err := ration.ParseLimit(row.limit)
			require.NoError(t, err)
			token := ration.NewToken("a")
			token.Label = "ann"
			var seen departures
			var lost sync.Map
			var workers []*ration.Budget
			for range row.workers {
				client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, DisableIdentity: true})
				t.Cleanup(func() { _ = client.Close() })
				workers = append(workers, &ration.Budget{
					Name: "fleet", Limits: []ration.Limit{limit}, Store: &ration.RedisStore{Client: client, Timeout: time.Second},
					OnEvent: func(e ration.Event) {
						if e.Kind == ration.LogLost {
							lost.Store("told", true)
						}
					},
				})
			}
			// crawl has the workers call until the context ends, or until so many have left.
			crawl := func(ctx context.Context, atMost int) *sync.WaitGroup {
				ctx, stop := context.WithCancel(ctx)
				t.Cleanup(stop)
				var all sync.WaitGroup
				for _, b := range workers {
					for range callers {
						all.Go(func() {
							for ctx.Err() == nil && seen.count() < atMost {
								if _, err := b.Wait(ctx, token, 1); err == nil {
									seen.add()
									time.Sleep(5 * time.Millisecond) // the request
								}
							}
						})
					}
				}
				return &all
			}
			crawl(t.Context(), limit.Max/3).Wait()
			before := seen.count()
			require.Less(t, before, limit.Max/2, "calls must be left for the time after the outage")
			ctx, stop := context.WithCancel(t.Context())
			var crawling *sync.WaitGroup
			if row.isBusy {
				crawling = crawl(ctx, 10*limit.Max)
			}
			server.Kill()
			time.Sleep(row.down)
			server.Restart(t)
			if !row.isBusy {
				crawling = crawl(ctx, 10*limit.Max)
			}
			// Long enough to make all calls that are left.
			require.Eventually(t, func() bool { return seen.count() >= limit.Max*99/100 }, time.Minute, 10*time.Millisecond,
				"what was not spent is there after the outage")
			time.Sleep(2 * time.Second) // in which whoever may call too much would
			stop()
			crawling.Wait()
			require.LessOrEqual(t, simulated.MostIn(seen.at, limit.Window), limit.Max)
			_, told := lost.Load("told")
			require.True(t, told, "LogLost")
			reader := &ration.RedisStore{Client: server.Client(t)}
			budgets, err := reader.Budgets(t.Context())
			require.NoError(t, err)
			require.Len(t, budgets, 1)
			known, err := reader.Describe(t.Context(), budgets[0].Name)
			require.NoError(t, err)
			require.Equal(t, "ann", known.Accounts[0].Label)
			require.True(t, slices.ContainsFunc(known.Workers, func(w store.Worker) bool { return !w.Load.LogLost.IsZero() }), "people are told")
		})
	}
}
