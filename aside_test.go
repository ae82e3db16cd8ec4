package ration_test

import (
	"errors"
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

// A reply is an answer without the request that it is to.
type reply struct {
	status int
	body   string
	header []string
}

var (
	served       = reply{status: 200, body: "{}", header: isJSON}
	isJSON       = []string{"Content-Type", "application/json"}
	deadByCode   = reply{401, `{"error":"invalid_token"}`, isJSON}
	unpaid       = reply{402, `{"error":"no credit"}`, isJSON}
	unauthorized = reply{status: 401}
)

func (r reply) to(req *http.Request) *http.Response { return respond(req, r.status, r.body, r.header) }

// byToken answers what is said of the request's token, and serves all others.
func byToken(said map[string]reply) func(int, *http.Request) (*http.Response, error) {
	return func(_ int, req *http.Request) (*http.Response, error) {
		if r, found := said[secretOf(req)]; found {
			return r.to(req), nil
		}
		return served.to(req), nil
	}
}

func secretOf(req *http.Request) string { return req.Header.Get("Authorization")[len("Bearer "):] }

// timesOf returns when requests came with a token.
func (p *api) timesOf(secret string) []time.Duration {
	var at []time.Duration
	for _, c := range p.all() {
		if c.token == secret {
			at = append(at, c.at)
		}
	}
	return at
}

// requireAside fails unless the error says of each token of the pool, in its order, why
// it is set aside and for how long.
func requireAside(t *testing.T, err error, want ...ration.QuarantinedToken) {
	t.Helper()
	require.ErrorIs(t, err, ration.ErrNoToken)
	none, is := errors.AsType[*ration.NoTokenError](err)
	require.True(t, is)
	require.Len(t, none.Tokens, len(want))
	for i, got := range none.Tokens {
		require.WithinDuration(t, want[i].Until, got.Until, time.Microsecond)
		require.ErrorContains(t, err, fmt.Sprintf("%s (%s, tried again at %s)", got.ID, got.Reason, got.Until.UTC().Format(time.RFC3339)))
		got.Until = want[i].Until
		require.Equal(t, want[i], got)
	}
}

// A token that the provider calls dead is sent once, by whichever worker of the fleet,
// and then once an hour; when it is good again it is used as before.
func TestADeadTokenIsSetAsideInTheFleet(t *testing.T) {
	for _, row := range []struct {
		provider string
		says     reply
	}{
		{"meta", reply{400, `{"error":{"code":190,"type":"OAuthException","message":"Error validating access token"}}`, isJSON}},
		{"slack", reply{200, `{"ok":false,"error":"token_revoked"}`, isJSON}},
		{"github", reply{401, `{"message":"Bad credentials"}`, isJSON}},
		{"generic", deadByCode},
	} {
		t.Run(row.provider, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
				ours.Limits = []ration.Limit{ration.PerHour(1000)}
				p := preset(t, row.provider)
				p.Attach = nil
				said := map[string]reply{"dead": row.says}
				api := newProvider(byToken(said))
				worker := func(b *ration.Budget) *http.Client {
					return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, tokens("dead", "good")...)}}
				}
				us, them := worker(ours), worker(rationtest.Peer(ours))
				crawl := func(client *http.Client) {
					for range 6 {
						require.Equal(t, http.StatusOK, get(t, client, "http://api.test/").StatusCode)
						time.Sleep(time.Millisecond) // so that tokens take turns
					}
				}
				crawl(us)
				crawl(them)
				require.Len(t, api.timesOf("dead"), 1)
				time.Sleep(time.Hour - time.Second)
				crawl(worker(rationtest.Peer(ours)))
				crawl(us)
				require.Len(t, api.timesOf("dead"), 1)

				time.Sleep(time.Second)
				crawl(us)
				crawl(us)
				crawl(them)
				require.Len(t, api.timesOf("dead"), 2, "one request is to try it")

				delete(said, "dead")
				time.Sleep(time.Hour)
				crawl(us)
				crawl(them)
				require.Len(t, api.timesOf("dead"), 2+6, "it is in use again")
			})
		})
	}
}

// While one request tries a token, others do not wait for what comes of it. One that
// fails on the way has shown nothing, and the next may try.
func TestATokenIsTriedByOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trying func(*http.Request) (*http.Response, error)
		api := newProvider(func(_ int, req *http.Request) (*http.Response, error) {
			if secretOf(req) == "dead" {
				return trying(req)
			}
			return served.to(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Retries: -1, ProbeEvery: 10 * time.Minute,
			Pool: ration.NewPool(newBudget(ration.PerHour(1000)), tokens("dead", "good")...)}}
		crawl := func() {
			var callers sync.WaitGroup
			for range 20 {
				callers.Go(func() {
					if resp, err := client.Do(newRequest(t, http.MethodGet, "http://api.test/", nil)); err == nil {
						drain(t, resp)
					}
				})
			}
			callers.Wait()
		}
		trying = func(req *http.Request) (*http.Response, error) { return deadByCode.to(req), nil }
		for range 2 { // another token in place of a dead one is none of Retries
			require.Equal(t, http.StatusOK, get(t, client, "http://api.test/").StatusCode)
		}
		require.Equal(t, seconds(0), api.timesOf("dead"))

		time.Sleep(10 * time.Minute)
		trying = func(*http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return nil, errors.New("the line broke")
		}
		crawl()
		require.Equal(t, seconds(0, 600), api.timesOf("dead"))
		trying = func(req *http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return reply{status: 500}.to(req), nil
		}
		crawl()
		require.Equal(t, seconds(0, 600, 630), api.timesOf("dead"))
		trying = func(req *http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return served.to(req), nil
		}
		crawl()
		require.Equal(t, seconds(0, 600, 630, 660), api.timesOf("dead"))
		for range 4 {
			time.Sleep(time.Second)
			get(t, client, "http://api.test/")
		}
		require.Len(t, api.timesOf("dead"), 4+2, "it is in use again")
	})
}

func TestWhenNoTokenIsLeftTheErrorNamesThemAll(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100)}
		var told []ration.Event
		b.OnEvent = func(n ration.Event) { told = append(told, n) }
		all := tokens("dead", "unpaid", "unclear")
		all[1].Account = "who does not pay"
		api := newProvider(byToken(map[string]reply{"dead": deadByCode, "unpaid": unpaid, "unclear": unauthorized}))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, all...), ProbeEvery: 2 * time.Hour}}
		var err error
		for range 6 {
			var resp *http.Response
			if resp, err = client.Do(newRequest(t, http.MethodGet, "http://api.test/", nil)); err != nil {
				break
			}
			require.Contains(t, []int{401, 402}, resp.StatusCode)
			drain(t, resp)
		}
		sent := len(api.all())
		require.Len(t, api.timesOf("dead"), 1)
		require.Len(t, api.timesOf("unpaid"), 1)
		require.Len(t, api.timesOf("unclear"), 2)
		want := []ration.QuarantinedToken{
			{ID: all[0].ID(), Account: all[0].AccountID(), Reason: provider.ReasonDeadToken, Until: api.begun.Add(2 * time.Hour)},
			{ID: all[1].ID(), Account: all[1].AccountID(), Reason: provider.ReasonBilling, Until: api.begun.Add(2 * time.Hour)},
			{ID: all[2].ID(), Account: all[2].AccountID(), Reason: provider.ReasonUnauthorized, Until: api.begun.Add(time.Minute)},
		}
		requireAside(t, err, want...)
		require.Len(t, told, 3)
		for _, n := range told {
			require.Equal(t, ration.TokenQuarantined, n.Kind)
			require.Contains(t, []string{all[0].ID(), all[1].ID(), all[2].ID()}, n.Token)
		}

		left := make([]int, 3)
		for i, token := range all {
			left[i], err = b.Remaining(t.Context(), token)
			require.NoError(t, err)
		}
		_, err = client.Do(newRequest(t, http.MethodGet, "http://api.test/", nil))
		requireAside(t, err, want...)
		require.Len(t, api.all(), sent, "nothing was sent")
		for i, token := range all {
			now, err := b.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.Equal(t, left[i], now, "nothing was booked")
		}
	})
}

// A token's death is not its account's: the other tokens of it go on.
func TestADeadTokenLeavesItsAccountToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := tokens("dead", "good")
		all[0].Account, all[1].Account = "one", "one"
		api := newProvider(byToken(map[string]reply{"dead": deadByCode}))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(newBudget(ration.PerHour(100)), all...)}}
		for range 6 {
			require.Equal(t, http.StatusOK, get(t, client, "http://api.test/").StatusCode)
		}
		require.Len(t, api.timesOf("dead"), 1)
		require.Zero(t, time.Since(api.begun))
	})
}

// Those who are asleep until a slot of a dead token are not left to sleep.
func TestThoseWhoWaitForADeadTokenAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newProvider(func(_ int, req *http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Second)
			return deadByCode.to(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api,
			Pool: ration.NewPool(newBudget(ration.PerHour(1)), tokens("dead")...)}}
		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() {
				_, err := client.Do(newRequest(t, http.MethodGet, "http://api.test/", nil))
				require.ErrorIs(t, err, ration.ErrNoToken)
				require.Equal(t, 10*time.Second, time.Since(api.begun))
			})
		}
		callers.Wait()
		require.Len(t, api.all(), 1)
	})
}

// A worker that cannot tell the store keeps to it alone.
func TestADeadTokenIsSetAsideHereWhileTheStoreIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(ration.PerHour(1000))
		store := &cutStore{Store: b.Store}
		store.cut.Store(true)
		b.Store, b.Outage = store, ration.FailOpen
		api := newProvider(byToken(map[string]reply{"dead": deadByCode}))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, tokens("dead", "good")...)}}
		for range 6 {
			require.Equal(t, http.StatusOK, get(t, client, "http://api.test/").StatusCode)
		}
		require.Len(t, api.timesOf("dead"), 1)
		alone := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, tokens("dead")...)}}
		_, err := alone.Do(newRequest(t, http.MethodGet, "http://api.test/", nil))
		require.ErrorIs(t, err, ration.ErrNoToken)
		require.Len(t, api.timesOf("dead"), 1)
	})
}

// A request that was to try a token, and finds on its way that it must wait itself, does
// not keep the token from others.
func TestATokenIsNotTriedByOneThatWaits(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(100)}
		says := deadByCode
		api := newProvider(func(_ int, req *http.Request) (*http.Response, error) { return says.to(req), nil })
		worker := func(b *ration.Budget) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Retries: -1, ProbeEvery: 10 * time.Minute, Pool: ration.NewPool(b, tokens("a")...)}}
		}
		us, them := worker(ours), worker(rationtest.Peer(ours))
		for _, client := range []*http.Client{us, them} { // both get to know
			_, err := client.Do(newRequest(t, http.MethodGet, "http://api.test/a", nil))
			require.ErrorIs(t, err, ration.ErrNoToken)
		}
		require.Len(t, api.all(), 1)
		time.Sleep(10 * time.Minute)
		says = reply{503, "", []string{"Retry-After", "60"}}
		require.Equal(t, 503, get(t, us, "http://api.test/a").StatusCode)
		says = served
		var callers sync.WaitGroup
		callers.Go(func() { get(t, them, "http://api.test/a") })
		synctest.Wait()
		time.Sleep(time.Second)
		get(t, them, "http://api.test/b")
		callers.Wait()
		require.Equal(t, seconds(0, 600, 601, 660), api.times())
		remaining(t, ours, ration.NewToken("a"), 100-4)
	})
}
