package retries_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/provider"
)

// A crawler with two tokens, one of which was refused for half an hour, slept 1799.6 s
// and then did so again (airbytehq/airbyte-python-cdk#1117). The fleet goes on at once
// on the other, and comes back to the first when its time is over.
func TestACrawlGoesOnAtOnceOnTheOtherToken(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(5000)}
		api := rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "1799.6"))
		var clients []*http.Client
		for _, b := range []*ration.Budget{ours, rationtest.Peer(ours)} {
			clients = append(clients, &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens("a", "b")...)}})
		}
		for i := range 100 {
			require.Equal(t, http.StatusOK, rationtest.Get(t, clients[i%2], "http://api.test/").StatusCode)
		}
		require.Zero(t, time.Since(api.Begun))
		refused := api.Tokens()[0]
		require.Len(t, api.TimesOf(refused), 1)

		time.Sleep(1799600*time.Millisecond - time.Microsecond)
		for i := range 4 {
			rationtest.Get(t, clients[i%2], "http://api.test/")
		}
		require.Len(t, api.TimesOf(refused), 1)
		time.Sleep(time.Microsecond)
		for i := range 4 {
			rationtest.Get(t, clients[i%2], "http://api.test/")
		}
		require.Greater(t, len(api.TimesOf(refused)), 1)
	})
}

// Three tokens of one user have one quota: a refusal of one is one of all.
func TestTokensOfOneAccountAreRefusedTogether(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100)}
		all := rationtest.Tokens("a", "b", "c")
		for i := range all {
			all[i].Account = "one user"
		}
		pool := ration.NewPool(b, all...)
		api := rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "600"))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: pool}}
		rationtest.Get(t, client, "http://api.test/")
		for range 4 {
			time.Sleep(time.Minute)
			rationtest.Get(t, client, "http://api.test/")
		}
		require.Equal(t, rationtest.Seconds(0, 600, 660, 720, 780, 840), api.Times())
		for _, token := range all {
			rationtest.RequireRemaining(t, b, token, 100-6)
			require.Len(t, api.TimesOf(map[string]string{all[0].ID(): "a", all[1].ID(): "b", all[2].ID(): "c"}[token.ID()]), 2, "they take turns")
		}
		left, err := pool.Remaining(t.Context())
		require.NoError(t, err)
		require.Equal(t, 100-6, left)
	})
}

// What the tokens share is not tried on another of them: the fleet waits. An object is
// shared by all who call about it, and others may be called about.
func TestAPauseThatTokensShareIsNotTriedOnAnother(t *testing.T) {
	const tenMinutes = 10 * time.Minute
	object := `{"17841400000000001":[{"type":"instagram","call_count":100,"total_time":5,"total_cputime":5,"estimated_time_to_regain_access":10}]}`
	for _, row := range []struct {
		name, provider string
		says           rationtest.Reply
		again, other   time.Duration // when the request goes again, and one about something else
	}{
		{"app", "meta", rationtest.Reply{Status: 400, Body: `{"error":{"code":4,"type":"OAuthException"}}`, Header: append([]string{"Retry-After", "600"}, rationtest.JSON...)}, tenMinutes, tenMinutes},
		{"project", "google", rationtest.Reply{Status: 429, Body: `{"error":{"status":"RESOURCE_EXHAUSTED"}}`, Header: append([]string{"Retry-After", "600"}, rationtest.JSON...)}, tenMinutes, tenMinutes},
		{"address", "ncbi", rationtest.Reply{Status: 429, Body: `{"error":"API rate limit exceeded"}`, Header: append([]string{"Retry-After", "600"}, rationtest.JSON...)}, tenMinutes, tenMinutes},
		{"object that is named", "meta", rationtest.Reply{Status: 400, Body: `{"error":{"code":80002,"type":"OAuthException"}}`, Header: append([]string{"X-Business-Use-Case-Usage", object}, rationtest.JSON...)}, tenMinutes, 0},
		{"object that is not", "stripe", rationtest.Reply{Status: 429, Body: "{}", Header: append([]string{"Stripe-Rate-Limited-Reason", "resource-specific", "Retry-After", "600"}, rationtest.JSON...)}, tenMinutes, 0},
		{"user", "github", rationtest.Reply{Status: 403, Body: `{"message":"API rate limit exceeded for user ID 1."}`, Header: append([]string{"Retry-After", "600"}, rationtest.JSON...)}, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
				ours.Limits = []ration.Limit{ration.PerHour(100)}
				p := rationtest.Preset(t, row.provider)
				p.Attach, p.Cost = nil, nil
				api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
					if n == 1 {
						return row.says.To(req), nil
					}
					return rationtest.Served.To(req), nil
				})
				worker := func(b *ration.Budget) *http.Client {
					return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, rationtest.Tokens("a", "b", "c")...)}}
				}
				done := make(chan time.Duration, 2)
				go func() {
					rationtest.Get(t, worker(ours), "http://api.test/v1/17841400000000001/media")
					done <- time.Since(api.Begun)
				}()
				time.Sleep(time.Second)
				them := worker(rationtest.Peer(ours))
				rationtest.Get(t, them, "http://api.test/v1/17841400000000002/media")
				require.InDelta(t, max(row.other, time.Second).Seconds(), time.Since(api.Begun).Seconds(), 1+row.other.Seconds()/10)
				// And for whoever comes to the object next.
				rationtest.Get(t, them, "http://api.test/v1/17841400000000001/media")
				require.InDelta(t, max(row.again, row.other, time.Second).Seconds(), time.Since(api.Begun).Seconds(), 2+row.again.Seconds()/10) // a slow start
				require.InDelta(t, row.again.Seconds(), (<-done).Seconds(), 2+row.again.Seconds()/10)
				require.Equal(t, 4, len(api.Calls()))
			})
		})
	}
}

// An account that stands for the address is paused in place of all, so that requests
// that do not leave from there go on.
func TestASharedAccountIsPausedInPlaceOfAll(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(100)}
		theirs := rationtest.Peer(ours)
		for i, b := range []*ration.Budget{ours, theirs} {
			b.Shared = []ration.SharedAccount{{Account: ration.Account{ID: fmt.Sprintf("address-%d", i), Limits: []ration.Limit{ration.PerHour(1000)}}, Scope: provider.ScopeIP}}
		}
		api := rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "600"))
		p := rationtest.Preset(t, "ncbi")
		p.Attach = nil
		here := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(ours, rationtest.Tokens("a", "b")...)}}
		there := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(theirs, rationtest.Tokens("a", "b")...)}}
		done := make(chan struct{})
		go func() {
			rationtest.Get(t, here, "http://api.test/")
			close(done)
		}()
		time.Sleep(time.Second)
		rationtest.Get(t, there, "http://api.test/")
		<-done
		require.Equal(t, rationtest.Seconds(0, 1, 600), api.Times())
	})
}
