package ration_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/rationtest"
	"github.com/ration-go/ration/provider"
)

const githubSecondary = `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`

// GitHub asks for a minute at least, and for more each time, of the fleet.
func TestASecondaryLimitPausesForAMinuteAndThenLonger(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(100)}
		p := preset(t, "github")
		api := newProvider(replying(3, reply{403, githubSecondary, isJSON}))
		var reasons []ration.Reason
		worker := func(b *ration.Budget) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a")),
				OnRefusal: func(resp *http.Response, _ ration.Grant) {
					require.Equal(t, 403, resp.StatusCode)
					f, found := ration.FeedbackOf(resp)
					require.True(t, found)
					reasons = append(reasons, f.Reason)
				}}}
		}
		require.Equal(t, http.StatusOK, get(t, worker(ours), "http://api.test/").StatusCode)
		at := api.times()
		require.Len(t, at, 4)
		for i := range 3 {
			least := time.Minute << i
			require.GreaterOrEqual(t, at[i+1]-at[i], least)
			require.LessOrEqual(t, at[i+1]-at[i], least+least/2+time.Second)
		}
		require.Equal(t, []ration.Reason{provider.ReasonSecondary, provider.ReasonSecondary, provider.ReasonSecondary}, reasons)
	})
}

// While one is held back by a secondary limit so are all who use its account.
func TestASecondaryLimitIsTheFleets(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(100)}
		p := preset(t, "github")
		api := newProvider(replying(1, reply{403, githubSecondary, isJSON}))
		worker := func(b *ration.Budget) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Retries: -1, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		}
		require.Equal(t, 403, get(t, worker(ours), "http://api.test/a").StatusCode)
		require.Equal(t, 200, get(t, worker(rationtest.Peer(ours)), "http://api.test/b").StatusCode)
		at := api.times()
		require.GreaterOrEqual(t, at[1], time.Minute)
		require.LessOrEqual(t, at[1], 91*time.Second)
	})
}

// Too many at once, and too much to do, say nothing of the account: the request waits,
// and others do not.
func TestWhatIsNoQuotaPausesNoAccount(t *testing.T) {
	for _, row := range []struct {
		name, provider string
		says           reply
		reason         ration.Reason
		again          time.Duration // when the request goes again, if that was told
		same           bool          // others to that endpoint wait too
	}{
		{"concurrency", "stripe", reply{429, "{}", append([]string{"Stripe-Rate-Limited-Reason", "global-concurrency"}, isJSON...)}, provider.ReasonConcurrency, 0, false},
		{"concurrency that tells the wait", "stripe", reply{429, "{}", append([]string{"Stripe-Rate-Limited-Reason", "global-concurrency", "Retry-After", "30"}, isJSON...)}, provider.ReasonConcurrency, 30 * time.Second, false},
		{"concurrency that tells too long a wait", "stripe", reply{429, "{}", append([]string{"Stripe-Rate-Limited-Reason", "global-concurrency", "Retry-After", "86400"}, isJSON...)}, provider.ReasonConcurrency, time.Hour, false},
		{"overload", "anthropic", reply{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, isJSON}, provider.ReasonOverload, 0, false},
		{"overload that tells the wait", "generic", reply{503, "", []string{"Retry-After", "30"}}, provider.ReasonOverload, 30 * time.Second, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{ration.PerHour(100)}
				p := preset(t, row.provider)
				p.Attach = nil
				api := newProvider(replying(1, row.says))
				client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a")),
					OnRefusal: func(resp *http.Response, _ ration.Grant) {
						f, _ := ration.FeedbackOf(resp)
						require.Equal(t, row.reason, f.Reason)
					}}}
				left := make([]time.Duration, 3)
				var callers sync.WaitGroup
				for i, path := range []string{"/v1/things", "/v1/others", "/v1/things"} {
					callers.Go(func() {
						require.Equal(t, 200, get(t, client, "http://api.test"+path).StatusCode)
						left[i] = time.Since(api.begun)
					})
					synctest.Wait()
				}
				callers.Wait()
				if row.again > 0 {
					require.Equal(t, row.again, left[0])
				} else {
					require.GreaterOrEqual(t, left[0], time.Second)
					require.LessOrEqual(t, left[0], 1500*time.Millisecond)
				}
				require.Zero(t, left[1], "another endpoint waited")
				if row.same {
					require.Equal(t, row.again, left[2])
				} else {
					require.Zero(t, left[2])
				}
				usage, err := b.Usage(t.Context(), ration.NewToken("a"))
				require.NoError(t, err)
				require.Zero(t, usage.PausedUntil)
			})
		})
	}
}

// What is told later of a shorter wait does not loosen a pause, nor does MaxPause let one
// be longer; and a worker that starts anew keeps it.
func TestAPauseOnlyLengthensAndOutlivesItsWorker(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, first *ration.Budget) {
		first.Limits = []ration.Limit{ration.PerHour(100)}
		told := []string{"600", "30", "1200", "86400"}
		api := newProvider(func(n int, req *http.Request) (*http.Response, error) {
			if n <= len(told) {
				time.Sleep(time.Duration(n) * time.Second) // all have left before the first is answered
				return respond(req, 429, "", []string{"Retry-After", told[n-1]}), nil
			}
			return served.to(req), nil
		})
		worker := func(b *ration.Budget, retries int) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Retries: retries, MaxPause: 30 * time.Minute, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		}
		ends := func() time.Duration {
			usage, err := first.Usage(t.Context(), ration.NewToken("a"))
			require.NoError(t, err)
			return usage.PausedUntil.Sub(api.begun)
		}
		client := worker(first, -1)
		for range told {
			go get(t, client, "http://api.test/")
			synctest.Wait()
		}
		for _, want := range seconds(601, 601, 1203, 1804) {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, want, ends())
		}
		time.Sleep(10 * time.Minute)
		require.Equal(t, 200, get(t, worker(rationtest.Peer(first), 0), "http://api.test/").StatusCode)
		require.Equal(t, seconds(0, 0, 0, 0, 1804), api.times())
	})
}

// One that a refusal of an endpoint holds back is held back after a restart too.
func TestAPauseOfAnEndpointOutlivesItsWorker(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, first *ration.Budget) {
		first.Limits = []ration.Limit{ration.PerHour(100)}
		p := preset(t, "tiktok")
		api := newProvider(replying(1, reply{429, `{"error":{"code":"rate_limit_exceeded"}}`, append([]string{"Retry-After", "600"}, isJSON...)}))
		worker := func(b *ration.Budget) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Retries: -1, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		}
		require.Equal(t, 429, get(t, worker(first), "http://api.test/v2/video/list/").StatusCode)
		time.Sleep(time.Minute)
		again := worker(rationtest.Peer(first))
		get(t, again, "http://api.test/v2/user/info/")
		get(t, again, "http://api.test/v2/video/list/")
		require.Equal(t, seconds(0, 60, 600), api.times())
		remaining(t, first, ration.NewToken("a"), 97)
	})
}

// Where the store cannot be told the request at least keeps the pause.
func TestARefusalIsHeededWhileTheStoreIsCut(t *testing.T) {
	for _, path := range []string{"/", "/endpoint"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(ration.PerHour(100))
			store := &cutStore{Store: b.Store}
			store.cut.Store(true)
			b.Store, b.Outage = store, ration.FailOpen
			p := &ration.Provider{Rules: []provider.MatchRule{{Status: []int{429}, Header: "X-Endpoint", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint}}}
			header := []string{"Retry-After", "60"}
			if path == "/endpoint" {
				header = append(header, "X-Endpoint", "1")
			}
			api := newProvider(replying(2, reply{429, "", header}))
			client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, ration.NewToken("a"))}}
			require.Equal(t, 200, get(t, client, "http://api.test"+path).StatusCode)
			require.Equal(t, seconds(0, 60, 120), api.times())
		})
	}
}

// FeedbackOf tells of each answer what was read in that answer.
func TestFeedbackOfTellsWhatWasReadInTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []reply{
			{429, "", []string{"Retry-After", "60"}},
			{200, "", []string{"RateLimit", `"default";r=7;t=30`}},
			{200, "", nil},
		}
		api := newProvider(func(n int, req *http.Request) (*http.Response, error) { return all[n-1].to(req), nil })
		var refused []string
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(newBudget(ration.PerHour(100)), ration.NewToken("a")),
			OnRefusal: func(resp *http.Response, g ration.Grant) {
				f, found := ration.FeedbackOf(resp)
				require.True(t, found)
				refused = append(refused, fmt.Sprintf("%s for %v by %s", f.Reason, f.Wait.Value, f.ReasonBy))
			}}}
		f, found := ration.FeedbackOf(get(t, client, "http://api.test/"))
		require.True(t, found)
		require.False(t, f.Refused)
		require.EqualValues(t, 7, f.Remaining.Value)
		require.Equal(t, []string{"quota for 1m0s by status 429"}, refused)
		_, found = ration.FeedbackOf(get(t, client, "http://api.test/"))
		require.False(t, found, "it says nothing of quotas")
		_, found = ration.FeedbackOf(nil)
		require.False(t, found)
	})
}

// Refusals come with many statuses.
func TestRefusedIsCalledForAnyRefusal(t *testing.T) {
	for _, row := range []struct {
		provider string
		says     reply
		want     ration.Reason
	}{
		{"github", reply{403, `{"message":"API rate limit exceeded for user ID 1."}`, isJSON}, provider.ReasonQuota},
		{"meta", reply{400, `{"error":{"code":17}}`, isJSON}, provider.ReasonQuota},
		{"slack", reply{200, `{"ok":false,"error":"ratelimited"}`, isJSON}, provider.ReasonQuota},
		{"binance", reply{418, `{"code":-1003}`, isJSON}, provider.ReasonBan},
		{"generic", reply{503, "", []string{"Retry-After", "1"}}, provider.ReasonOverload},
		{"generic", reply{402, "", nil}, provider.ReasonBilling},
		{"generic", reply{500, "", nil}, ""},
		{"generic", reply{401, "", nil}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := preset(t, row.provider)
			p.Attach = nil
			var reasons []ration.Reason
			token := ration.NewToken("a")
			client := &http.Client{Transport: &ration.Transport{Base: newProvider(replying(9, row.says)), Provider: p, Retries: -1,
				Pool: ration.NewPool(newBudget(ration.PerHour(100)), token),
				OnRefusal: func(resp *http.Response, g ration.Grant) {
					require.Equal(t, token.ID(), g.Token.ID())
					f, found := ration.FeedbackOf(resp)
					require.True(t, found)
					reasons = append(reasons, f.Reason)
				}}}
			require.Equal(t, row.says.status, get(t, client, "http://api.test/").StatusCode)
			if row.want == "" {
				require.Empty(t, reasons)
			} else {
				require.Equal(t, []ration.Reason{row.want}, reasons)
			}
		})
	}
}

// What this worker has kept to alone is not loosened by the store, back again, which
// knows of a shorter pause only.
func TestAPauseIsNotLoosenedWhenTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(ration.PerHour(100))
		store := &cutStore{Store: b.Store}
		b.Store, b.Outage = store, ration.FailOpen
		api := newProvider(func(n int, req *http.Request) (*http.Response, error) {
			switch n {
			case 1:
				time.Sleep(20 * time.Second)
				return reply{503, "", []string{"Retry-After", "5"}}.to(req), nil
			case 2:
				return reply{503, "", []string{"Retry-After", "600"}}.to(req), nil
			}
			return served.to(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Retries: -1, Pool: ration.NewPool(b, ration.NewToken("a"))}}
		store.cut.Store(true)
		go get(t, client, "http://api.test/")
		synctest.Wait()
		require.Equal(t, 503, get(t, client, "http://api.test/").StatusCode)
		time.Sleep(10 * time.Second)
		store.cut.Store(false)
		time.Sleep(20 * time.Second)
		require.Equal(t, 200, get(t, client, "http://api.test/").StatusCode)
		require.Equal(t, seconds(0, 0, 600), api.times())
	})
}
