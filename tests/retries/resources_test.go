package retries_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

const gitHubSecondary = `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`

// gitHub returns a client of GitHub's preset with the limits of the preset.
func gitHub(t *testing.T, b *ration.Budget, api http.RoundTripper, secrets ...string) *http.Client {
	p := rationtest.Preset(t, "github")
	b.Limits = p.Limits
	return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, rationtest.Tokens(secrets...)...)}}
}

// GitHub counts searches and GraphQL by themselves: 30 and 10 a minute, 5,000 an hour. Nobody
// has to say so.
func TestGitHubsResourcesAreCountedByThemselves(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		api := rationtest.NewAPI(rationtest.Replying(0, rationtest.Served))
		client := gitHub(t, b, api, "a")
		get := func(path string) {
			require.Equal(t, 200, rationtest.Get(t, client, "https://api.github.com"+path).StatusCode)
		}
		for range 30 {
			get("/search/issues?q=a")
		}
		for range 10 {
			get("/search/code?q=a")
		}
		for range 50 {
			get("/repos/a/b")
			get("/graphql")
		}
		require.Zero(t, time.Since(api.Begun))
		token := rationtest.Tokens("a")[0]
		for scope, left := range map[string]int{"core": 4950, "graphql": 4950, "search": 0, "code_search": 0} {
			remaining, err := b.Remaining(ration.WithScopes(t.Context(), scope), token)
			require.NoError(t, err)
			require.Equal(t, left, remaining, scope)
		}
		for _, path := range []string{"/search/users?q=a", "/api/v3/search/users?q=a"} { // the latter on a server of one's own
			begun := time.Now()
			get(path)
			if path == "/search/users?q=a" {
				require.GreaterOrEqual(t, time.Since(begun), 59*time.Second)
			}
		}
	})
}

// A core that is spent, as the provider says, holds no search up, and the other way round.
func TestARefusalOfOneResourceHoldsNoOtherUp(t *testing.T) {
	for refused, other := range map[string]string{"core": "search", "search": "core"} {
		t.Run(refused, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				paths := map[string]string{"core": "/repos/a/b", "search": "/search/issues"}
				api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
					if n > 1 {
						return rationtest.Served.To(req), nil
					}
					header := append([]string{"X-RateLimit-Limit", "30", "X-RateLimit-Remaining", "0", "X-RateLimit-Resource", refused,
						"Retry-After", "1800"}, rationtest.JSON...)
					return rationtest.Respond(req, 403, `{"message":"API rate limit exceeded for user ID 1."}`, header), nil
				})
				client := gitHub(t, b, api, "a")
				var first sync.WaitGroup
				first.Go(func() { rationtest.Get(t, client, "https://api.github.com"+paths[refused]) })
				time.Sleep(time.Second)
				rationtest.Get(t, client, "https://api.github.com"+paths[other])
				require.Equal(t, time.Second, time.Since(api.Begun), "the other resource waited")
				rationtest.Get(t, client, "https://api.github.com"+paths[refused])
				require.GreaterOrEqual(t, time.Since(api.Begun), 29*time.Minute, "a pause ended early")
				first.Wait()
			})
		})
	}
}

// The scopes of the caller are added to those of the provider.
func TestScopesOfTheCallerAndOfTheProviderBothCount(t *testing.T) {
	for name, of := range map[string]func(*ration.Transport, *http.Request) *http.Request{
		"context": func(_ *ration.Transport, req *http.Request) *http.Request {
			return req.WithContext(ration.WithScopes(req.Context(), "mine", "core"))
		},
		"transport": func(tr *ration.Transport, req *http.Request) *http.Request {
			tr.Scopes = func(*http.Request) []string { return []string{"mine"} }
			return req
		},
	} {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				api := rationtest.NewAPI(rationtest.Replying(0, rationtest.Served))
				client := gitHub(t, b, api, "a")
				b.Limits = append(b.Limits, ration.Limit{Max: 2, Window: time.Hour, Scope: "mine"})
				req := of(client.Transport.(*ration.Transport), rationtest.NewRequest(t, "GET", "https://api.github.com/user", nil))
				resp, err := client.Do(req)
				require.NoError(t, err)
				rationtest.Drain(t, resp)
				for scope, left := range map[string]int{"core": 4999, "mine": 1} {
					remaining, err := b.Remaining(ration.WithScopes(t.Context(), scope), rationtest.Tokens("a")[0])
					require.NoError(t, err)
					require.Equal(t, left, remaining, scope)
				}
			})
		})
	}
}

// A secondary limit is one account's: its request goes to another, and no worker uses it for a minute. If a second
// account is refused within a minute, it is the app's or the address's, and to try a third is what GitHub blocks apps for.
func TestASecondaryLimitIsTheAccountsUntilASecondIsRefused(t *testing.T) {
	for i, refusal := range []rationtest.Reply{
		{Status: 403, Body: gitHubSecondary, Header: rationtest.JSON},
		{Status: 429, Body: "{}", Header: append([]string{"Retry-After", "60"}, rationtest.JSON...)},
		{Status: 403, Body: `{"message":"Forbidden"}`, Header: append([]string{"Retry-After", "60", "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4000"}, rationtest.JSON...)},
		{Status: 200, Body: `{"errors":[{"message":"You have exceeded a secondary rate limit."}]}`, Header: rationtest.JSON},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				for _, refused := range []int{1, 2} {
					b := rationtest.Peer(b)
					b.Name = fmt.Sprint(b.Name, refused)
					api := rationtest.NewAPI(rationtest.Replying(refused, refusal))
					var mu sync.Mutex // protects used
					var used []string
					noting := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
						mu.Lock()
						used = append(used, rationtest.SecretOf(req))
						mu.Unlock()
						return api.RoundTrip(req)
					})
					client := gitHub(t, b, noting, "a", "b", "c")
					peer := gitHub(t, rationtest.Peer(b), noting, "a", "b", "c")
					var first sync.WaitGroup
					first.Go(func() { rationtest.Get(t, client, "https://api.github.com/repos/a/b") })
					time.Sleep(time.Second)
					for range 4 {
						rationtest.Get(t, peer, "https://api.github.com/search/issues")
					}
					first.Wait()
					at := api.Times()
					require.Less(t, at[1], time.Second, "another account is tried at once")
					if refused == 1 {
						require.Less(t, at[5], time.Minute)
						require.NotContains(t, used[1:], used[0], "the account that was refused")
					} else {
						require.NotEqual(t, used[0], used[1])
						require.GreaterOrEqual(t, at[2], time.Minute, "a third token was tried at once")
					}
				}
			})
		})
	}
}
