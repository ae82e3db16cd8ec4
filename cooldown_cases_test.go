package ration_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// What APIs do that refuse for long, or are not there, and what a crawl of them comes to. Times are those of a bubble.

// A crawled is what came of a crawl.
type crawled struct {
	served int
	took   time.Duration
}

// crawl fetches so many URLs by so many workers of each client.
func crawl(t *testing.T, workers, urls int, url func(i int) string, clients ...*http.Client) (of crawled) {
	t.Helper()
	begun := time.Now()
	var mu sync.Mutex
	next := 0
	var group sync.WaitGroup
	for _, client := range clients {
		for range workers {
			group.Go(func() {
				for {
					mu.Lock()
					i := next
					next++
					mu.Unlock()
					if i >= urls {
						return
					}
					resp, err := client.Get(url(i))
					if err != nil {
						continue
					}
					_ = resp.Body.Close()
					mu.Lock()
					if resp.StatusCode == http.StatusOK {
						of.served++
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	of.took = time.Since(begun)
	return of
}

// An answer is what an API sends at an instant since it began. Calls to it come one after the other.
type answer func(at time.Duration, req *http.Request) rationtest.Reply

// answering returns an API that takes 40 ms for each answer.
func answering(by answer) *rationtest.API {
	var mu sync.Mutex
	var api *rationtest.API
	api = rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		reply := by(time.Since(api.Begun), req)
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		if reply.Status == 0 {
			return nil, syscall.ECONNREFUSED
		}
		return reply.To(req), nil
	})
	return api
}

// clientOf returns a client of an API under limits, with one token.
func clientOf(api *rationtest.API, limits ...ration.Limit) *http.Client {
	return &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(limits...), ration.NewToken("a"))}}
}

func parsed(t *testing.T, text string) ration.Limit {
	l, err := ration.ParseLimit(text)
	require.NoError(t, err)
	return l
}

func item(i int) string { return fmt.Sprint("http://api.test/items/", i) }

// The API blocks for ten minutes, and each call prolongs that; it says so by a bare 429.
func TestABlockThatCallsProlongEnds(t *testing.T) {
	for _, workers := range []int{1, 8, 30} {
		synctest.Test(t, func(t *testing.T) {
			calls, blocked := 0, 0
			var until time.Duration
			api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
				if calls++; calls == 20 {
					until = at + 10*time.Minute
				}
				if at < until {
					blocked++
					until = at + 10*time.Minute
					return rationtest.Reply{Status: 429}
				}
				return rationtest.Served
			})
			of := crawl(t, workers, 400, item, clientOf(api, parsed(t, "10/1s")))
			t.Logf("%d workers: %d of 400 in %v, %d calls into the block", workers, of.served, of.took, blocked)
			require.Equal(t, 400, of.served)
			require.LessOrEqual(t, blocked, 11+min(workers, 10)+3) // ten leave in a second, and each cooldown is twice as long
			require.Less(t, of.took, 75*time.Minute)               // 22 to 45, as chance lengthens the last cooldown
		})
	}
}

// What is known of a provider bounds an unknown cooldown: Cloudflare's window is five minutes.
func TestAnUnknownCooldownIsNotLongerThanTheProvidersWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Duration
		api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
			if calls = append(calls, at); at < time.Hour {
				return rationtest.Reply{Status: 429}
			}
			return rationtest.Served
		})
		client := clientOf(api, parsed(t, "10/1s"))
		client.Transport.(*ration.Transport).Provider = rationtest.Preset(t, "cloudflare")
		require.Equal(t, 1, crawl(t, 1, 1, item, client).served)
		for i := range calls[1:] {
			require.LessOrEqual(t, calls[i+1]-calls[i], 5*time.Minute+time.Second)
		}
		require.Less(t, len(calls), 30)
	})
}

// Nobody listens for five minutes.
func TestNoURLIsLostWhileAHostIsNotReached(t *testing.T) {
	for _, workers := range []int{1, 8, 32} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
				if at < 5*time.Minute {
					attempts++
					return rationtest.Reply{}
				}
				return rationtest.Served
			})
			of := crawl(t, workers, 600, item, clientOf(api, parsed(t, "10/1s")))
			t.Logf("%d workers: %d of 600 in %v, %d attempts in the five minutes", workers, of.served, of.took, attempts)
			require.Equal(t, 600, of.served)
			require.LessOrEqual(t, attempts, 40)
			require.Less(t, of.took, 8*time.Minute)
		})
	}
}

// A gateway answers 502, 503 or 504 for five minutes.
func TestNoURLIsLostWhileAGatewayReachesNothing(t *testing.T) {
	for _, status := range []int{502, 503, 504} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
				if at > time.Second && at < 5*time.Minute {
					attempts++
					return rationtest.Reply{Status: status}
				}
				return rationtest.Served
			})
			of := crawl(t, 16, 600, item, clientOf(api, parsed(t, "10/1s")))
			t.Logf("%d: %d of 600 in %v, %d attempts in the five minutes", status, of.served, of.took, attempts)
			require.Equal(t, 600, of.served)
			require.LessOrEqual(t, attempts, 60)
		})
	}
}

// A bucket of ten that is filled by five a second, and asks for ten minutes when it is empty; the fleet was told more.
func TestABucketThatAsksForTenMinutesIsAskedOnce(t *testing.T) {
	for _, told := range []string{"1000/1m", "300/1m", "300/1m:gcra,burst=10"} {
		for _, after := range []int{60, 600} {
			synctest.Test(t, func(t *testing.T) {
				level, last, refused := 10.0, time.Duration(0), 0
				api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
					level, last = min(10, level+5*(at-last).Seconds()), at
					if level < 1 {
						refused++
						return rationtest.Reply{Status: 429, Body: "{}", Header: []string{"Retry-After", strconv.Itoa(after)}}
					}
					level--
					return rationtest.Served
				})
				of := crawl(t, 30, 120, item, clientOf(api, parsed(t, told)))
				t.Logf("told %s, Retry-After %d: %d of 120 in %v, %d refused", told, after, of.served, of.took, refused)
				require.Equal(t, 120, of.served)
				require.Less(t, of.took, 13*time.Minute)
				require.LessOrEqual(t, refused, 40) // twenty of the thirty that leave at once, before anything was said, and a few of each that follow
			})
		}
	}
}

// One call in ten seconds is served, and the others are told how long to wait.
func TestOneCallInTenSecondsLosesNobody(t *testing.T) {
	for _, workers := range []int{4, 16} {
		synctest.Test(t, func(t *testing.T) {
			var free time.Duration
			api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
				if at < free {
					return rationtest.Reply{Status: 429, Header: rationtest.JSON, Body: fmt.Sprintf(`{"detail":"Request was throttled.","retry_after":%d}`, int((free-at).Seconds())+1)}
				}
				free = at + 10*time.Second
				return rationtest.Served
			})
			of := crawl(t, workers, 30, item, clientOf(api, parsed(t, "600/1m")))
			t.Logf("%d workers: %d of 30 in %v", workers, of.served, of.took)
			require.Equal(t, 30, of.served)
			require.Less(t, of.took, 8*time.Minute)
		})
	}
}

// A success asks to wait.
func TestASuccessThatAsksToWaitIsHeard(t *testing.T) {
	for _, more := range [][]string{nil, {"X-RateLimit-Resource", "Core", "X-RateLimit-Limit", "200", "X-RateLimit-Remaining", "12"}} {
		synctest.Test(t, func(t *testing.T) {
			calls, early := 0, 0
			var until time.Duration
			api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
				if at < until {
					early++
				}
				if calls++; calls >= 20 {
					until = at + 30*time.Second
					return rationtest.Reply{Status: 200, Header: append([]string{"Retry-After", "30"}, more...)}
				}
				return rationtest.Served
			})
			of := crawl(t, 8, 100, item, clientOf(api, parsed(t, "600/1m")))
			t.Logf("%v: %d of 100 in %v, %d sent while it asks to wait", more, of.served, of.took, early)
			require.Equal(t, 100, of.served)
			require.LessOrEqual(t, early, 8) // those that were on their way
		})
	}
}

// A bare 429 for a while costs no URL, and few calls of the whole fleet.
func TestABare429ForAWhileCostsNoURL(t *testing.T) {
	for _, told := range []string{"1000/1h", "5000/24h", "60/1m"} {
		for _, length := range []time.Duration{20 * time.Second, time.Minute, 5 * time.Minute} {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{parsed(t, told)}
				refused := 0
				api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
					if at >= 10*time.Second && at < 10*time.Second+length {
						refused++
						return rationtest.Reply{Status: 429}
					}
					return rationtest.Served
				})
				var clients []*http.Client
				for _, of := range []*ration.Budget{b, rationtest.Peer(b), rationtest.Peer(b)} {
					clients = append(clients, &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(of, ration.NewToken("a"))}})
				}
				// Each fetches its part, a call a second.
				var served sync.Map
				var group sync.WaitGroup
				for n, client := range clients {
					group.Go(func() {
						for i := range 20 {
							time.Sleep(time.Second + time.Duration(n)*10*time.Millisecond)
							resp, err := client.Get(item(i))
							if err == nil && resp.StatusCode == 200 {
								served.Store(fmt.Sprint(n, i), true)
							}
						}
					})
				}
				group.Wait()
				all := 0
				served.Range(func(any, any) bool { all++; return true })
				t.Logf("%s, %v: %d of 60 in %v, %d refused", told, length, all, time.Since(api.Begun), refused)
				require.Equal(t, 60, all)
				require.LessOrEqual(t, refused, 15)
			})
		}
	}
}

// One endpoint of three refuses for ever, and asks for an hour: the others go on, no limit is lowered, and one request an hour probes it.
func TestAnEndpointThatRefusesStopsNoOther(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{parsed(t, "600/1m")}
		var events []string
		var mu sync.Mutex
		workers := []*ration.Budget{b}
		for range 5 {
			workers = append(workers, rationtest.Peer(b))
		}
		var refusals []time.Duration
		calls := map[string][]time.Duration{} // of each token in the last minute
		api := answering(func(at time.Duration, req *http.Request) rationtest.Reply {
			token := req.Header.Get("Authorization")
			calls[token] = append(slices.DeleteFunc(calls[token], func(of time.Duration) bool { return at-of >= time.Minute }), at)
			header := []string{"X-RateLimit-Limit", "600", "X-RateLimit-Remaining", strconv.Itoa(600 - len(calls[token])), "X-RateLimit-Reset", "60"}
			if strings.HasPrefix(req.URL.Path, "/reports") {
				refusals = append(refusals, at)
				return rationtest.Reply{Status: 429, Header: append(header, "Retry-After", "3600")}
			}
			return rationtest.Reply{Status: 200, Header: header}
		})
		var tokens []ration.Token
		for i := range 24 {
			tokens = append(tokens, ration.NewToken(fmt.Sprint("t", i)))
		}
		const lasts = 2 * time.Hour
		served := 0
		var group sync.WaitGroup
		for _, of := range workers {
			of.OnEvent = func(e ration.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind != ration.Paused && e.Kind != ration.Resumed {
					events = append(events, e.String())
				}
			}
			client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(of, tokens...), Retries: ration.RetryPolicy{Within: time.Minute}}}
			for n := range 6 {
				group.Go(func() {
					for i := 0; time.Since(api.Begun) < lasts; i++ {
						path := [3]string{"users", "reports", "tags"}[(n+i)%3]
						if path == "reports" && n != 0 {
							path = "users"
						}
						ctx := t.Context()
						req := rationtest.NewRequest(t, "GET", fmt.Sprintf("http://api.test/%s/%d", path, 1000+i), nil).WithContext(ctx)
						if resp, err := client.Do(req); err == nil && resp.StatusCode == 200 {
							mu.Lock()
							served++
							mu.Unlock()
						}
						time.Sleep(10 * time.Second)
					}
				})
			}
		}
		group.Wait()
		possible := len(workers) * 5 * int(lasts/(10*time.Second+40*time.Millisecond))
		t.Logf("%d served, of the others alone %d are possible; refused at %v", served, possible, refusals)
		for _, e := range events {
			t.Log(e)
		}
		require.Greater(t, float64(served), 0.95*float64(possible))
		after := slices.DeleteFunc(slices.Clone(refusals), func(at time.Duration) bool { return at < time.Minute })
		require.LessOrEqual(t, len(refusals)-len(after), 24, "until it is known what they are about")
		for i, at := range after {
			if i > 0 {
				require.Greater(t, at-after[i-1], 55*time.Minute, "one an hour")
			}
		}
		require.Empty(t, events)
	})
}

// The limit is right, and the API refuses for a while all the same: in the window behind the pause as much is served as the limit allows.
func TestASlowStartBehindAToldPauseOfARightLimitCostsLittle(t *testing.T) {
	for _, row := range []struct {
		told   string
		refuse time.Duration // from two windows on
	}{{"1000/1h", 10 * time.Minute}, {"100/10s", 10 * time.Second}, {"50/1s", time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			limit := parsed(t, row.told)
			from := 2*limit.Window + limit.Window/2
			var served []time.Duration
			api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
				if left := from + row.refuse - at; at >= from && left > 0 {
					return rationtest.Reply{Status: 429, Header: []string{"Retry-After", fmt.Sprint(left.Seconds())}}
				}
				served = append(served, at)
				return rationtest.Served
			})
			crawl(t, 64, 6*limit.Max, item, clientOf(api, limit))
			n := 0
			for _, at := range served {
				if at >= from+row.refuse && at < from+row.refuse+limit.Window {
					n++
				}
			}
			t.Logf("%s: %d served in the window behind the pause, which has %d", row.told, n, limit.Max)
			require.GreaterOrEqual(t, n, limit.Max*98/100)
		})
	}
}

// While the store does not answer each process cools an endpoint down by itself: one of its requests probes, and a wait that is told and too
// short grows.
func TestAnEndpointCoolsDownWithoutTheStore(t *testing.T) {
	for _, cut := range []time.Duration{0, time.Minute} { // from when on it does not
		synctest.Test(t, func(t *testing.T) {
			b := rationtest.NewBudget(parsed(t, "600/1m"))
			kept := &rationtest.CutStore{Store: b.Store}
			b.Store, b.Outage = kept, ration.FailOpen
			refused := 0
			api := answering(func(at time.Duration, _ *http.Request) rationtest.Reply {
				if at < 10*time.Minute {
					refused++
					return rationtest.Reply{Status: 503, Header: []string{"Retry-After", "5"}}
				}
				return rationtest.Served
			})
			client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, ration.NewToken("a"))}}
			time.AfterFunc(cut, func() { kept.Cut.Store(true) })
			time.AfterFunc(5*time.Minute, func() { kept.Cut.Store(false) })
			of := crawl(t, 16, 16, item, client)
			t.Logf("cut from %v on: %d of 16 in %v, %d refused", cut, of.served, of.took, refused)
			require.Equal(t, 16, of.served)
			require.LessOrEqual(t, refused, 60) // 16 at once, and one in five seconds to a minute
			require.Less(t, of.took, 12*time.Minute)
		})
	}
}
