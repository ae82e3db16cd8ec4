package rationprom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/rationprom"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	apiMost   = 40 // calls of a token in a window
	apiWindow = 2 * time.Second
)

// An alertedAPI counts the calls of each token in the last window, and says what is left.
type alertedAPI struct {
	mu      sync.Mutex
	most    int
	revoked string
	until   time.Time // until when all are refused
	calls   map[string][]time.Time
}

// take counts a call, and returns the status of its response and what is left.
func (a *alertedAPI) take(token string) (status, left int, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, calls := time.Now(), a.calls[token]
	for len(calls) > 0 && now.Sub(calls[0]) >= apiWindow {
		calls = calls[1:]
	}
	switch {
	case token == a.revoked:
		return http.StatusUnauthorized, 0, 0
	case now.Before(a.until):
		return http.StatusTooManyRequests, a.most - len(calls), a.until.Sub(now)
	case len(calls) >= a.most:
		return http.StatusTooManyRequests, 0, apiWindow - now.Sub(calls[0])
	}
	a.calls[token] = append(calls, now)
	return http.StatusOK, a.most - len(calls) - 1, 0
}

func (a *alertedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, left, wait := a.take(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	if status != http.StatusUnauthorized {
		w.Header().Set("X-RateLimit-Limit", strconv.Itoa(apiMost))
		w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(left))
	}
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	}
	w.WriteHeader(status)
}

// set changes what the api does.
func (a *alertedAPI) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// sooner returns the alerts with all durations divided.
func sooner(t *testing.T, by time.Duration) string {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	return regexp.MustCompile(`(\[|for: )(\d+[mh])`).ReplaceAllStringFunc(string(text), func(found string) string {
		at := strings.IndexAny(found, "0123456789")
		length, err := time.ParseDuration(found[at:])
		require.NoError(t, err)
		return found[:at] + fmt.Sprintf("%dms", (length/by).Milliseconds())
	})
}

// An alerted is a Prometheus that scrapes a fleet.
type alerted struct{ address string }

// firing returns the alerts that fire.
func (p *alerted) firing(t *testing.T) map[string]bool {
	t.Helper()
	resp, err := http.Get("http://" + p.address + "/api/v1/alerts")
	if err != nil {
		return nil // it has not begun
	}
	defer resp.Body.Close()
	var reply struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&reply))
	all := make(map[string]bool)
	for _, a := range reply.Data.Alerts {
		if a.State == "firing" {
			all[a.Labels["alertname"]] = true
		}
	}
	return all
}

// A fleet that works raises no alert, and each fault raises its own.
func TestAlertsOfAFleet(t *testing.T) {
	testkit.Long(t)
	needsPrometheus(t)
	const by, healthy = 30, 10 * time.Minute // the alerts so much sooner than they are written
	a := &alertedAPI{most: apiMost, calls: make(map[string][]time.Time)}
	api := httptest.NewServer(a)
	defer api.Close()
	redis := redistest.Start(t)
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer stop()
	var targets []scraped
	for process := range 3 {
		m := rationprom.New(rationprom.Options{Budgets: []string{"api"}})
		b := &ration.Budget{Name: "api", Limits: []ration.Limit{{Max: apiMost, Window: apiWindow}}, Trace: m.Trace(), OnEvent: m.OnEvent,
			Store: &ration.RedisStore{Client: redis.Client(t)}}
		pool := ration.NewPool(b, ration.NewToken("a"), ration.NewToken("b"), ration.NewToken("c"))
		collectors, every := []prometheus.Collector{m}, 500*time.Millisecond
		if process == 0 {
			every = 6 * time.Second // a scrape waits five seconds for the store
			collectors = append(collectors, rationprom.NewCollector(b, pool, rationprom.CollectorOptions{}))
		}
		server := httptest.NewServer(promhttp.HandlerFor(registryOf(collectors...), promhttp.HandlerOpts{}))
		defer server.Close()
		targets = append(targets, scraped{strings.TrimPrefix(server.URL, "http://"), every})
		client := &http.Client{Transport: &ration.Transport{Pool: pool}}
		for range 6 {
			callers.Go(func() {
				for ctx.Err() == nil {
					req, err := http.NewRequestWithContext(ctx, http.MethodGet, api.URL+"/items", nil)
					if err != nil {
						return
					}
					if resp, err := client.Do(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				}
			})
		}
	}
	p := &alerted{address: startPrometheus(t, sooner(t, by), targets...)}
	for begun := time.Now(); time.Since(begun) < healthy; time.Sleep(500 * time.Millisecond) {
		require.Empty(t, p.firing(t), "nothing is wrong, %v after the beginning", time.Since(begun).Round(time.Second))
	}

	const soon = 40 * time.Second // the longest is for five minutes
	for _, fault := range []struct {
		alerts []string
		begin  func() (end func())
	}{
		{[]string{"RationTokensDying"}, func() func() {
			a.set(func() { a.revoked = "c" })
			return func() { a.set(func() { a.revoked = "" }) }
		}},
		{[]string{"RationRefused"}, func() func() {
			a.set(func() { a.most = apiMost / 2 })
			return func() { a.set(func() { a.most = apiMost }) }
		}},
		{[]string{"RationDrift"}, func() func() {
			tick, done := time.NewTicker(apiWindow/(apiMost/4)), make(chan struct{})
			go func() {
				for {
					select {
					case <-done:
						return
					case <-tick.C:
						a.take("a")
						a.take("b")
					}
				}
			}()
			return func() { tick.Stop(); close(done) }
		}},
		{[]string{"RationStoreDown", "RationCollectorFails"}, func() func() {
			redis.Stop(t)
			return func() { redis.Continue(t) }
		}},
		{[]string{"RationStalled"}, func() func() {
			a.set(func() { a.until = time.Now().Add(time.Hour) })
			return func() { a.set(func() { a.until = time.Time{} }) }
		}},
	} {
		var firing map[string]bool
		if fault.alerts[0] != "RationDrift" { // which what is refused has raised, since it has a pace found
			require.Eventually(t, func() bool {
				firing = p.firing(t)
				return !slices.ContainsFunc(fault.alerts, func(name string) bool { return firing[name] })
			}, soon, 250*time.Millisecond, "%v before their fault", fault.alerts)
		}
		end := fault.begin()
		require.Eventually(t, func() bool {
			firing = p.firing(t)
			return !slices.ContainsFunc(fault.alerts, func(name string) bool { return !firing[name] })
		}, soon, 250*time.Millisecond, "%v", fault.alerts)
		t.Log(fault.alerts, "of", slices.Sorted(maps.Keys(firing)))
		end()
	}
}
