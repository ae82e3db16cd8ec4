package fleets_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// An authority makes secrets that live for a while, and serves who has one.
type authority struct {
	life time.Duration

	mu      sync.Mutex
	good    map[string]time.Time // until when
	made    map[string]int       // by process
	making  map[string]int       // by process, at this moment
	most    int                  // in one process at a time
	calls   int
	refused int
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if process, found := strings.CutPrefix(r.URL.Path, "/secret/"); found {
		a.making[process]++
		a.most = max(a.most, a.making[process])
		a.mu.Unlock()
		<-time.After(50 * time.Millisecond) // as long as others may come
		a.mu.Lock()
		a.making[process]--
		a.made[process]++
		secret, expires := fmt.Sprint(process, " ", a.made[process]), time.Now().Add(a.life)
		a.good[secret] = expires
		_ = json.NewEncoder(w).Encode(map[string]any{"Value": secret, "Expires": expires})
		return
	}
	a.calls++
	if !time.Now().Before(a.good[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]) {
		a.refused++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"invalid_token"}`))
	}
}

// revoke ends all secrets.
func (a *authority) revoke() (refused int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.good)
	return a.refused
}

// Secrets expire and are revoked while the fleet crawls. Every caller is served, each process
// asks for one secret at a time, and whatever the secret every call is in the one account's log.
func TestAFleetWhoseSecretsExpireAndAreRevoked(t *testing.T) {
	const rounds, callers = 6, 20
	crawl := buildProgram(t, "tests/fleets/crawl")
	for name, row := range map[string]struct {
		redis     string
		processes int
	}{
		"RedisStore":  {redistest.Start(t).Addr, 2},
		"MemoryStore": {"", 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := &authority{life: time.Second, good: make(map[string]time.Time), made: make(map[string]int), making: make(map[string]int)}
			server := httptest.NewServer(a)
			defer server.Close()
			limit := ration.PerHour(10_000)
			budget := redistest.Name(t)
			var fleet []*fleetProcess
			for n := range row.processes {
				fleet = append(fleet, startFleet(t, crawl, map[string]any{"Redis": row.redis, "Budget": budget, "Limit": limit.String(),
					"Token": "ann", "Source": fmt.Sprint(server.URL, "/secret/", n), "URL": server.URL}))
			}
			refused := 0
			for round := range rounds {
				if round%2 == 1 {
					refused = a.revoke()
				} else {
					<-time.After(a.life) // what was made has expired
				}
				for _, p := range fleet {
					p.ask(t, map[string]any{"Start": callers})
				}
				for _, p := range fleet {
					for served := 0; served < (round+1)*callers; {
						<-time.After(10 * time.Millisecond)
						answer := p.ask(t, map[string]any{})
						require.Empty(t, answer.Failure, "round %d", round+1)
						served = answer.Served
					}
				}
				if round%2 == 1 {
					require.Greater(t, a.revoke(), refused, "nobody used what was revoked")
				}
			}
			answer := fleet[0].ask(t, map[string]any{"Try": true})
			a.mu.Lock()
			defer a.mu.Unlock()
			require.Equal(t, 1, a.most)
			require.Len(t, a.made, row.processes)
			require.Equal(t, rounds*callers*row.processes, a.calls-a.refused)
			require.Equal(t, a.calls, limit.Max-answer.Units)
			t.Logf("%d calls, of which %d had a secret that was revoked; secrets made: %v", a.calls, a.refused, a.made)
			for _, p := range fleet {
				require.NoError(t, p.in.Close())
				require.NoError(t, p.cmd.Wait())
			}
		})
	}
}
