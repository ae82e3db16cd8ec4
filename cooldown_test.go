package ration_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// Who is refused, by what the answer is about: one request is refused for ten minutes,
// and others are sent behind it, by another worker of the fleet.
func TestARefusalPausesItsScope(t *testing.T) {
	const later = 10 * time.Minute
	json := []string{"Content-Type", "application/json", "Retry-After", "600"}
	for _, row := range []struct {
		name     string
		provider string
		status   int
		body     string
		header   []string
		// When the refused request leaves again, and then, each on a client of its
		// own: one for the same endpoint, one for another, one on another token.
		again, same, other, token time.Duration
	}{
		{"a token", "instagram", 429, `{"meta":{"error_type":"OAuthRateLimitException","code":429}}`, json, 0, 0, 0, 0},
		{"an app", "meta", 400, `{"error":{"code":4,"message":"(#4) Application request limit reached","type":"OAuthException"}}`,
			json, later, later, later, later},
		{"an address", "binance", 418, `{"code":-1003,"msg":"Way too much request weight used; IP banned."}`, json, later, later, later, later},
		{"an endpoint of an app", "tiktok", 429, `{"error":{"code":"rate_limit_exceeded"}}`, json, later, later, 0, later},
		{"an endpoint that is overloaded", "generic", 503, "", []string{"Retry-After", "600"}, later, later, 0, later},
		{"nobody knows whom", "generic", 429, "", []string{"Retry-After", "600"}, 0, 0, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
				ours.Limits = []ration.Limit{ration.PerHour(100)}
				theirs := rationtest.Peer(ours)
				p := rationtest.Preset(t, row.provider)
				p.Attach = nil
				api := rationtest.NewAPI(rationtest.ThrottlingOnce(row.status, row.body, row.header...))
				both := rationtest.Tokens("a", "b")
				us := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(ours, both...)}}
				them := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(theirs, both...)}}
				// They know nothing yet but have booked before.
				_, err := theirs.Wait(t.Context(), both[0], 1)
				require.NoError(t, err)
				begun := time.Now()
				left := make([]time.Duration, 4)
				var callers sync.WaitGroup
				book := func(i int, client *http.Client, path string) {
					callers.Go(func() {
						rationtest.Get(t, client, "http://api.test"+path)
						left[i] = time.Since(begun)
					})
					synctest.Wait()
				}
				book(0, us, "/users/17/media")
				book(1, them, "/users/18/media")
				book(2, them, "/tags/x")
				other := both[0]
				if api.Tokens()[0] == "a" {
					other = both[1]
				}
				alone := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(theirs, other)}}
				book(3, alone, "/users/19/media")
				callers.Wait()
				first := 2 * later
				for i, want := range []time.Duration{row.again, row.same, row.other, row.token} {
					if want == 0 {
						require.InDelta(t, 0, left[i].Seconds(), 2, "request %d left after %v", i, left[i])
						continue
					}
					first = min(first, left[i])
					require.GreaterOrEqual(t, left[i], want, "request %d", i)
					require.Less(t, left[i], want+want/5, "request %d: behind a slow start", i)
				}
				require.True(t, first == 2*later || first < later+2*time.Second, "the first left after %v", first)
			})
		})
	}
}

// A token that is refused for its part of an endpoint goes on with the others, and
// another token with that endpoint.
func TestAnEndpointsRefusalOfATokenPausesNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rationtest.Preset(t, "x")
		reset := time.Now().Add(15 * time.Minute).Unix()
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			h := []string{"x-rate-limit-limit", "15", "x-rate-limit-remaining", "0", "x-rate-limit-reset", fmt.Sprint(reset)}
			if strings.HasPrefix(req.URL.Path, "/2/users/") && n == 1 {
				return rationtest.Respond(req, 429, `{"title":"Too Many Requests","status":429}`, append(h, "Content-Type", "application/json")), nil
			}
			return rationtest.Respond(req, 200, "{}", nil), nil
		})
		budget, both := rationtest.NewBudget(ration.PerHour(100)), rationtest.Tokens("a", "b")
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(budget, both...)}}
		rationtest.Get(t, client, "http://api.test/2/users/17")
		first := api.Tokens()[0]
		for range 4 {
			rationtest.Get(t, client, "http://api.test/2/users/18")
		}
		require.NotContains(t, api.Tokens()[1:], first, "the refused token was used for that endpoint")
		for range 4 {
			rationtest.Get(t, client, "http://api.test/2/tweets/18")
		}
		require.Contains(t, api.Tokens()[6:], first, "the refused token was not used for another endpoint")
		require.Zero(t, time.Since(api.Begun))
		time.Sleep(16 * time.Minute)
		for range 4 {
			rationtest.Get(t, client, "http://api.test/2/users/19")
		}
		require.Contains(t, api.Tokens()[10:], first)
	})
}

// A success that has left nothing holds the next request back until there is more.
func TestAnAnswerThatLeftNothingHoldsTheNextBack(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100)}
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			return rationtest.Respond(req, 200, "", []string{"RateLimit-Policy", `"default";q=100;w=60`, "RateLimit", `"default";r=0;t=30`}), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		rationtest.Get(t, client, "http://api.test/")
		rationtest.Get(t, client, "http://api.test/")
		require.Equal(t, rationtest.Seconds(0, 30), api.Times())
	})
}

// Those who have waited for the end of a pause leave in their order by a slow start: one in the first step, then two, four, eight.
func TestAfterAPauseTheQueueGoesOnBySlowStart(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(3600)} // one a second in the long run
		api := rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "600"))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() { rationtest.Get(t, client, fmt.Sprintf("http://api.test/%02d", i)) })
			synctest.Wait()
		}
		callers.Wait()
		all := api.Calls()
		const step = 10 * time.Minute / 32
		steps := make([]int, 6)
		for i, c := range all[1:] {
			require.Equal(t, fmt.Sprintf("http://api.test/%02d", i), c.URL)
			steps[(c.At-10*time.Minute)/step]++
		}
		require.Equal(t, []int{1, 2, 4, 8, 5, 0}, steps)
		require.Equal(t, 10*time.Minute, all[1].At)
	})
}
