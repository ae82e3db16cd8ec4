package fleets_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/stall"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A meteredProvider counts calls and tokens of a language model, each in any window, and refuses what exceeds one.
type meteredProvider struct {
	calls, tokens int
	window        time.Duration

	mu      sync.Mutex
	served  []meteredCall
	refused []time.Time
}

// A meteredCall is one that was served.
type meteredCall struct {
	at     time.Time
	tokens int
}

func (p *meteredProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/secret/") {
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "secret", "expires_in": 3600})
		return
	}
	now := time.Now()
	tokens, _ := strconv.Atoi(path.Base(r.URL.Path))
	calls, sum := 1, tokens
	for i := len(p.served) - 1; i >= 0 && now.Sub(p.served[i].at) < p.window; i-- {
		calls, sum = calls+1, sum+p.served[i].tokens
	}
	if calls > p.calls || sum > p.tokens {
		p.refused = append(p.refused, now)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	p.served = append(p.served, meteredCall{now, tokens})
}

// used returns the shares of both quotas that were used in whole windows.
func (p *meteredProvider) used() (calls, tokens float64) {
	first := p.served[0].at
	windows := p.served[len(p.served)-1].at.Sub(first) / p.window
	for _, c := range p.served {
		if c.at.Sub(first) < windows*p.window {
			calls, tokens = calls+1, tokens+float64(c.tokens)
		}
	}
	return calls / float64(int(windows)*p.calls), tokens / float64(int(windows)*p.tokens)
}

// Four processes keep a limit of calls and one of tokens at once: neither is exceeded in any window, and the tighter one is
// used.
func TestAFleetKeepsCallsAndTokens(t *testing.T) {
	const window, processes = 4 * time.Second, 4
	program := buildProgram(t, "tests/fleets/pages")
	for name, row := range map[string]struct{ calls, tokens, pages int }{
		"tokens are tighter": {600, 40_000, 1600},
		"calls are tighter":  {400, 60_000, 1600},
	} {
		t.Run(name, func(t *testing.T) {
			if row.tokens > 50_000 {
				testkit.Long(t)
			}
			untilShown(t, func() (shows bool) {
				judgeStalls := stall.Note()
				p := &meteredProvider{calls: row.calls, tokens: row.tokens, window: window}
				api := httptest.NewServer(p)
				defer api.Close()
				lists, server, budget := make([][]string, processes), redistest.Start(t), redistest.Name(t)
				for n := range row.pages {
					lists[n%processes] = append(lists[n%processes], fmt.Sprintf("/pages/%d/%d", n, 1+rand.IntN(200)))
				}
				var fleet []*fleetProcess
				for _, list := range lists {
					fleet = append(fleet, startFleet(t, program, map[string]any{"Redis": server.Addr, "Budget": budget,
						"Limit": fmt.Sprint(row.calls, "/", window), "UnitLimit": fmt.Sprint(row.tokens, "/", window, ":unit=tokens"),
						"Tokens": []string{"ann"}, "Issuer": api.URL + "/secret/", "Base": api.URL, "Paths": list, "Callers": 32}))
				}
				stalls := served(t, fleet, judgeStalls)
				p.mu.Lock()
				defer p.mu.Unlock()
				require.Len(t, p.served, row.pages)
				if refusedInStalls(t, p.refused, stalls, window, window/100) {
					return false
				}
				calls, tokens := p.used()
				t.Logf("%.1f %% of the calls and %.1f %% of the tokens used", 100*calls, 100*tokens)
				require.GreaterOrEqual(t, max(calls, tokens), 0.95)
				return true
			})
		})
	}
}
