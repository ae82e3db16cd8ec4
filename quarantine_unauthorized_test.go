package ration_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/rationtest"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A 401 that does not say what is wrong may be about the token, or about what was asked
// for.

// inTurn answers a token's requests in turn, and all behind them as the last; it serves
// those of other tokens.
func inTurn(said map[string][]rationtest.Reply) func(int, *http.Request) (*http.Response, error) {
	var mu sync.Mutex
	return func(_ int, req *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		secret := rationtest.SecretOf(req)
		replies := said[secret]
		if len(replies) == 0 {
			return rationtest.Served.To(req), nil
		}
		if len(replies) > 1 {
			said[secret] = replies[1:]
		}
		return replies[0].To(req), nil
	}
}

// Where another token may do what the first may not it is the first, in the whole fleet:
// it is tried again after a minute, and then less and less often.
func TestATokenIsQuarantinedIfAnotherSucceeds(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(1000)}
		api := rationtest.NewAPI(rationtest.ByToken(map[string]rationtest.Reply{"bad": rationtest.Unauthorized}))
		var clients []*http.Client
		for _, b := range []*ration.Budget{ours, rationtest.Peer(ours)} {
			clients = append(clients, &http.Client{Transport: &ration.Transport{Base: api, ProbeEvery: 3 * time.Minute,
				Pool: ration.NewPool(b, rationtest.Tokens("bad", "good")...)}})
		}
		ask := func(i int) {
			for range 2 { // so that either token has its turn
				require.Equal(t, http.StatusOK, rationtest.Get(t, clients[i], "http://api.test/").StatusCode)
			}
			time.Sleep(5 * time.Second)
		}
		for len(api.TimesOf("bad")) == 0 {
			ask(0)
		}
		ask(1) // learns of it
		first := api.TimesOf("bad")[0]
		for time.Since(api.Begun) < 15*time.Minute {
			ask(0)
		}
		var after []time.Duration
		for _, at := range api.TimesOf("bad") {
			after = append(after, at-first)
		}
		require.Equal(t, rationtest.Seconds(0, 60, 120, 240, 420, 600, 780), after)
		require.NotContains(t, api.Tokens()[len(api.Calls())-10:], "bad")
		for range 10 {
			ask(1)
		}
		require.Len(t, api.TimesOf("bad"), 7, "the others keep to it")
	})
}

// The caller gets the provider's answer, since there is none that says more.
func TestThe401OfTheOnlyTokenIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		only := ration.NewToken("only")
		api := rationtest.NewAPI(inTurn(map[string][]rationtest.Reply{"only": {{Status: 401, Body: "not you", Header: nil}}}))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), only)}}
		for range 2 {
			resp, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
			require.NoError(t, err)
			require.Equal(t, 401, resp.StatusCode)
			require.Equal(t, "not you", rationtest.Drain(t, resp))
		}
		// The second in a row was believed to be about the token.
		aside := ration.QuarantinedToken{ID: only.ID(), Account: only.ID(), Reason: provider.ReasonUnauthorized, Until: api.Begun.Add(time.Minute)}
		_, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		rationtest.RequireQuarantined(t, err, aside)
		time.Sleep(time.Minute)
		require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/").StatusCode)
		require.Equal(t, rationtest.Seconds(0, 0, 60), api.Times())
	})
}

func TestAnAnswerInBetweenClearsA401(t *testing.T) {
	for _, row := range []struct {
		between rationtest.Reply
		clears  bool
	}{
		{rationtest.Served, true},
		{rationtest.Reply{Status: 404}, true},
		{rationtest.Reply{Status: 500}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := rationtest.NewAPI(inTurn(map[string][]rationtest.Reply{"only": {rationtest.Unauthorized, row.between, rationtest.Unauthorized, row.between, rationtest.Unauthorized}}))
			client := &http.Client{Transport: &ration.Transport{Base: api, Retries: -1,
				Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("only"))}}
			for range 3 {
				rationtest.Get(t, client, "http://api.test/")
			}
			resp, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
			if !row.clears {
				require.ErrorIs(t, err, ration.ErrNoToken)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.between.Status, resp.StatusCode)
			rationtest.Drain(t, resp)
		})
	}
}

// What none of the tokens may do is refused to the caller, and no token blamed.
func TestA401OfEveryTokenQuarantinesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rationtest.NewBudget(ration.PerHour(100))
		b.OnEvent = func(n ration.Event) { t.Errorf("noticed: %v", n) }
		all := rationtest.Tokens("a", "b", "c", "d")
		all[2].Account, all[3].Account = "one", "one"
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/private" {
				return rationtest.Unauthorized.To(req), nil
			}
			return rationtest.Served.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, all...)}}
		require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/private").StatusCode)
		require.Contains(t, api.Tokens(), "a")
		require.Contains(t, api.Tokens(), "b")
		for range 20 {
			time.Sleep(time.Second)
			require.Equal(t, 200, rationtest.Get(t, client, "http://api.test/").StatusCode)
		}
		require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/private").StatusCode)
	})
}

// What came of the other token must be a success: that it was refused, or that the
// server failed, says nothing of the first.
func TestOnlyASuccessOfAnotherTokenQuarantinesTheFirst(t *testing.T) {
	for _, other := range []rationtest.Reply{{Status: 500}, {Status: 404}, {Status: 429}, {Status: 401, Body: "", Header: nil}} {
		synctest.Test(t, func(t *testing.T) {
			b := rationtest.NewBudget(ration.PerHour(100))
			b.OnEvent = func(n ration.Event) { t.Errorf("after a %d: %v", other.Status, n) }
			api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
				if n == 1 {
					return rationtest.Unauthorized.To(req), nil
				}
				return other.To(req), nil
			})
			client := &http.Client{Transport: &ration.Transport{Base: api, Retries: -1, Pool: ration.NewPool(b, rationtest.Tokens("a", "b")...)}}
			require.Equal(t, other.Status, rationtest.Get(t, client, "http://api.test/").StatusCode)
			require.ElementsMatch(t, []string{"a", "b"}, api.Tokens())
		})
	}
}

// A token that was served after all is not blamed by its own success.
func TestATokensOwnSuccessDoesNotQuarantineIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rationtest.NewBudget(ration.PerHour(100))
		b.OnEvent = func(n ration.Event) { require.Equal(t, provider.ReasonDeadToken, n.Reason) }
		all := rationtest.Tokens("a", "b")
		all[0].Account, all[1].Account = "one", "one"
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			return []rationtest.Reply{rationtest.Unauthorized, rationtest.InvalidToken, rationtest.Served}[n-1].To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, all...)}}
		require.Equal(t, 200, rationtest.Get(t, client, "http://api.test/").StatusCode)
		require.Equal(t, []string{"a", "b", "a"}, api.Tokens())
	})
}

// Many answers to requests that were under way together are no worse than two.
func TestMany401sAtOnceQuarantineForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		only := ration.NewToken("only")
		b := rationtest.NewBudget(ration.PerHour(1000))
		told := 0
		b.OnEvent = func(ration.Event) { told++ }
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return rationtest.Unauthorized.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, only)}}
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() { require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/").StatusCode) })
		}
		callers.Wait()
		require.Equal(t, 1, told)
		_, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		rationtest.RequireQuarantined(t, err, ration.QuarantinedToken{ID: only.ID(), Account: only.ID(), Reason: provider.ReasonUnauthorized, Until: api.Begun.Add(61 * time.Second)})
		time.Sleep(time.Minute)
		rationtest.Get(t, client, "http://api.test/")
		_, err = client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		rationtest.RequireQuarantined(t, err, ration.QuarantinedToken{ID: only.ID(), Account: only.ID(), Reason: provider.ReasonUnauthorized, Until: api.Begun.Add(182 * time.Second)})
	})
}

// A slowStore takes a while to quarantine a token.
type slowStore struct {
	ration.MemoryStore
	takes time.Duration
	done  atomic.Int32
}

func (s *slowStore) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	select {
	case <-time.After(s.takes):
		s.done.Add(1)
		return s.MemoryStore.Quarantine(ctx, r)
	case <-ctx.Done():
		return store.PauseReply{}, ctx.Err()
	}
}

// If several tokens become invalid at once, the fleet quarantines each of them once, also if
// the store answers only just in time.
func TestTokensThatBecomeInvalidAtOnceWaitForNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rationtest.NewBudget(ration.PerHour(1000))
		kept := &slowStore{takes: 200 * time.Millisecond}
		b.Store = kept
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return rationtest.InvalidToken.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens("a", "b", "c", "d")...)}}
		began := time.Now()
		var callers sync.WaitGroup
		for range 32 {
			callers.Go(func() {
				_, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
				require.ErrorIs(t, err, ration.ErrNoToken)
			})
		}
		callers.Wait()
		require.EqualValues(t, 4, kept.done.Load(), "each of the four once")
		require.Less(t, time.Since(began), 2500*time.Millisecond, "two answers, and no four pauses in a row")
	})
}

// A 401 that no other token can better is given at once, though others are held back
// from where it came.
func TestThe401OfTheOnlyTokenWaitsForNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			if n == 1 {
				time.Sleep(5 * time.Second)
				return rationtest.Unauthorized.To(req), nil
			}
			return rationtest.Reply{Status: 503, Body: "", Header: []string{"Retry-After", "600"}}.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("only"))}}
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() {
			defer stop()
			require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/").StatusCode)
			require.Equal(t, 5*time.Second, time.Since(api.Begun))
		})
		synctest.Wait()
		_, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		callers.Wait()
	})
}

// A token that is removed from the pool and added again is no longer a suspect.
func TestATokenThatIsAddedAgainIsTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		only := ration.NewToken("only")
		pool := ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), only)
		client := &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(rationtest.ByToken(map[string]rationtest.Reply{"only": rationtest.Unauthorized})), Pool: pool}}
		for range 5 {
			require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/").StatusCode)
			pool.Remove(only)
			pool.Add(only)
		}
	})
}

// If one request fails twice with a token, the failure counts once: the request itself may
// be what is not allowed.
func TestOneRequestCountsOneFailureOfAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rationtest.NewBudget(ration.PerHour(100))
		b.OnEvent = func(n ration.Event) { t.Errorf("noticed: %v", n) }
		all := rationtest.Tokens("a", "b")
		all[0].Account, all[1].Account = "one", "one"
		var client *http.Client
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			if n == 1 {
				rationtest.Get(t, client, "http://api.test/public") // it is the first token's turn again
			}
			if req.URL.Path == "/public" {
				return rationtest.Served.To(req), nil
			}
			return rationtest.Unauthorized.To(req), nil
		})
		client = &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, all...)}}
		require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/private").StatusCode)
		require.Equal(t, []string{"a", "b", "a", "b"}, api.Tokens())
	})
}

// A request tries some of an account's tokens, not all.
func TestARequestTriesAFewTokensOfAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []ration.Token
		for i := range 20 {
			token := ration.NewToken(fmt.Sprint("token ", i))
			token.Account = "one"
			many = append(many, token)
		}
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) { return rationtest.Unauthorized.To(req), nil })
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), many...)}}
		require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/").StatusCode)
		require.Len(t, api.Calls(), 8)
	})
}
