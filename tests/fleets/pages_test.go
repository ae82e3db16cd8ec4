package fleets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/stall"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A publisher serves pages to tokens whose secrets expire, counts their calls in any window, and
// answers 401 to secrets that are not valid and for pages that are private. It shares no code with
// the limiter.
type publisher struct {
	max    int
	window time.Duration
	life   time.Duration // of a secret
	says   string        // the body of a 401
	flaky  int           // of 100 calls so many are answered 500, and as many by the end of the connection

	mu      sync.Mutex
	secrets map[string]secretOf
	made    int
	revoked string                 // the token's name; "": none
	calls   map[string][]time.Time // by token
	served  map[string]int         // by path
	tried   map[string]int         // by path
	newest  time.Time              // when a page was tried first that was not tried before
	expired int                    // calls with a secret that had expired
	refused []time.Time
	dead    int // calls of the revoked token
}

// pages reads what came of each page that a process of tests/fleets/pages crawls, none of which may
// fail, until it ends, and returns the IDs of the tokens that are quarantined then, and when the process stalled.
func (p *fleetProcess) pages(t *testing.T, each func(path string, status int)) (quarantined []string, stalls []stall.Stall) {
	t.Helper()
	for {
		text, err := p.out.ReadBytes('\n')
		require.NoError(t, err)
		var of struct {
			Path, Error string
			Status      int
			Quarantined []string
			Stalls      []stall.Stall
			Done        bool
		}
		require.NoError(t, json.Unmarshal(text, &of))
		require.Empty(t, of.Error, of.Path)
		if of.Done {
			require.NoError(t, p.cmd.Wait())
			return of.Quarantined, of.Stalls
		}
		each(of.Path, of.Status)
	}
}

// served reads what came of the pages of a fleet, each of which must be served, until all processes have ended, and returns when
// these and the judge stalled.
func served(t *testing.T, fleet []*fleetProcess, judge func() []stall.Stall) (stalls []stall.Stall) {
	t.Helper()
	for _, process := range fleet {
		_, its := process.pages(t, func(path string, status int) { require.Equal(t, http.StatusOK, status, path) })
		stalls = append(stalls, its...)
	}
	return append(stalls, judge()...)
}

// refusedInStalls demands that no call was refused but behind a stall of the machine that was longer than the margin, and reports
// whether any was.
func refusedInStalls(t *testing.T, refused []time.Time, stalls []stall.Stall, window, margin time.Duration) bool {
	t.Helper()
	for _, at := range refused {
		// The calls that a refused one came too close to arrived a window before it.
		require.True(t, stall.Within(stalls, margin, at.Add(-window-window/2), at), "%d calls were refused, and no process had stalled before that of %v", len(refused), at)
	}
	return len(refused) > 0
}

// untilShown makes a crawl until it shows something. A stall of the machine has calls refused, for which the fleet pauses, or
// callers miss their slots.
func untilShown(t *testing.T, crawl func() (shows bool)) {
	t.Helper()
	const most = 3
	for range most {
		if crawl() {
			return
		}
		t.Log("the machine stalled: the crawl shows nothing")
	}
	t.Fatalf("the machine stalled in each of %d crawls: run this test alone", most)
}

// noSource is of a token of which only the ID is asked for.
func noSource(context.Context) (string, time.Time, error) { return "", time.Time{}, nil }

// A secretOf is whose a secret is, and until when it is valid.
type secretOf struct {
	token string
	until time.Time
}

func newPublisher(most int, window time.Duration) *publisher {
	return &publisher{max: most, window: window, life: time.Hour, secrets: make(map[string]secretOf),
		calls: make(map[string][]time.Time), served: make(map[string]int), tried: make(map[string]int)}
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if name, found := strings.CutPrefix(r.URL.Path, "/secret/"); found {
		p.made++
		secret := fmt.Sprint("secret-", p.made)
		p.secrets[secret] = secretOf{name, now.Add(p.life)}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": secret, "expires_in": p.life.Seconds()})
		return
	}
	if p.tried[r.URL.Path]++; p.tried[r.URL.Path] == 1 {
		p.newest = now
	}
	of := p.secrets[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	recent := p.calls[of.token]
	since := len(recent)
	for since > 0 && now.Sub(recent[since-1]) < p.window {
		since--
	}
	unauthorized := func() {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(p.says))
	}
	switch {
	case len(recent)-since >= p.max:
		p.refused = append(p.refused, now)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case !now.Before(of.until):
		p.expired++
		unauthorized()
	case of.token == p.revoked:
		p.dead++
		unauthorized()
	case strings.HasPrefix(r.URL.Path, "/private/"):
		unauthorized()
	case p.flaky > 0 && p.fails(w, r.URL.Path):
	default:
		p.served[r.URL.Path]++
	}
	p.calls[of.token] = append(recent, now)
}

// fails answers a call by an error that is to be tried again, the first two of a page at most.
func (p *publisher) fails(w http.ResponseWriter, path string) bool {
	switch n := rand.IntN(100); {
	case p.tried[path] > 2:
		return false
	case n < p.flaky:
		w.WriteHeader(http.StatusInternalServerError)
	case n < 2*p.flaky:
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.(*net.TCPConn).SetLinger(0) // it is reset
		_ = conn.Close()
	default:
		return false
	}
	return true
}

// used returns the share of the quota that the tokens used in whole windows, the revoked one until then:
// from the first call to when the last page was tried first, since then only retries are left.
func (p *publisher) used(revokedAt time.Time) float64 {
	first, last := p.newest, p.newest
	for _, all := range p.calls {
		if all[0].Before(first) {
			first = all[0]
		}
	}
	calls, allowed := 0, 0
	for token, all := range p.calls {
		end := last
		if token == p.revoked {
			end = revokedAt
		}
		windows := int(end.Sub(first) / p.window)
		end = first.Add(time.Duration(windows) * p.window)
		allowed += windows * p.max
		for _, at := range all {
			if at.Before(end) {
				calls++
			}
		}
	}
	return float64(calls) / float64(allowed)
}

// A fleet crawls a list with private pages in it while secrets expire and a token is revoked. Every
// public page is served once, nothing is refused, and no healthy token is out at the end.
func TestAFleetCrawlsPrivatePagesWithATokenThatIsRevoked(t *testing.T) {
	const pages, callers, window = 3000, 8, 4 * time.Second
	program := buildProgram(t, "tests/fleets/pages")
	for name, row := range map[string]struct {
		redis     string
		processes int
		says      string
	}{
		"RedisStore":                {redistest.Start(t).Addr, 4, `{"error":"unauthorized"}`},
		"RedisStore, invalid token": {redistest.Start(t).Addr, 4, `{"error":"invalid_token"}`},
		"MemoryStore":               {"", 1, `{"error":"unauthorized"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			untilShown(t, func() (shows bool) {
				judgeStalls := stall.Note()
				p := newPublisher(400, window)
				p.life, p.says = window/2, row.says
				server := httptest.NewServer(p)
				defer server.Close()
				tokens, lists := []string{"ann", "bob", "eve"}, make([][]string, row.processes)
				for n := range pages {
					path := fmt.Sprint("/public/", n)
					if n < 10 || n%20 == 0 {
						path = fmt.Sprint("/private/", n)
					}
					lists[n%row.processes] = append(lists[n%row.processes], path)
				}
				var fleet []*fleetProcess
				budget := redistest.Name(t)
				for i := range row.processes {
					fleet = append(fleet, startFleet(t, program, map[string]any{"Redis": row.redis, "Budget": budget, "Limit": "400/4s", "Tokens": tokens,
						"Issuer": server.URL + "/secret/", "Base": server.URL, "Paths": lists[i], "Callers": callers * 4 / row.processes}))
				}
				<-time.After(4 * time.Second)
				p.mu.Lock()
				p.revoked = "eve"
				p.mu.Unlock()
				revokedAt := time.Now()
				var stalls []stall.Stall
				statuses := make(map[string]int)
				quarantined := make(map[string]bool)
				for _, process := range fleet {
					out, its := process.pages(t, func(path string, status int) { statuses[path] = status })
					stalls = append(stalls, its...)
					for _, id := range out {
						quarantined[id] = true
					}
				}
				stalls = append(stalls, judgeStalls()...)
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, path := range slices.Concat(lists...) {
					if strings.HasPrefix(path, "/private/") {
						require.Equal(t, http.StatusUnauthorized, statuses[path], path)
					} else {
						require.Equal(t, http.StatusOK, statuses[path], path)
						require.Equal(t, 1, p.served[path], path)
					}
				}
				require.Zero(t, p.expired, "401s of secrets that had expired")
				for _, healthy := range tokens[:2] {
					require.NotContains(t, quarantined, ration.TokenFrom(healthy, noSource).ID())
				}
				if refusedInStalls(t, p.refused, stalls, window, window/100) {
					return false
				}
				used := p.used(revokedAt)
				t.Logf("%.1f %% of the quota used; %d calls of the revoked token; %d secrets made", 100*used, p.dead, p.made)
				require.GreaterOrEqual(t, used, 0.95)
				return true
			})
		})
	}
}
