package queue_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// An estimate books far more than is used: callers that wait get what comes back. 400 calls of a second each book 4,000 tokens of
// 90,000 a minute and use 400.
func TestWhatIsSettledReachesThoseWhoWait(t *testing.T) {
	const calls, booked, used, most, took = 400, 4000, 400, 90_000, time.Second
	for _, test := range []struct {
		callers, workers int
		differ           bool
	}{{4, 1, false}, {8, 1, false}, {16, 1, false}, {32, 1, false}, {64, 1, false}, {32, 3, false}, {32, 1, true}, {64, 3, true}} {
		if testing.Short() && (test.workers > 1 || test.callers != 32) {
			continue
		}
		crawl := func(t *testing.T, b *ration.Budget) {
			b.Limits, b.Margin = limitsOf(t, "500/1m", fmt.Sprintf("%d/1m:unit=tokens", most)), 0
			token, begun := ration.NewToken("a"), time.Now()
			budgets := []*ration.Budget{b}
			for len(budgets) < test.workers {
				budgets = append(budgets, rationtest.Peer(b))
			}
			var mu sync.Mutex
			var left []time.Time
			next := 0
			var all sync.WaitGroup
			for caller := range test.callers {
				all.Go(func() {
					for {
						mu.Lock()
						i := next
						next++
						mu.Unlock()
						if i >= calls {
							return
						}
						units := booked
						if test.differ {
							units -= i
						}
						grant, err := budgets[caller%test.workers].Wait(ration.WithUnits(t.Context(), map[string]int{"tokens": units}), token, 1)
						if !assert.NoError(t, err) {
							return
						}
						mu.Lock()
						left = append(left, time.Now())
						mu.Unlock()
						time.Sleep(took)
						assert.NoError(t, grant.Settle(t.Context(), map[string]int{"tokens": used}))
					}
				})
			}
			all.Wait()
			passed, possible := time.Since(begun), bestOf(calls, booked, used, most, test.callers, took)
			t.Logf("%d callers: %v, of which %v is possible", test.callers, passed.Round(time.Second/10), possible)
			require.Less(t, passed, possible*11/10)
			slices.SortFunc(left, time.Time.Compare)
			for i, at := range left {
				last, _ := slices.BinarySearchFunc(left, at.Add(time.Minute), time.Time.Compare)
				require.LessOrEqual(t, (last-i)*used, most)
			}
		}
		name := fmt.Sprintf("%d callers of %d workers", test.callers, test.workers)
		if test.differ {
			name += " whose estimates differ"
		}
		t.Run(name, func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { crawl(t, &ration.Budget{Name: "settle", Store: new(ration.MemoryStore)}) })
			})
			t.Run("redis", func(t *testing.T) {
				server := redistest.Start(t)
				synctest.Test(t, func(t *testing.T) {
					defer time.Sleep(rationtest.Leave)
					before := server.Commands(t)
					crawl(t, &ration.Budget{Name: "settle", Store: rationtest.WithClock(&ration.RedisStore{Client: server.Client(t)}, time.Now)})
					commands := float64(server.Commands(t)-before) / calls
					t.Logf("%.2f commands a call", commands)
					most := 3.3                          // a status each 0.9 s, which tells who waits, is 0.3 of them
					if test.workers > 1 || test.differ { // each of them looks for what the others leave
						most = 10
					}
					require.Less(t, commands, most)
				})
			})
		})
	}
}

// bestOf returns how long it takes if whatever is free is used at once.
func bestOf(calls, booked, used, most, callers int, took time.Duration) time.Duration {
	const step, window = 10 * time.Millisecond, time.Minute
	var inFlight, ended []time.Duration // when they left
	now, done := time.Duration(0), 0
	for ; done < calls; now += step {
		for len(inFlight) > 0 && inFlight[0]+took <= now {
			ended, inFlight, done = append(ended, inFlight[0]), inFlight[1:], done+1
		}
		for len(ended) > 0 && ended[0]+window <= now {
			ended = ended[1:]
		}
		for done+len(inFlight) < calls && len(inFlight) < callers && len(ended)*used+(len(inFlight)+1)*booked <= most {
			inFlight = append(inFlight, now)
		}
	}
	return now
}

func limitsOf(t *testing.T, texts ...string) (limits []ration.Limit) {
	t.Helper()
	for _, text := range texts {
		l, err := ration.ParseLimit(text)
		require.NoError(t, err)
		limits = append(limits, l)
	}
	return limits
}
