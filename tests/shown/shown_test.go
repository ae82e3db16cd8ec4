// Package shown compares what people are shown of a fleet with what the provider of a test knows.
package shown_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

func TestMain(m *testing.M) {
	redistest.Main(m)
	if dir, err := programs(); err == nil {
		_ = os.RemoveAll(dir)
	}
}

const (
	most    = 60
	window  = 10 * time.Second
	callers = 8 // in each process
	// How late a call may be counted, as Budget.Margin says: a twentieth of the window.
	late = window / 20
	// A process says every ten seconds what its callers do, and a question takes its time.
	told = 12 * time.Second
)

// A provider counts calls as they arrive. One token dies, and one account is refused for some seconds.
type provider struct {
	mu       sync.Mutex
	arrivals map[string][]time.Time // served and refused, by token
	rejected map[string]time.Time   // when a token was rejected last
	served   map[string]time.Time   // when it was served last
	refusals []time.Time
	dead     string
	pausing  string    // the token that is refused
	until    time.Time // when that ends
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now, token := time.Now(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrivals[token] = append(p.arrivals[token], now)
	switch {
	case token == p.dead:
		p.rejected[token] = now
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error": "invalid_token"}`)
	case token == p.pausing && now.Before(p.until):
		p.refusals = append(p.refusals, now)
		w.Header().Set("Retry-After", fmt.Sprint(int(p.until.Sub(now)/time.Second)+1))
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		p.served[token] = now
	}
}

// between returns how many calls of a token arrived between two instants.
func (p *provider) between(token string, from, to time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.arrivals[token] {
		if at.After(from) && !at.After(to) {
			n++
		}
	}
	return n
}

// Every second of a crawl what is shown is what the provider knows, as exactly as it can be known.
func TestWhatIsShownIsSo(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	p := &provider{arrivals: make(map[string][]time.Time), rejected: make(map[string]time.Time), served: make(map[string]time.Time)}
	api := httptest.NewServer(p)
	defer api.Close()
	redis := redistest.Start(t)
	secrets := []string{"ann", "bob", "eve"}
	id := make(map[string]string) // of accounts, by the secret
	ctx, stop := context.WithTimeout(t.Context(), 48*time.Second)
	defer stop()
	var all sync.WaitGroup
	for range 3 {
		differs := func(e ration.Event) {
			if e.Kind == ration.ExternalUsage || e.Kind == ration.LimitLearned || e.Kind == ration.LimitUnclear {
				t.Errorf("nobody else spends the quota, and %v", e)
			}
		}
		budget := &ration.Budget{OnEvent: differs, Name: "api", Limits: []ration.Limit{{Max: most, Window: window}}, Store: &ration.RedisStore{Client: redis.Client(t)}}
		var tokens []ration.Token
		for _, secret := range secrets {
			tokens = append(tokens, ration.NewToken(secret))
			id[secret] = ration.NewToken(secret).AccountID()
		}
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, tokens...)}}
		for n := range callers {
			all.Go(func() {
				for ctx.Err() == nil {
					req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/items/%d", api.URL, n), nil)
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
	kept := &ration.RedisStore{Client: redis.Client(t)}
	begun := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	looks := 0
	for second := 1; ctx.Err() == nil && second < 46; second++ {
		<-ticker.C
		p.mu.Lock()
		switch second {
		case 6:
			p.dead = "eve"
		case 17:
			p.pausing, p.until = "bob", time.Now().Add(9*time.Second)
		}
		p.mu.Unlock()
		before := time.Now()
		d, err := kept.Describe(t.Context(), "api")
		require.NoError(t, err)
		after := time.Now()
		looks++
		for _, secret := range secrets {
			for _, a := range d.Accounts {
				if a.Account == id[secret] {
					compareAccount(t, p, &d, a, secret, before, after)
				}
			}
		}
		compareRates(t, p, &d, secrets, begun, after)
	}
	stop()
	all.Wait()
	require.Greater(t, looks, 25)
	require.NotEmpty(t, p.refusals)
	require.NotZero(t, p.rejected["eve"])
}

// compareAccount compares an account as it is shown with the calls that arrived.
func compareAccount(t *testing.T, p *provider, d *store.Description, a store.DescribedAccount, secret string, before, after time.Time) {
	l := a.Limits[0]
	state, words, until := view.StateOf(d, a, l)
	least := p.between(secret, after.Add(late-window), before)
	// What is booked and has not arrived yet is used: each caller has one at most.
	greatest := p.between(secret, before.Add(-window-2*late), after) + 3*callers
	require.GreaterOrEqual(t, l.Used, least, "%s: so many calls arrived, and fewer are shown as used", secret)
	require.LessOrEqual(t, l.Used, greatest, "%s: so few calls arrived, and more are shown as used", secret)
	require.LessOrEqual(t, l.Remaining, most-least, "%s: more is shown as left than is", secret)
	p.mu.Lock()
	defer p.mu.Unlock()
	rejected, served, isPaused := p.rejected[secret], p.served[secret], secret == p.pausing && after.Before(p.until)
	switch {
	case state == view.StateQuarantined:
		require.True(t, rejected.After(served), "%s is shown as %q, and was served %v after it was rejected", secret, words, served.Sub(rejected))
	case secret == p.dead && rejected.After(served) && before.Sub(served) > 3*time.Second:
		require.Failf(t, "a dead token is not shown", "%s: %s, %d left", secret, words, l.Remaining)
	case state == view.StatePaused:
		require.Equal(t, p.pausing, secret, "it is shown as paused")
		require.WithinDuration(t, p.until, after.Add(until.Sub(a.Now)), 2*time.Second, "until when it is paused")
	case isPaused && len(p.refusals) > 0 && before.Sub(p.refusals[0]) > time.Second:
		require.Failf(t, "a pause is not shown", "%s: %s, %d left", secret, words, l.Remaining)
	case state == view.StateFree:
		require.NotZero(t, l.Remaining)
		require.Less(t, least, most, "%s is spent, and shown as free", secret)
	}
}

// compareRates compares the rates that are shown with those of the arrivals.
func compareRates(t *testing.T, p *provider, d *store.Description, secrets []string, begun, now time.Time) {
	sum := view.Summarize(d)
	p.mu.Lock()
	old, refusals := 0, len(p.refusals)
	for _, at := range p.refusals {
		if now.Sub(at) > told && now.Sub(at) < time.Minute {
			old++
		}
	}
	p.mu.Unlock()
	p.mu.Lock()
	before, all := 0, 0 // how many calls had arrived that must be counted, and may be
	for token, arrivals := range p.arrivals {
		for _, at := range arrivals {
			if all++; now.Sub(at) > told && token != p.dead && token != p.pausing {
				before++
			}
		}
	}
	p.mu.Unlock()
	counted := int64(0)
	for _, w := range d.Workers {
		for _, n := range w.Load.AnswersInAll {
			counted += n
		}
		require.Less(t, w.Load.Took.Quantile(0.99), time.Second, "the provider answers at once")
		require.LessOrEqual(t, w.Load.LongestWait, 2*window, "each window has more slots than there are callers")
		if now.Sub(begun) > told+window {
			require.Greater(t, w.Load.Waited.Count(), callers)
		}
	}
	require.GreaterOrEqual(t, counted, int64(before), "answers in all, of which there were %d", all)
	require.LessOrEqual(t, counted, int64(all))
	// All that the dead token was tried with are no refusals.
	require.LessOrEqual(t, sum.Refused, refusals)
	require.GreaterOrEqual(t, sum.Refused, old, "refusals that are older than %v", told)
	if now.Sub(begun) < told+20*time.Second {
		return
	}
	least, greatest := 1e9, 0.0
	for from := now.Add(-told - 20*time.Second); from.Before(now.Add(-10 * time.Second)); from = from.Add(time.Second / 2) {
		n := 0
		for _, secret := range secrets {
			n += p.between(secret, from, from.Add(10*time.Second))
		}
		least, greatest = min(least, float64(n)/10), max(greatest, float64(n)/10)
	}
	require.GreaterOrEqual(t, sum.SlotsPerSecond, 0.9*least-0.5, "calls a second, of which there were %.1f to %.1f", least, greatest)
	require.LessOrEqual(t, sum.SlotsPerSecond, 1.1*greatest+0.5, "calls a second, of which there were %.1f to %.1f", least, greatest)
}
