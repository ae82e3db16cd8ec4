package ration_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// A refusal that was not understood is told once for each shape, without the token.
func TestWhatIsNotUnderstoodIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "a-secret-of-ann"
		calls := 0
		api := answering(func(time.Duration, *http.Request) rationtest.Reply {
			calls++
			if calls%2 == 0 {
				return rationtest.Served
			}
			header := []string{"X-Foo-Resets", "soon " + strings.Repeat("1", calls)}
			if calls > 4 {
				header = append(header, "X-Bar-Limit-Of", secret+" is 7")
			}
			return rationtest.Reply{Status: 429, Header: header}
		})
		var told []ration.Event
		budget := rationtest.NewBudget(ration.PerHour(100))
		budget.OnEvent = func(e ration.Event) {
			if e.Kind == ration.LimitUnclear {
				told = append(told, e)
			}
		}
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(budget, ration.NewToken(secret))}}
		for range 4 {
			require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
		}
		require.Len(t, told, 2)
		require.Contains(t, told[0].String(), `"HTTP/1.1 429 Too Many Requests\r\nX-Foo-Resets: soon 1\r\n"`)
		require.Contains(t, told[1].Cause, "X-Bar-Limit-Of")
		require.NotContains(t, told[1].String(), secret)
	})
}

// A quota of searches stops them until it comes back, and nothing else.
func TestASmallQuotaStopsNoLargerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)))
		midnight, searches := time.Date(2026, 3, 3, 8, 0, 0, 0, time.UTC), 0
		api := answering(func(_ time.Duration, req *http.Request) rationtest.Reply {
			if !strings.HasSuffix(req.URL.Path, "/search") || !time.Now().Before(midnight) {
				return rationtest.Served
			}
			searches++
			return rationtest.Reply{Status: 429, Header: []string{"Content-Type", "application/json"}, Body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","errors":[{"reason":"rateLimitExceeded"}],
				"details":[{"metadata":{"quota_metric":"youtube.googleapis.com/search_queries","quota_limit":"defaultSearchPerDayPerProject","quota_limit_value":"100"}}]}}`}
		})
		youtube := presets.YouTube()
		budget := rationtest.NewBudget(youtube.Limits...)
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: youtube, Pool: ration.NewPool(budget, ration.NewToken("a"), ration.NewToken("b")),
			Retries: ration.RetryPolicy{Within: 30 * time.Hour}}}
		done := make(chan time.Time)
		go func() {
			require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/youtube/v3/search?q=a").StatusCode)
			done <- time.Now()
		}()
		time.Sleep(time.Minute)
		for range 100 {
			begun := time.Now()
			require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/youtube/v3/videos?id=a").StatusCode)
			require.Less(t, time.Since(begun), time.Second)
		}
		served := <-done
		require.False(t, served.Before(midnight))
		require.Less(t, served.Sub(midnight), time.Minute)
		require.Equal(t, 1, searches)
	})
}

// A refusal in a 200 is retried, and never kept as a result.
func TestRefusalsThatLookLikeResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct{ kind, body string }{
			{"application/json", `{"error":{"type":"Exception","message":"Quota limit exceeded","code":4}}`},
			{"text/plain", "Too many requests, please try again later."},
			{"text/html", "<html><head><title>429 Too Many Requests</title></head></html>"},
		} {
			refused := 0
			api := answering(func(time.Duration, *http.Request) rationtest.Reply {
				if refused == 2 {
					return rationtest.Reply{Status: 200, Header: []string{"Content-Type", "application/json"}, Body: `{"id":7}`}
				}
				refused++
				return rationtest.Reply{Status: 200, Header: []string{"Content-Type", row.kind}, Body: row.body}
			})
			client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))}}
			resp := rationtest.Get(t, client, "http://api.test/")
			f, _ := ration.FeedbackOf(resp)
			require.False(t, f.Refused)
			require.Equal(t, 2, refused, row.body)
		}
	})
}

// A Provider with a rule that can never match is an error of the first request.
func TestARuleThatCanNeverMatchIsAnError(t *testing.T) {
	api := answering(func(time.Duration, *http.Request) rationtest.Reply { return rationtest.Served })
	never := &provider.Provider{Name: "mine", Rules: []provider.MatchRule{{Status: []int{404}, Field: "error", Reason: provider.ReasonQuota}}}
	client := &http.Client{Transport: &ration.Transport{Base: api, Provider: never, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))}}
	_, err := client.Get("http://api.test/")
	require.ErrorContains(t, err, `rule 0 of the provider "mine" can never match`)
}
