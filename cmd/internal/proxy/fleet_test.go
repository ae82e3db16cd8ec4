package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/cmd/internal/proxy"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A windowJudge is an origin that refuses what a window of any alignment has too much of. It shares no code with the limiter.
type windowJudge struct {
	most   int
	window time.Duration

	mu      sync.Mutex
	seen    map[string][]time.Time // by the secret
	refused int
	by      map[string]int // served, by the User-Agent
}

func (j *windowJudge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	token := r.Header.Get("Authorization")
	log := j.seen[token]
	for len(log) > 0 && now.Sub(log[0]) >= j.window {
		log = log[1:]
	}
	if len(log) >= j.most {
		j.refused++
		j.seen[token] = log
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	j.seen[token] = append(log, now)
	j.by[r.UserAgent()]++
}

// Four proxies and two programs that use the library spend one quota: nothing is refused, all of it is used, and no client gets
// more than another.
func TestProxiesAndLibrariesShareOneQuota(t *testing.T) {
	testkit.Slow(t)
	const most, window, runs = 60, 2 * time.Second, 12 * time.Second
	judge := &windowJudge{most: most, window: window, seen: make(map[string][]time.Time), by: make(map[string]int)}
	origin := httptest.NewServer(judge)
	defer origin.Close()
	host := strings.TrimPrefix(origin.URL, "http://")
	redis := redistest.Start(t)
	config := load(t, fmt.Sprintf("budgets:\n  api:\n    hosts: [\"http://%s\"]\n    limits: [\"%d/%s\"]\n    tokens: [{env: TEST_TOKENS}]\n", host, most, window))
	ctx, stop := context.WithTimeout(t.Context(), runs)
	defer stop()
	var all sync.WaitGroup
	crawl := func(ctx context.Context, name string, client *http.Client, address string) {
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					req, err := http.NewRequestWithContext(ctx, "GET", address, nil)
					if err != nil {
						return
					}
					req.Header.Set("User-Agent", name)
					resp, err := client.Do(req)
					if err != nil {
						continue
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
	}
	for i := range 4 {
		s := &proxy.Server{Store: &ration.RedisStore{Client: redis.Client(t)}}
		require.NoError(t, s.Use(config))
		front := httptest.NewServer(s)
		defer front.Close()
		crawl(ctx, fmt.Sprint("proxy-", i), &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}, front.URL+"/"+host+"/")
	}
	for i := range 2 {
		b := &ration.Budget{Name: "api", Limits: []ration.Limit{{Max: most, Window: window}}, Store: &ration.RedisStore{Client: redis.Client(t)}}
		transport := &ration.Transport{Pool: ration.NewPool(b, ration.NewToken("a-secret"), ration.NewToken("b-secret"))}
		crawl(ctx, fmt.Sprint("library-", i), &http.Client{Transport: transport}, origin.URL)
	}
	all.Wait()
	judge.mu.Lock()
	defer judge.mu.Unlock()
	served, sum, squares := 0, 0.0, 0.0
	for _, n := range judge.by {
		served += n
		sum, squares = sum+float64(n), squares+float64(n*n)
	}
	possible := 2 * most * int(runs/window)
	t.Logf("%d served of %d, %d refused, by %v", served, possible, judge.refused, judge.by)
	require.Zero(t, judge.refused)
	require.GreaterOrEqual(t, float64(served), 0.95*float64(possible))
	require.Len(t, judge.by, 6)
	require.Greater(t, sum*sum/(6*squares), 0.98, "Jain's index")
}
