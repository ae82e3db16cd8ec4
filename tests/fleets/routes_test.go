package fleets_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/stall"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A routedProvider counts the calls of each path, and those of all, in any window, as Discord does, and refuses what exceeds one.
type routedProvider struct {
	perRoute, all       int
	routeWindow, window time.Duration

	mu      sync.Mutex
	served  map[string][]time.Time // by path; "": of all
	refused []time.Time
}

func (p *routedProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/secret/") {
		fmt.Fprint(w, `{"access_token": "secret", "expires_in": 3600}`)
		return
	}
	now := time.Now()
	within := func(route string, window time.Duration) (n int) {
		of := p.served[route]
		for i := len(of) - 1; i >= 0 && now.Sub(of[i]) < window; i-- {
			n++
		}
		return n
	}
	if within(r.URL.Path, p.routeWindow) >= p.perRoute || within("", p.window) >= p.all {
		p.refused = append(p.refused, now)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	for _, route := range []string{r.URL.Path, ""} {
		p.served[route] = append(p.served[route], now)
	}
}

// Four processes send to 20 routes, each of which has a limit of its own: none is exceeded in any window, all are used, and a route
// on which little happens does not wait for the others.
func TestAFleetKeepsTheLimitOfEachRoute(t *testing.T) {
	program := buildProgram(t, "tests/fleets/pages")
	untilShown(t, func() (shows bool) { return crawlRoutes(t, program) })
}

func crawlRoutes(t *testing.T, program string) (shows bool) {
	t.Helper()
	const processes, busy, calls, window = 4, 19, 16, 4 * time.Second
	p := &routedProvider{perRoute: 5, all: 200, routeWindow: window, window: time.Second, served: make(map[string][]time.Time)}
	judgeStalls := stall.Note()
	api := httptest.NewServer(p)
	defer api.Close()
	var paths []string
	for range calls / processes {
		for route := range busy {
			paths = append(paths, fmt.Sprintf("/channels/%d/messages", 1000+route))
		}
	}
	paths = append(paths, "/channels/99/messages") // behind all the others
	// 95 slots come at one instant, and two cores that also watch for data races take some 50 ms to send what waits for them. With the
	// margin that the windows have by themselves, 40 ms and 10 ms, callers would miss their slots. The limit of all is never spent.
	const margin = window / 40
	all := fmt.Sprint("200/1s:margin=", margin)
	server, budget := redistest.Start(t), redistest.Name(t)
	var fleet []*fleetProcess
	for range processes {
		fleet = append(fleet, startFleet(t, program, map[string]any{"Redis": server.Addr, "Budget": budget, "Limit": all,
			"RouteLimit": fmt.Sprint("5/", window, ":per=route,margin=", margin), "Tokens": []string{"ann"}, "Issuer": api.URL + "/secret/", "Base": api.URL,
			"Paths": paths, "Callers": len(paths)}))
	}
	stalls := served(t, fleet, judgeStalls)
	p.mu.Lock()
	defer p.mu.Unlock()
	if refusedInStalls(t, p.refused, stalls, window, margin) {
		return false
	}
	begun, quiet := p.served[""][0], p.served["/channels/99/messages"]
	require.Len(t, quiet, processes)
	used := 0 // in the two windows after the first, in which all begin at once and cold
	for route := range busy {
		of := p.served[fmt.Sprintf("/channels/%d/messages", 1000+route)]
		require.Len(t, of, calls)
		for _, at := range of {
			if since := at.Sub(begun); since > window-window/10 && since < 3*window-window/10 {
				used++
			}
		}
	}
	share := float64(used) / (busy * 10)
	t.Logf("the last quiet call after %v; %.1f %% of what the routes allow used", quiet[processes-1].Sub(begun).Round(time.Millisecond), 100*share)
	require.Less(t, quiet[processes-1].Sub(begun), window)
	if share < 0.97 && stall.Within(stalls, margin/2, begun, begun.Add(3*window)) { // callers may be late by half the margin
		return false
	}
	require.GreaterOrEqual(t, share, 0.97)
	return true
}
