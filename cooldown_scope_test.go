package ration_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/provider"
)

const githubSecondary = `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`

// GitHub asks for a minute at least, and for more each time, of the fleet.
func TestASecondaryLimitPausesForAMinuteAndThenLonger(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(100)}
		p := rationtest.Preset(t, "github")
		api := rationtest.NewAPI(rationtest.Replying(3, rationtest.Reply{Status: 403, Body: githubSecondary, Header: rationtest.JSON}))
		var reasons []provider.Reason
		worker := func(b *ration.Budget) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a")),
				OnRefusal: func(resp *http.Response, _ ration.Grant) {
					require.Equal(t, 403, resp.StatusCode)
					f, found := ration.FeedbackOf(resp)
					require.True(t, found)
					reasons = append(reasons, f.Reason)
				}}}
		}
		require.Equal(t, http.StatusOK, rationtest.Get(t, worker(ours), "http://api.test/").StatusCode)
		at := api.Times()
		require.Len(t, at, 4)
		for i := range 3 {
			least := time.Minute << i
			require.GreaterOrEqual(t, at[i+1]-at[i], least)
			require.LessOrEqual(t, at[i+1]-at[i], least+least/2+time.Second)
		}
		require.Equal(t, []provider.Reason{provider.ReasonSecondary, provider.ReasonSecondary, provider.ReasonSecondary}, reasons)
	})
}

// While one is held back by a secondary limit so are all who use its account.
func TestASecondaryLimitIsTheFleets(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(100)}
		p := rationtest.Preset(t, "github")
		api := rationtest.NewAPI(rationtest.Replying(1, rationtest.Reply{Status: 403, Body: githubSecondary, Header: rationtest.JSON}))
		worker := func(b *ration.Budget) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Retries: ration.RetryPolicy{Max: -1}, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		}
		require.Equal(t, 403, rationtest.Get(t, worker(ours), "http://api.test/a").StatusCode)
		require.Equal(t, 200, rationtest.Get(t, worker(rationtest.Peer(ours)), "http://api.test/b").StatusCode)
		at := api.Times()
		require.GreaterOrEqual(t, at[1], time.Minute)
		require.LessOrEqual(t, at[1], 91*time.Second)
	})
}

// Too many at once, and too much to do, say nothing of the account: the request waits,
// and others do not.
func TestWhatIsNoQuotaPausesNoAccount(t *testing.T) {
	for _, row := range []struct {
		name, provider string
		says           rationtest.Reply
		reason         provider.Reason
		again          time.Duration // when the request is retried, if the response says so
		same           bool          // others to that endpoint wait too
	}{
		{"concurrency", "stripe", rationtest.Reply{Status: 429, Body: "{}", Header: append([]string{"Stripe-Rate-Limited-Reason", "global-concurrency"}, rationtest.JSON...)}, provider.ReasonConcurrency, 0, false},
		{"concurrency that tells the wait", "stripe", rationtest.Reply{Status: 429, Body: "{}", Header: append([]string{"Stripe-Rate-Limited-Reason", "global-concurrency", "Retry-After", "30"}, rationtest.JSON...)}, provider.ReasonConcurrency, 30 * time.Second, false},
		{"concurrency that tells too long a wait", "stripe", rationtest.Reply{Status: 429, Body: "{}", Header: append([]string{"Stripe-Rate-Limited-Reason", "global-concurrency", "Retry-After", "86400"}, rationtest.JSON...)}, provider.ReasonConcurrency, time.Hour, false},
		{"overload", "anthropic", rationtest.Reply{Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Header: rationtest.JSON}, provider.ReasonOverload, 0, false},
		{"overload that tells the wait", "generic", rationtest.Reply{Status: 503, Body: "", Header: []string{"Retry-After", "30"}}, provider.ReasonOverload, 30 * time.Second, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{ration.PerHour(100)}
				p := rationtest.Preset(t, row.provider)
				p.Attach = nil
				api := rationtest.NewAPI(rationtest.Replying(1, row.says))
				client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a")),
					OnRefusal: func(resp *http.Response, _ ration.Grant) {
						f, _ := ration.FeedbackOf(resp)
						require.Equal(t, row.reason, f.Reason)
					}}}
				left := make([]time.Duration, 3)
				var callers sync.WaitGroup
				for i, path := range []string{"/v1/things", "/v1/others", "/v1/things"} {
					callers.Go(func() {
						require.Equal(t, 200, rationtest.Get(t, client, "http://api.test"+path).StatusCode)
						left[i] = time.Since(api.Begun)
					})
					synctest.Wait()
				}
				callers.Wait()
				if row.same { // one probes, and the other waits for its response
					require.Equal(t, row.again, min(left[0], left[2]))
					require.InDelta(t, row.again.Seconds(), max(left[0], left[2]).Seconds(), 1)
				} else if row.again > 0 {
					require.Equal(t, row.again, left[0])
				} else {
					require.GreaterOrEqual(t, left[0], time.Second)
					require.LessOrEqual(t, left[0], 1500*time.Millisecond)
				}
				require.Zero(t, left[1], "another endpoint waited")
				if !row.same {
					require.Zero(t, left[2])
				}
				usage, err := b.Usage(t.Context(), ration.NewToken("a"))
				require.NoError(t, err)
				require.Zero(t, usage.PausedUntil)
			})
		})
	}
}

// A later response with a shorter wait does not shorten a pause, and MaxCooldown bounds it. A
// worker that starts again keeps it.
func TestAPauseOnlyLengthensAndOutlivesItsWorker(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, first *ration.Budget) {
		first.Limits = []ration.Limit{ration.PerHour(100)}
		told := []string{"600", "30", "1200", "86400"}
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			if n <= len(told) {
				time.Sleep(time.Duration(n) * time.Second) // all have left before the first is answered
				return rationtest.Respond(req, 429, "", []string{"Retry-After", told[n-1]}), nil
			}
			return rationtest.Served.To(req), nil
		})
		worker := func(b *ration.Budget, retries int) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Retries: ration.RetryPolicy{Max: retries}, MaxCooldown: 30 * time.Minute, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		}
		ends := func() time.Duration {
			usage, err := first.Usage(t.Context(), ration.NewToken("a"))
			require.NoError(t, err)
			return usage.PausedUntil.Sub(api.Begun)
		}
		client := worker(first, -1)
		for range told {
			go rationtest.Get(t, client, "http://api.test/")
			synctest.Wait()
		}
		for _, want := range rationtest.Seconds(601, 601, 1203, 1804) {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, want, ends())
		}
		time.Sleep(10 * time.Minute)
		require.Equal(t, 200, rationtest.Get(t, worker(rationtest.Peer(first), 0), "http://api.test/").StatusCode)
		require.Equal(t, rationtest.Seconds(0, 0, 0, 0, 1804), api.Times())
	})
}

// One that a refusal of an endpoint holds back is held back after a restart too.
func TestAPauseOfAnEndpointOutlivesItsWorker(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, first *ration.Budget) {
		first.Limits = []ration.Limit{ration.PerHour(100)}
		p := rationtest.Preset(t, "tiktok")
		api := rationtest.NewAPI(rationtest.Replying(1, rationtest.Reply{Status: 429, Body: `{"error":{"code":"rate_limit_exceeded"}}`, Header: append([]string{"Retry-After", "600"}, rationtest.JSON...)}))
		worker := func(b *ration.Budget) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Retries: ration.RetryPolicy{Max: -1}, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		}
		require.Equal(t, 429, rationtest.Get(t, worker(first), "http://api.test/v2/video/list/").StatusCode)
		time.Sleep(time.Minute)
		again := worker(rationtest.Peer(first))
		rationtest.Get(t, again, "http://api.test/v2/user/info/")
		rationtest.Get(t, again, "http://api.test/v2/video/list/")
		require.Equal(t, rationtest.Seconds(0, 60, 600), api.Times())
		rationtest.RequireRemaining(t, first, ration.NewToken("a"), 97)
	})
}

// If the store does not answer, at least the request keeps the pause.
func TestARefusalIsHandledWhileTheStoreIsCut(t *testing.T) {
	for _, path := range []string{"/", "/endpoint"} {
		synctest.Test(t, func(t *testing.T) {
			b := rationtest.NewBudget(ration.PerHour(100))
			store := &rationtest.CutStore{Store: b.Store}
			store.Cut.Store(true)
			b.Store, b.Outage = store, ration.FailOpen
			p := &ration.Provider{Rules: []provider.MatchRule{{Status: []int{429}, Header: "X-Endpoint", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint}}}
			header := []string{"Retry-After", "60"}
			if path == "/endpoint" {
				header = append(header, "X-Endpoint", "1")
			}
			api := rationtest.NewAPI(rationtest.Replying(2, rationtest.Reply{Status: 429, Body: "", Header: header}))
			client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a"))}}
			require.Equal(t, 200, rationtest.Get(t, client, "http://api.test"+path).StatusCode)
			require.Equal(t, rationtest.Seconds(0, 60, 120), api.Times())
		})
	}
}

// FeedbackOf returns for each response what was read in that response.
func TestFeedbackOfReturnsWhatTheResponseSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []rationtest.Reply{
			{Status: 429, Body: "", Header: []string{"Retry-After", "60"}},
			{Status: 200, Body: "", Header: []string{"RateLimit", `"default";r=7;t=30`}},
			{Status: 200, Body: "", Header: nil},
		}
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) { return all[n-1].To(req), nil })
		var refused []string
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a")),
			OnRefusal: func(resp *http.Response, g ration.Grant) {
				f, found := ration.FeedbackOf(resp)
				require.True(t, found)
				refused = append(refused, fmt.Sprintf("%s for %v by %s", f.Reason, f.Wait.Value, f.ReasonBy))
			}}}
		f, found := ration.FeedbackOf(rationtest.Get(t, client, "http://api.test/"))
		require.True(t, found)
		require.False(t, f.Refused)
		require.EqualValues(t, 7, f.Remaining.Value)
		require.Equal(t, []string{"quota for 1m0s by Retry-After"}, refused)
		_, found = ration.FeedbackOf(rationtest.Get(t, client, "http://api.test/"))
		require.False(t, found, "it says nothing of quotas")
		_, found = ration.FeedbackOf(nil)
		require.False(t, found)
	})
}

// Refusals come with many statuses.
func TestOnRefusalIsCalledForAnyRefusal(t *testing.T) {
	for _, row := range []struct {
		provider string
		says     rationtest.Reply
		want     provider.Reason
	}{
		{"github", rationtest.Reply{Status: 403, Body: `{"message":"API rate limit exceeded for user ID 1."}`, Header: rationtest.JSON}, provider.ReasonQuota},
		{"meta", rationtest.Reply{Status: 400, Body: `{"error":{"code":17}}`, Header: rationtest.JSON}, provider.ReasonQuota},
		{"slack", rationtest.Reply{Status: 200, Body: `{"ok":false,"error":"ratelimited"}`, Header: rationtest.JSON}, provider.ReasonQuota},
		{"binance", rationtest.Reply{Status: 418, Body: `{"code":-1003}`, Header: rationtest.JSON}, provider.ReasonBan},
		{"generic", rationtest.Reply{Status: 503, Body: "", Header: []string{"Retry-After", "1"}}, provider.ReasonOverload},
		{"generic", rationtest.Reply{Status: 402, Body: "", Header: nil}, provider.ReasonBilling},
		{"generic", rationtest.Reply{Status: 500, Body: "", Header: nil}, ""},
		{"generic", rationtest.Reply{Status: 401, Body: "", Header: nil}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := rationtest.Preset(t, row.provider)
			p.Attach = nil
			var reasons []provider.Reason
			token := ration.NewToken("a")
			client := &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(rationtest.Replying(9, row.says)), Provider: p, Retries: ration.RetryPolicy{Max: -1},
				Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), token),
				OnRefusal: func(resp *http.Response, g ration.Grant) {
					require.Equal(t, token.ID(), g.Token.ID())
					f, found := ration.FeedbackOf(resp)
					require.True(t, found)
					reasons = append(reasons, f.Reason)
				}}}
			require.Equal(t, row.says.Status, rationtest.Get(t, client, "http://api.test/").StatusCode)
			if row.want == "" {
				require.Empty(t, reasons)
			} else {
				require.Equal(t, []provider.Reason{row.want}, reasons)
			}
		})
	}
}

// What this worker has kept to alone is not loosened by the store, back again, which
// knows of a shorter pause only.
func TestAPauseIsNotLoosenedWhenTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rationtest.NewBudget(ration.PerHour(100))
		store := &rationtest.CutStore{Store: b.Store}
		b.Store, b.Outage = store, ration.FailOpen
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			switch n {
			case 1:
				time.Sleep(20 * time.Second)
				return rationtest.Reply{Status: 503, Body: "", Header: []string{"Retry-After", "5"}}.To(req), nil
			case 2:
				return rationtest.Reply{Status: 503, Body: "", Header: []string{"Retry-After", "600"}}.To(req), nil
			}
			return rationtest.Served.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Retries: ration.RetryPolicy{Max: -1}, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		store.Cut.Store(true)
		go rationtest.Get(t, client, "http://api.test/")
		synctest.Wait()
		require.Equal(t, 503, rationtest.Get(t, client, "http://api.test/").StatusCode)
		time.Sleep(10 * time.Second)
		store.Cut.Store(false)
		time.Sleep(20 * time.Second)
		require.Equal(t, 200, rationtest.Get(t, client, "http://api.test/").StatusCode)
		require.Equal(t, rationtest.Seconds(0, 0, 600), api.Times())
	})
}

// Endpoints that have limits of their own under one header do not change the account's, and one whose
// limit is spent is paused alone.
func TestALimitOfAnEndpointIsNotTheAccounts(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 900, Window: 15 * time.Minute}}
		begun, limits, spent := time.Now(), map[string]int{"/feed": 900, "/dm": 15}, make(map[string]int)
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			path := req.URL.Path
			spent[path]++
			limit := limits[path]
			return rationtest.Announcing(func(int) []string {
				return []string{"RateLimit-Policy", fmt.Sprintf("%d;w=900", limit), "X-RateLimit-Limit", strconv.Itoa(limit), "X-RateLimit-Remaining", strconv.Itoa(max(0, limit-spent[path])),
					"X-RateLimit-Reset", strconv.Itoa(int((15*time.Minute - time.Since(begun)).Seconds()))}
			})(n, req)
		})
		token := ration.NewToken("a")
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, token)}}
		for range 100 {
			rationtest.Get(t, client, "http://api.test/feed")
		}
		for range 15 {
			rationtest.Get(t, client, "http://api.test/dm")
			time.Sleep(time.Second)
		}
		requireMax(t, b, token, 900)
		rationtest.Get(t, client, "http://api.test/feed")
		require.Less(t, time.Since(begun), time.Minute)
		rationtest.Get(t, client, "http://api.test/dm") // which waits for its own window
		require.GreaterOrEqual(t, time.Since(begun), 15*time.Minute-time.Second)
	})
}
