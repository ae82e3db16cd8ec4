package ration_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A token that the provider calls invalid, and whose request another token is served, is sent once
// by whichever worker of the fleet, and then by one request at a time. When it is good again it is
// used as before.
func TestAnInvalidTokenIsQuarantinedInTheFleet(t *testing.T) {
	for _, row := range []struct {
		provider string
		says     rationtest.Reply
	}{
		{"meta", rationtest.Reply{Status: 400, Body: `{"error":{"code":190,"type":"OAuthException","message":"Error validating access token"}}`, Header: rationtest.JSON}},
		{"slack", rationtest.Reply{Status: 200, Body: `{"ok":false,"error":"token_revoked"}`, Header: rationtest.JSON}},
		{"github", rationtest.Reply{Status: 401, Body: `{"message":"Bad credentials"}`, Header: rationtest.JSON}},
		{"generic", rationtest.InvalidToken},
	} {
		t.Run(row.provider, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
				ours.Limits = []ration.Limit{ration.PerHour(1000)}
				p := rationtest.Preset(t, row.provider)
				p.Attach = nil
				said := map[string]rationtest.Reply{"dead": row.says}
				api := rationtest.NewAPI(rationtest.ByToken(said))
				worker := func(b *ration.Budget) *http.Client {
					return &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(b, rationtest.Tokens("dead", "good")...)}}
				}
				us, them := worker(ours), worker(rationtest.Peer(ours))
				crawl := func(client *http.Client) {
					for range 6 {
						require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
						time.Sleep(time.Millisecond) // so that tokens take turns
					}
				}
				crawl(us)
				crawl(them)
				require.Len(t, api.TimesOf("dead"), 1)
				time.Sleep(time.Second)
				crawl(us)
				crawl(us)
				crawl(them)
				require.Len(t, api.TimesOf("dead"), 2, "one request is to try it")

				delete(said, "dead")
				time.Sleep(2 * time.Second)
				crawl(us)
				crawl(them)
				require.Len(t, api.TimesOf("dead"), 2+6, "it is in use again")
			})
		})
	}
}

// While one request tries a token, others do not wait for what comes of it. One that
// fails on the way has shown nothing, and the next may try.
func TestATokenIsTriedByOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trying func(*http.Request) (*http.Response, error)
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			if rationtest.SecretOf(req) == "dead" {
				return trying(req)
			}
			return rationtest.Served.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Retries: ration.RetryPolicy{Max: -1}, MaxCooldown: 10 * time.Minute,
			Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(1000)), rationtest.Tokens("dead", "good")...)}}
		crawl := func() {
			var callers sync.WaitGroup
			for range 20 {
				callers.Go(func() {
					if resp, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil)); err == nil {
						rationtest.Drain(t, resp)
					}
				})
			}
			callers.Wait()
		}
		trying = func(req *http.Request) (*http.Response, error) { return rationtest.InvalidToken.To(req), nil }
		for range 2 { // another token in place of a dead one is none of Retries
			require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
		}
		require.Equal(t, rationtest.Seconds(0), api.TimesOf("dead"))

		time.Sleep(time.Second)
		trying = func(*http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return nil, errors.New("the line broke")
		}
		crawl()
		require.Equal(t, rationtest.Seconds(0, 1), api.TimesOf("dead"))
		trying = func(req *http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return rationtest.Reply{Status: 500}.To(req), nil
		}
		crawl()
		require.Equal(t, rationtest.Seconds(0, 1, 31), api.TimesOf("dead"))
		trying = func(req *http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return rationtest.Served.To(req), nil
		}
		crawl()
		require.Equal(t, rationtest.Seconds(0, 1, 31, 61), api.TimesOf("dead"))
		for range 4 {
			time.Sleep(time.Second)
			rationtest.Get(t, client, "http://api.test/")
		}
		require.Len(t, api.TimesOf("dead"), 4+2, "it is in use again")
	})
}

func TestWhenNoTokenIsLeftTheErrorNamesThemAll(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100)}
		var told []ration.Event
		b.OnEvent = func(n ration.Event) { told = append(told, n) }
		all := rationtest.Tokens("a", "b", "c")
		all[1].Account = "who does not pay"
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) { return rationtest.PaymentRequired.To(req), nil })
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, all...), MaxCooldown: 2 * time.Hour}}
		for range all {
			require.Equal(t, http.StatusPaymentRequired, rationtest.Get(t, client, "http://api.test/").StatusCode)
		}
		_, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		sent := len(api.Calls())
		require.Equal(t, 3, sent)
		var want []ration.QuarantinedToken
		for _, token := range all {
			want = append(want, ration.QuarantinedToken{ID: token.ID(), Account: token.AccountID(), Reason: provider.ReasonBilling, Until: api.Begun.Add(2 * time.Hour)})
		}
		rationtest.RequireQuarantined(t, err, want...)
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
		_, err = client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		rationtest.RequireQuarantined(t, err, want...)
		require.Len(t, api.Calls(), sent, "nothing was sent")
		for i, token := range all {
			now, err := b.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.Equal(t, left[i], now, "nothing was booked")
		}
	})
}

// A token's death is not its account's: the other tokens of it go on.
func TestAQuarantinedTokenLeavesItsAccountToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := rationtest.Tokens("dead", "good")
		all[0].Account, all[1].Account = "one", "one"
		api := rationtest.NewAPI(rationtest.ByToken(map[string]rationtest.Reply{"dead": rationtest.InvalidToken}))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), all...)}}
		for range 6 {
			require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
		}
		require.Len(t, api.TimesOf("dead"), 1)
		require.Zero(t, time.Since(api.Begun))
	})
}

// Those who are asleep until a slot of a dead token are not left to sleep.
func TestCallersWhoWaitForAQuarantinedTokenAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Second)
			return rationtest.PaymentRequired.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api,
			Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(1)), rationtest.Tokens("dead")...)}}
		var callers sync.WaitGroup
		var woken atomic.Int32
		for range 5 {
			callers.Go(func() {
				resp, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
				require.Equal(t, 10*time.Second, time.Since(api.Begun))
				if err == nil {
					rationtest.Drain(t, resp)
					return
				}
				require.ErrorIs(t, err, ration.ErrNoToken)
				woken.Add(1)
			})
		}
		callers.Wait()
		require.Len(t, api.Calls(), 1)
		require.EqualValues(t, 4, woken.Load())
	})
}

// If the store does not answer, only this worker keeps the quarantine.
func TestAnInvalidTokenIsQuarantinedLocallyWhileTheStoreIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rationtest.NewBudget(ration.PerHour(1000))
		store := &rationtest.CutStore{Store: b.Store}
		store.Cut.Store(true)
		b.Store, b.Outage = store, ration.FailOpen
		api := rationtest.NewAPI(rationtest.ByToken(map[string]rationtest.Reply{"dead": rationtest.InvalidToken}))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens("dead", "good")...)}}
		for range 6 {
			require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
		}
		require.Len(t, api.TimesOf("dead"), 1)
	})
}

// A request that was to try a token, and finds on its way that it must wait itself, does
// not keep the token from others.
func TestATokenIsNotTriedByOneThatWaits(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(100)}
		says := rationtest.Served
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) { return says.To(req), nil })
		worker := func(b *ration.Budget) *http.Client {
			return &http.Client{Transport: &ration.Transport{Base: api, Retries: ration.RetryPolicy{Max: -1}, Pool: ration.NewPool(b, rationtest.Tokens("a")...)}}
		}
		us, them := worker(ours), worker(rationtest.Peer(ours))
		_, err := ours.Store.Quarantine(t.Context(), store.QuarantineRequest{Budget: ours.Name, Token: ration.NewToken("a").ID(),
			Reason: string(provider.ReasonUnauthorized), For: 10 * time.Minute})
		require.NoError(t, err)
		for _, client := range []*http.Client{us, them} { // both get to know
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			_, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/a", nil).WithContext(ctx))
			require.ErrorIs(t, err, ration.ErrNoToken, "the probe comes too late")
			stop()
		}
		require.Empty(t, api.Calls())
		time.Sleep(10 * time.Minute)
		says = rationtest.Reply{Status: 503, Body: "", Header: []string{"Retry-After", "60"}}
		require.Equal(t, 503, rationtest.Get(t, us, "http://api.test/a").StatusCode)
		says = rationtest.Served
		var callers sync.WaitGroup
		callers.Go(func() { rationtest.Get(t, them, "http://api.test/a") })
		synctest.Wait()
		time.Sleep(time.Second)
		rationtest.Get(t, them, "http://api.test/b")
		callers.Wait()
		require.Equal(t, rationtest.Seconds(600, 601, 660), api.Times())
		rationtest.RequireRemaining(t, ours, ration.NewToken("a"), 100-3)
	})
}

// While the store is told that a token is quarantined no other request of the process tries it.
func TestATokenIsNotTriedWhileItIsBeingQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(rationtest.ByToken(map[string]rationtest.Reply{"dead": rationtest.InvalidToken}))
		b := rationtest.NewBudget(ration.PerHour(1000))
		b.Store = slowQuarantine{b.Store}
		var quarantined atomic.Int32
		b.OnEvent = func(e ration.Event) {
			if e.Kind == ration.TokenQuarantined {
				quarantined.Add(1)
			}
		}
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens("dead", "good")...)}}
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
			})
			time.Sleep(20 * time.Millisecond)
		}
		callers.Wait()
		require.Len(t, api.TimesOf("dead"), 1)
		require.EqualValues(t, 1, quarantined.Load())
		time.Sleep(2 * time.Second)
		for range 4 {
			require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode)
		}
		require.Len(t, api.TimesOf("dead"), 2, "it is tried when the quarantine has ended")
	})
}

// A slowQuarantine takes its time to quarantine a token.
type slowQuarantine struct{ store.Store }

func (s slowQuarantine) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	time.Sleep(100 * time.Millisecond)
	return s.Store.Quarantine(ctx, r)
}
