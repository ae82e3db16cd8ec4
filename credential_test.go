package ration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A tokenServer makes secrets "s1", "s2", ..., and knows which of them are good.
type tokenServer struct {
	life  time.Duration // of a secret; zero: for ever
	takes time.Duration // to make one

	mu      sync.Mutex
	begun   time.Time
	asked   []time.Duration // since begun
	running int
	most    int
	dead    int // up to this secret they are revoked
	same    bool
	fails   error
	expires map[string]time.Time
}

func newTokenServer(life, takes time.Duration) *tokenServer {
	return &tokenServer{life: life, takes: takes, begun: time.Now(), expires: make(map[string]time.Time)}
}

func (s *tokenServer) secret(context.Context) (string, time.Time, error) {
	s.mu.Lock()
	s.asked = append(s.asked, time.Since(s.begun))
	s.running++
	s.most = max(s.most, s.running)
	n := len(s.asked)
	s.mu.Unlock()
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.fails != nil {
		return "", time.Time{}, s.fails
	}
	if s.same {
		n = 1
	}
	secret, expires := fmt.Sprint("s", n), time.Time{}
	if s.life > 0 {
		expires = time.Now().Add(s.life)
	}
	s.expires[secret] = expires
	return secret, expires, nil
}

func (s *tokenServer) revoke(upTo int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = upTo
}

// answer is a provider that checks the request's secret.
func (s *tokenServer) answer(_ int, req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	secret := rationtest.SecretOf(req)
	expires, known := s.expires[secret]
	n := 0
	_, _ = fmt.Sscanf(secret, "s%d", &n)
	if !known || 0 < n && n <= s.dead || !expires.IsZero() && time.Now().After(expires) || req.URL.Path == "/private" {
		return rationtest.InvalidToken.To(req), nil
	}
	return rationtest.Served.To(req), nil
}

func (s *tokenServer) client(budget *ration.Budget, others ...ration.Token) (*http.Client, *rationtest.API, ration.Token) {
	api, token := rationtest.NewAPI(s.answer), ration.TokenFrom("ann", s.secret)
	pool := ration.NewPool(budget, append(others, token)...)
	return &http.Client{Transport: &ration.Transport{Base: api, Pool: pool}}, api, token
}

func get(t *testing.T, client *http.Client, path string) int {
	t.Helper()
	return rationtest.Get(t, client, "http://api.test"+path).StatusCode
}

// The fourth call waits an hour for its slot, and its secret is made just before.
func TestSourceIsAskedShortlyBeforeTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer(10*time.Minute, 300*time.Millisecond)
		budget := rationtest.NewBudget(ration.PerHour(3))
		client, api, token := server.client(budget)
		for range 4 {
			require.Equal(t, http.StatusOK, get(t, client, "/"))
		}
		require.Equal(t, []string{"s1", "s1", "s1", "s2"}, api.Tokens())
		times := api.Times()
		require.Len(t, server.asked, 2)
		require.Equal(t, time.Second, times[3]-server.asked[1])
		left, err := budget.Remaining(t.Context(), token)
		require.NoError(t, err)
		require.Zero(t, left, "the account stays the same") // two calls came 300 ms after the first
	})
}

// Requests that come all the time never wait for a secret but the first, and no provider sees
// one that has expired.
func TestSourceIsAskedAheadOfExpiryOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer(2*time.Second, 300*time.Millisecond)
		client, api, _ := server.client(rationtest.NewBudget(ration.PerHour(10_000)))
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				for range 200 {
					begun := time.Now()
					resp, err := client.Get("http://api.test/")
					if err != nil || resp.StatusCode != http.StatusOK {
						t.Errorf("%v, %v", resp, err)
						return
					}
					if took := time.Since(begun); took > 0 && time.Since(server.begun) > time.Second {
						t.Errorf("waited %v", took)
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		group.Wait()
		require.Len(t, api.Calls(), 10_000)
		require.Equal(t, 1, server.most)
		require.Less(t, len(server.asked), 20)
	})
}

// The first answer that refuses a secret has the source asked again, once for all callers.
func TestARevokedSecretIsAskedForAgainBeforeAnythingIsSuspected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer(0, 300*time.Millisecond)
		budget := rationtest.NewBudget(ration.PerHour(100))
		var events []ration.Event
		budget.OnEvent = func(e ration.Event) { events = append(events, e) }
		client, api, _ := server.client(budget)
		require.Equal(t, http.StatusOK, get(t, client, "/"))
		server.revoke(1)
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				if resp, err := client.Get("http://api.test/"); err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("%v, %v", resp, err)
				}
			})
		}
		group.Wait()
		require.Len(t, server.asked, 2)
		require.Len(t, api.TimesOf("s1"), 11)
		require.Len(t, api.TimesOf("s2"), 10)
		require.Empty(t, events)
	})
}

// A source that knows no other secret is asked once because of it, however often it is refused.
func TestASecretIsAskedForAgainOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer(0, 0)
		server.same = true
		client, api, _ := server.client(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("other"))
		server.expires["other"] = time.Time{}
		server.revoke(1)
		for range 20 {
			require.Equal(t, http.StatusOK, get(t, client, "/"))
			time.Sleep(2 * time.Hour) // then it is probed
		}
		require.Len(t, server.asked, 2)
		require.Greater(t, len(api.TimesOf("s1")), 5)
	})
}

// A URL that is 401 for everybody costs a secret a minute, not one for each of its calls.
func TestAPrivateURLDoesNotHaveASecretMadeForEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer(0, 0)
		unauthorized := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/private" {
				return rationtest.Unauthorized.To(req), nil
			}
			return server.answer(0, req)
		})
		pool := ration.NewPool(rationtest.NewBudget(ration.PerHour(1000)), ration.TokenFrom("ann", server.secret))
		client := &http.Client{Transport: &ration.Transport{Base: unauthorized, Pool: pool}}
		for range 20 {
			require.Equal(t, http.StatusUnauthorized, get(t, client, "/private"))
			require.Equal(t, http.StatusOK, get(t, client, "/"))
		}
		require.Len(t, server.asked, 2)
	})
}

// A request goes to another account while a source fails, and without one the caller gets the
// error. Neither uses quota, and the source is left alone for a second.
func TestASourceThatFailsGivesTheSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, fail := range map[string]func(*tokenServer){
			"error": func(s *tokenServer) { s.fails = context.DeadlineExceeded },
			"other": func(s *tokenServer) { s.fails = errors.New("no") },
		} {
			server := newTokenServer(0, 0)
			fail(server)
			budget := rationtest.NewBudget(ration.PerHour(5))
			client, api, token := server.client(budget)
			for range 3 {
				_, err := client.Get("http://api.test/")
				require.ErrorIs(t, err, server.fails, name)
				require.ErrorContains(t, err, token.ID())
			}
			require.Empty(t, api.Calls())
			require.Len(t, server.asked, 1)
			left, err := budget.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.Equal(t, 5, left)

			other := ration.NewToken("other")
			client, api, token = server.client(budget, other)
			server.expires["other"] = time.Time{}
			for range 5 {
				require.Equal(t, http.StatusOK, get(t, client, "/"))
			}
			require.Equal(t, []string{"other", "other", "other", "other", "other"}, api.Tokens())
			server.fails = nil
			time.Sleep(time.Second)
			require.Equal(t, http.StatusOK, get(t, client, "/"))
			left, err = budget.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.Equal(t, 4, left)
		}
	})
}

// While a secret lasts nobody minds that the source fails, or panics.
func TestASecretIsUsedWhileItLastsAlthoughTheSourceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		token := ration.TokenFrom("ann", func(context.Context) (string, time.Time, error) {
			if calls++; calls > 1 {
				panic("no more")
			}
			return "s1", time.Now().Add(time.Minute), nil
		})
		api := rationtest.NewAPI(nil)
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), token)}}
		for range 60 {
			require.Equal(t, http.StatusOK, get(t, client, "/"))
			time.Sleep(time.Second - time.Millisecond)
		}
		time.Sleep(time.Second)
		_, err := client.Get("http://api.test/")
		require.ErrorContains(t, err, "no more")
		require.Greater(t, calls, 2)
	})
}

// A secret that takes longer than its slot lasts is waited for, and then a slot is booked that
// the request can keep.
func TestASlotThatPassesWhileTheSourceIsAskedIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newTokenServer(0, 10*time.Second)
		budget := rationtest.NewBudget(ration.PerHour(5))
		budget.Margin = 2 * time.Second
		client, api, token := server.client(budget)
		resp := rationtest.Get(t, client, "http://api.test/")
		grant, found := ration.GrantOf(resp)
		require.True(t, found)
		require.Equal(t, 10*time.Second, api.Times()[0])
		require.Equal(t, server.begun.Add(10*time.Second).UnixMicro(), grant.Slot.UnixMicro())
		require.Equal(t, token.ID(), fmt.Sprint(grant.Token))
		require.NotContains(t, fmt.Sprintf("%+v %#v", grant, grant), "s1")
		left, err := budget.Remaining(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 4, left)
	})
}

func TestTokenFromNeedsAnIDAndASource(t *testing.T) {
	source := func(context.Context) (string, time.Time, error) { return "s", time.Time{}, nil }
	for _, token := range []ration.Token{ration.TokenFrom("", source), ration.TokenFrom("ann", nil)} {
		_, err := rationtest.NewBudget(ration.PerHour(5)).Wait(t.Context(), token, 1)
		require.ErrorContains(t, err, "TokenFrom")
	}
	require.Equal(t, ration.TokenFrom("ann", source).ID(), ration.TokenFrom("ann", source).ID())
	require.NotEqual(t, ration.TokenFrom("ann", source).ID(), ration.NewToken("ann").ID())
}

// A secret that cannot be one is named before a request is sent.
func TestASecretThatIsNoneIsNamed(t *testing.T) {
	for secret, want := range map[string]string{
		"a-secret\n":      "has a line break or another control character: trim what was read from a file",
		"Bearer a-secret": `the secret begins with "Bearer ", which is added to it: make the token without that`,
		"bearer a-secret": `the secret begins with "Bearer "`,
	} {
		var sent atomic.Int32
		b := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerMinute(5)}, Store: new(ration.MemoryStore)}
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, ration.NewToken(secret)),
			Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
				sent.Add(1)
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			})}}
		_, err := client.Get("https://api.example/")
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "a-secret")
		require.Zero(t, sent.Load())
	}
}
