package ration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// private is a provider that serves pages but those under /private/, to good tokens only.
func private(rejects rationtest.Reply, bad func(secret string) bool) func(int, *http.Request) (*http.Response, error) {
	return func(_ int, req *http.Request) (*http.Response, error) {
		if strings.HasPrefix(req.URL.Path, "/private/") || bad(rationtest.SecretOf(req)) {
			return rejects.To(req), nil
		}
		return rationtest.Served.To(req), nil
	}
}

func none(string) bool { return false }

// rejections are how providers reject tokens, and pages that no token may see.
var rejections = map[string]rationtest.Reply{"bare": rationtest.Unauthorized, "invalid token": rationtest.InvalidToken}

// A page that no token may see costs no token, whatever the provider says, and however many
// such pages come first.
func TestAPageThatIs401NeverCostsAToken(t *testing.T) {
	for name, rejects := range rejections {
		for _, tokens := range []int{1, 3, 40} {
			t.Run(fmt.Sprint(name, "/", tokens), func(t *testing.T) {
				rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
					b.Limits = []ration.Limit{ration.PerHour(100_000)}
					var secrets []string
					for i := range tokens {
						secrets = append(secrets, fmt.Sprint("secret-", i))
					}
					var events []ration.Event
					b.OnEvent = func(e ration.Event) { events = append(events, e) }
					api := rationtest.NewAPI(private(rejects, none))
					client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens(secrets...)...)}}
					status := func(path string) int { return rationtest.Get(t, client, "http://api.test"+path).StatusCode }
					for i := range 10 {
						require.Equal(t, http.StatusUnauthorized, status(fmt.Sprint("/private/", i)))
						time.Sleep(time.Millisecond)
					}
					require.Len(t, api.Calls(), 10*min(3, tokens), "a page is tried with at most three tokens")
					begun := time.Now()
					for i := range 200 {
						if i%20 == 0 {
							require.Equal(t, http.StatusUnauthorized, status(fmt.Sprint("/private/later/", i)))
						}
						require.Equal(t, http.StatusOK, status(fmt.Sprint("/public/", i)))
						time.Sleep(time.Millisecond)
					}
					require.Less(t, time.Since(begun), 2*time.Second)
					require.Empty(t, events)
				})
			})
		}
	}
}

// A revoked token costs some calls in its first minute, and none of its callers a request.
func TestARevokedTokenCostsNoRequest(t *testing.T) {
	testkit.Slow(t)
	for name, rejects := range rejections {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{ration.PerHour(100_000)}
				revoked := false
				api := rationtest.NewAPI(private(rejects, func(secret string) bool { return revoked && secret == "bad" }))
				client := &http.Client{Transport: &ration.Transport{Base: api, MaxCooldown: 10 * time.Minute,
					Pool: ration.NewPool(b, rationtest.Tokens("bad", "good", "better")...)}}
				crawl := func(length time.Duration) (ofBad int) {
					pause := max(100*time.Millisecond, length/1000)
					before := len(api.TimesOf("bad"))
					for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(pause) {
						require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/public").StatusCode)
					}
					return len(api.TimesOf("bad")) - before
				}
				require.Greater(t, crawl(10*time.Second), 20)
				revoked = true
				most := crawl(time.Minute)
				require.LessOrEqual(t, most, 8)
				require.GreaterOrEqual(t, most, 5, "it is probed after 1, 2, 4, 8 ... s")
				crawl(time.Hour)
				require.LessOrEqual(t, crawl(time.Hour), 7, "and then every MaxCooldown")
				revoked = false
				crawl(11 * time.Minute)
				require.Greater(t, crawl(10*time.Second), 20, "one success is enough")
			})
		})
	}
}

// Two rejections that do not say that the token is invalid are not enough if it was served in
// between, as where a page may be seen by one token only.
func TestASuccessLiftsSuspicion(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100_000)}
		quarantined := 0
		b.OnEvent = func(e ration.Event) { quarantined++ }
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/ours" && rationtest.SecretOf(req) == "theirs" {
				return rationtest.Unauthorized.To(req), nil
			}
			return rationtest.Served.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens("ours", "theirs")...)}}
		for i := range 100 {
			path := "/all"
			if i%4 == 0 {
				path = "/ours"
			}
			require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test"+path).StatusCode)
			time.Sleep(time.Millisecond)
		}
		require.Zero(t, quarantined)
	})
}

// When every token is revoked, and was never served, ErrNoToken comes within 20 requests. Until
// then each caller has the provider's answer.
func TestRevokedTokensEndInErrNoToken(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100_000)}
		revoked := true
		api := rationtest.NewAPI(private(rationtest.InvalidToken, func(string) bool { return revoked }))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens("a", "b", "c")...)}}
		for i := range 20 {
			resp, err := client.Get(fmt.Sprint("http://api.test/", i))
			require.NoError(t, err)
			require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
			_ = resp.Body.Close()
		}
		begun := time.Now()
		_, err := client.Get("http://api.test/last")
		require.ErrorIs(t, err, ration.ErrNoToken)
		require.ErrorContains(t, err, "attached as the provider wants it")
		none, is := errors.AsType[*ration.NoTokenError](err)
		require.True(t, is)
		for _, token := range none.Tokens {
			require.Equal(t, `401 Unauthorized from GET http://api.test/0: {"error":"invalid_token"}`, token.Answer)
			require.Contains(t, token.Evidence, "20 requests in a row")
			require.ErrorContains(t, err, token.Answer)
		}
		require.Zero(t, time.Since(begun))
		require.Len(t, api.Calls(), 60)
		revoked = false
		time.Sleep(time.Second)
		require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/again").StatusCode)
	})
}

// With 401s alone nothing is condemned: one event asks whether the token is attached as the
// provider wants it.
func TestTokensThatAreNeverServedAreTold(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100_000)}
		var events []ration.Event
		b.OnEvent = func(e ration.Event) { events = append(events, e) }
		api := rationtest.NewAPI(private(rationtest.Unauthorized, func(string) bool { return true }))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens("a")...)}}
		for i := range 50 {
			require.Equal(t, http.StatusUnauthorized, rationtest.Get(t, client, fmt.Sprint("http://api.test/", i)).StatusCode)
		}
		require.Len(t, events, 1)
		require.Equal(t, ration.TokenNeverServed, events[0].Kind)
		require.Contains(t, events[0].String(), "attached as the provider wants it")
	})
}

// A provider whose authorisation fails for two seconds quarantines no token for longer than two
// seconds more, and no request that may wait is lost.
func TestAProviderThatCannotAuthoriseCostsSeconds(t *testing.T) {
	testkit.Slow(t)
	for name, rejects := range rejections {
		t.Run(name, func(t *testing.T) {
			rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
				b.Limits = []ration.Limit{ration.PerHour(100_000)}
				begun := time.Now()
				down := func(string) bool {
					at := time.Since(begun)
					return at >= 5*time.Second && at < 7*time.Second
				}
				api := rationtest.NewAPI(private(rejects, down))
				client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens("a", "b", "c")...)}}
				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() {
						for time.Since(begun) < 20*time.Second {
							at := time.Since(begun)
							resp, err := client.Get("http://api.test/public")
							if !down("") && (at < 5*time.Second || at > 7*time.Second) {
								require.NoError(t, err)
							}
							if err == nil {
								_ = resp.Body.Close()
							}
							time.Sleep(time.Duration(31+i) * time.Millisecond)
						}
					})
				}
				all.Wait()
				served := make(map[string]int)
				for _, secret := range []string{"a", "b", "c"} {
					for _, at := range api.TimesOf(secret) {
						if at > 9*time.Second {
							served[secret]++
						}
					}
				}
				for secret, n := range served {
					require.InDelta(t, (served["a"]+served["b"]+served["c"])/3, n, 5, "token %s is out", secret)
				}
				require.Len(t, served, 3)
			})
		})
	}
}

// While all tokens are only quarantined, a request whose deadline allows it waits for a probe.
func TestARequestWaitsForAProbe(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100_000)}
		token := rationtest.Tokens("a")
		pool := ration.NewPool(b, token...)
		client := &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(private(rationtest.Unauthorized, none)), Pool: pool}}
		_, err := b.Store.Quarantine(t.Context(), store.QuarantineRequest{Budget: b.Name, Token: token[0].ID(),
			Reason: string(provider.ReasonUnauthorized), For: 3 * time.Second})
		require.NoError(t, err)
		begun := time.Now()
		resp := rationtest.Get(t, client, "http://api.test/")
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, 3*time.Second, time.Since(begun))
		grant, _ := ration.GrantOf(resp)
		require.Equal(t, rationtrace.Probe, grant.Waits[0].Reason)
		require.Contains(t, grant.Waits[0].Cause, "no token is left")
	})
}

// What came of the other token must be a success: that it was refused, or that the
// server failed, says nothing of the first.
func TestOnlyASuccessOfAnotherTokenQuarantinesTheFirst(t *testing.T) {
	for _, other := range []rationtest.Reply{{Status: 500}, {Status: 404}, {Status: 429}, {Status: 401, Body: "", Header: nil}} {
		synctest.Test(t, func(t *testing.T) {
			b := rationtest.NewBudget(ration.PerHour(100))
			b.OnEvent = func(n ration.Event) {
				if n.Kind != ration.Paused && n.Kind != ration.PaceChanged {
					t.Errorf("after a %d: %v", other.Status, n)
				}
			}
			api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
				if n == 1 {
					return rationtest.Unauthorized.To(req), nil
				}
				return other.To(req), nil
			})
			client := &http.Client{Transport: &ration.Transport{Base: api, Retries: ration.RetryPolicy{Max: -1}, Pool: ration.NewPool(b, rationtest.Tokens("a", "b")...)}}
			require.Equal(t, other.Status, rationtest.Get(t, client, "http://api.test/").StatusCode)
			require.ElementsMatch(t, []string{"a", "b"}, api.Tokens())
		})
	}
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
