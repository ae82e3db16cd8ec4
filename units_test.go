package ration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"
)

// perMinuteOfTokens are limits of calls and of tokens.
func perMinuteOfTokens(calls, tokens int) []ration.Limit {
	of := ration.PerMinute(tokens)
	of.Unit = "tokens"
	return []ration.Limit{ration.PerMinute(calls), of}
}

func TestALimitOfAUnitIsKeptBesideThatOfCalls(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = perMinuteOfTokens(5, 1000)
		token, begun := ration.NewToken("a"), time.Now()
		of := func(tokens int) time.Duration {
			grant, err := b.Wait(ration.WithUnits(t.Context(), map[string]int{"tokens": tokens}), token, 1)
			require.NoError(t, err)
			return grant.Slot.Sub(begun).Truncate(time.Second)
		}
		require.Zero(t, of(600))
		require.Zero(t, of(400))
		usage, err := b.Usage(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, []int{3, 0}, []int{usage.Remaining(), usage.RemainingOf("tokens")})
		require.Equal(t, "1000/1m:unit=tokens", usage.Limits[1].Limit.String())
		require.Zero(t, of(0), "it has none of what is spent")
		require.Equal(t, time.Minute, of(1))
		require.Equal(t, time.Minute, of(999))
		left, err := b.Remaining(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 3, left)
	})
}

func TestARequestMustSayHowManyUnitsItHas(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = perMinuteOfTokens(5, 1000)
		token := ration.NewToken("a")
		_, err := b.Wait(t.Context(), token, 1)
		require.ErrorContains(t, err, "a limit counts tokens: say how many a request has with WithUnits or Transport.Units")
		_, err = b.Wait(ration.WithUnits(t.Context(), map[string]int{"token": 1}), token, 1)
		require.ErrorContains(t, err, "the limits count tokens")
		_, err = b.Wait(ration.WithUnits(t.Context(), map[string]int{"tokens": 1001}), token, 1)
		require.ErrorContains(t, err, "1001 tokens: it must be from 0 to 1000")
		_, err = b.Wait(ration.WithUnits(t.Context(), nil), token, 1)
		require.NoError(t, err)
		rationtest.RequireRemaining(t, b, token, 4, 1000)

		only := &ration.Budget{Name: "only", Limits: perMinuteOfTokens(5, 1000)[1:], Store: b.Store}
		_, err = only.Wait(t.Context(), token, 1)
		require.ErrorContains(t, err, "no limit counts calls")
		other := ration.NewToken("b")
		other.Limits = perMinuteOfTokens(5, 99)
		pool := ration.NewPool(b, token, other)
		_, err = pool.Take(ration.WithUnits(t.Context(), nil), 1)
		require.ErrorContains(t, err, "must have the same limits of other units")
	})
}

// Of a pool the token is taken that has room for the units, and those that wait are served in turn.
func TestAPoolTakesATokenWithRoomForTheUnits(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = perMinuteOfTokens(50, 1000)
		pool, begun := ration.NewPool(b, ration.NewToken("a"), ration.NewToken("b")), time.Now()
		var mu sync.Mutex
		var wait sync.WaitGroup
		slots := make(map[time.Duration]int)
		for range 12 { // three of 300 fit into a minute of each token
			wait.Go(func() {
				grant, err := pool.Take(ration.WithUnits(t.Context(), map[string]int{"tokens": 300}), 1)
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				slots[grant.Slot.Sub(begun).Truncate(time.Second)]++
			})
		}
		wait.Wait()
		require.Equal(t, map[time.Duration]int{0: 6, time.Minute: 6}, slots)
	})
}

func TestATransportBooksTheUnitsOfARequest(t *testing.T) {
	var calls int
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			http.Error(w, "again", http.StatusServiceUnavailable)
		}
	}))
	defer api.Close()
	b := &ration.Budget{Name: "llm", Limits: perMinuteOfTokens(50, 1000), Store: new(ration.MemoryStore)}
	token := ration.NewToken("a")
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, token),
		Units: func(r *http.Request) map[string]int { return map[string]int{"tokens": int(r.ContentLength) + 300} }}}
	resp, err := client.Get(api.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	usage, err := b.Usage(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, 400, usage.RemainingOf("tokens"), "each attempt has its own")
	req, err := http.NewRequestWithContext(ration.WithUnits(t.Context(), map[string]int{"tokens": 100}), http.MethodGet, api.URL, nil)
	require.NoError(t, err)
	resp, err = client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	usage, err = b.Usage(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, 300, usage.RemainingOf("tokens"))
}

// What a provider has counted of tokens beyond what was booked is recorded, and its refusals are paused for as ever.
func TestTheProvidersCountOfAUnitIsRecorded(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{"Limit-Requests": "50", "Remaining-Requests": "49", "Reset-Requests": "1s",
			"Limit-Tokens": "1000", "Remaining-Tokens": "150", "Reset-Tokens": "51s"} {
			w.Header().Set("X-RateLimit-"+name, value)
		}
	}))
	defer api.Close()
	b := &ration.Budget{Name: "llm", Store: new(ration.MemoryStore), Limits: []ration.Limit{
		{Max: 50, Window: time.Minute, Algorithm: ration.GCRA, Burst: 50},
		{Max: 1000, Window: time.Minute, Algorithm: ration.GCRA, Burst: 1000, Unit: "tokens"},
	}}
	token := ration.NewToken("a")
	client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, token), Provider: rationtest.Preset(t, "openai")}}
	req, err := http.NewRequestWithContext(ration.WithUnits(t.Context(), map[string]int{"tokens": 100}), http.MethodGet, api.URL, nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	usage, err := b.Usage(t.Context(), token)
	require.NoError(t, err)
	require.InDelta(t, 150, usage.RemainingOf("tokens"), 5)
	require.Equal(t, 150, usage.Limits[1].Reported)
	require.InDelta(t, 49, usage.Remaining(), 1)
}

// The preset knows what a request costs of GitHub's points: core, search and the points of REST and GraphQL do not wait for each
// other.
func TestGitHubsPointsAreKept(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		github := rationtest.Preset(t, "github")
		b.Limits = github.Limits
		begun, slots := time.Now(), make(map[string]time.Duration)
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, ration.NewToken("a")), Provider: github,
			Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
				slots[req.Method+" "+req.URL.Path] = time.Since(begun).Truncate(time.Second)
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			})}}
		ask := func(method, path string, times int) {
			for range times {
				req, err := http.NewRequestWithContext(t.Context(), method, "https://api.github.com"+path, nil)
				require.NoError(t, err)
				resp, err := client.Do(req)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
		}
		ask(http.MethodGet, "/repos/a/b", 490)
		ask(http.MethodPost, "/repos/a/b/issues", 80)
		ask(http.MethodDelete, "/repos/a/b/issues", 1)
		ask(http.MethodGet, "/search/issues", 5)
		ask(http.MethodPost, "/graphql", 900)
		require.Equal(t, map[string]time.Duration{"GET /repos/a/b": 0, "POST /repos/a/b/issues": 0, "DELETE /repos/a/b/issues": 0, "GET /search/issues": 0, "POST /graphql": 0}, slots)
		ask(http.MethodGet, "/repos/a/b", 1)
		require.Equal(t, time.Minute, slots["GET /repos/a/b"], "900 points are spent")
		ask(http.MethodPost, "/repos/a/b/issues", 421)
		require.Equal(t, time.Hour, slots["POST /repos/a/b/issues"], "500 were created")
	})
}

// A slowStore answers late to what is recorded of a unit, and notes in which order records are made.
type slowStore struct {
	ration.Store
	mu    sync.Mutex
	order []string
}

func (s *slowStore) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

func (s *slowStore) Correct(ctx context.Context, r store.CorrectRequest) (store.Booking, error) {
	type answer struct {
		booking store.Booking
		err     error
	}
	made := make(chan answer, 1)
	go func() { // also for a caller that leaves
		time.Sleep(time.Second)
		s.mu.Lock()
		s.order = append(s.order, fmt.Sprint(r.Cost, r.Units, r.Slot.IsZero()))
		s.mu.Unlock()
		booking, err := s.Store.Correct(context.WithoutCancel(ctx), r)
		made <- answer{booking, err}
	}()
	select {
	case a := <-made:
		return a.booking, a.err
	case <-ctx.Done():
		return store.Booking{}, ctx.Err()
	}
}

// All that a late request was charged counts when it was sent, in one step, however slow the store is: there is never room for
// another. The caller does not wait for that.
func TestALateRequestIsNeverUncounted(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits, b.Margin = perMinuteOfTokens(5, 1000), 0
		kept := &slowStore{Store: b.Store}
		b.Store = kept
		token := ration.NewToken("a")
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, token),
			Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
				httptrace.ContextClientTrace(req.Context()).WroteRequest(httptrace.WroteRequestInfo{})
				time.Sleep(10 * time.Second) // the connection is not one that was used before: it may have arrived at the end of that
				return rationtest.Served.To(req), nil
			}),
			Units: func(*http.Request) map[string]int { return map[string]int{"tokens": 700} }}}
		begun := time.Now()
		resp, err := client.Get("http://api.test/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Less(t, time.Since(begun), 11*time.Second)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"1 [700] false"}, kept.noted())
		rationtest.RequireRemaining(t, b, token, 4, 300)
		time.Sleep(50 * time.Second)
		usage, err := b.Usage(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, []int{4, 300}, []int{usage.Remaining(), usage.RemainingOf("tokens")}, "it counts from when it had arrived")
	})
}

// How late a request may be is for the shortest window of all that it is charged to: another unit's here, not the hour of its calls.
func TestTheShortestWindowSaysWhatIsLate(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits, b.Margin = append([]ration.Limit{ration.PerHour(100)}, parseLimits(t, "100/1s:unit=tokens")...), 0
		kept := &slowStore{Store: b.Store}
		b.Store = kept
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, ration.NewToken("a")),
			Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
				httptrace.ContextClientTrace(req.Context()).WroteRequest(httptrace.WroteRequestInfo{})
				time.Sleep(100 * time.Millisecond)
				return rationtest.Served.To(req), nil
			}),
			Units: func(*http.Request) map[string]int { return map[string]int{"tokens": 70} }}}
		resp, err := client.Get("http://api.test/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"1 [70] false"}, kept.noted())
	})
}

func TestUnitsAreCorrectedWhenTheyAreKnown(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = perMinuteOfTokens(5, 1000)
		token, begun := ration.NewToken("a"), time.Now()
		take := func(tokens int) ration.Grant {
			grant, err := b.Wait(ration.WithUnits(t.Context(), map[string]int{"tokens": tokens}), token, 1)
			require.NoError(t, err)
			return grant
		}
		grant := take(900)
		require.NoError(t, grant.Settle(t.Context(), map[string]int{"tokens": 150}))
		rationtest.RequireRemaining(t, b, token, 4, 850)
		time.Sleep(2 * time.Second)
		require.Equal(t, 2*time.Second, take(200).Slot.Sub(begun).Truncate(time.Second))
		rationtest.RequireRemaining(t, b, token, 3, 650)

		grant = take(650)
		require.NoError(t, grant.Settle(t.Context(), map[string]int{"tokens": 850}))
		rationtest.RequireRemaining(t, b, token, 2, 0)
		require.Equal(t, time.Minute+2*time.Second, take(100).Slot.Sub(begun).Truncate(time.Second), "200 more than there were count")

		grant = take(0)
		require.NoError(t, grant.Settle(t.Context(), nil))
		require.NoError(t, grant.Settle(t.Context(), map[string]int{"tokens": 0}))
		require.ErrorContains(t, grant.Settle(t.Context(), map[string]int{"tokens": -1}), "-1 tokens: there must be 0 to")
		require.ErrorContains(t, grant.Settle(t.Context(), map[string]int{"token": 1}), `no limit of budget "`+b.Name+`" counts "token"`)
		require.ErrorContains(t, ration.Grant{}.Settle(t.Context(), nil), "the grant is zero")
	})
}

// A request that was late counts when it was sent, and what it has not used is free.
func TestUnitsOfALateRequestAreCorrectedToo(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits, b.Margin = perMinuteOfTokens(5, 1000), 100*time.Millisecond
		token := ration.NewToken("a")
		transport := &ration.Transport{Pool: ration.NewPool(b, token), Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(req.Context()).WroteRequest(httptrace.WroteRequestInfo{})
			time.Sleep(time.Second)
			return rationtest.Served.To(req), nil
		})}
		send := func() ration.Grant {
			req, err := http.NewRequestWithContext(ration.WithUnits(t.Context(), map[string]int{"tokens": 300}), http.MethodGet, "http://example.com/", nil)
			require.NoError(t, err)
			resp, err := transport.RoundTrip(req)
			require.NoError(t, err)
			grant, found := ration.GrantOf(resp)
			require.True(t, found)
			return grant
		}
		require.NoError(t, send().Settle(t.Context(), map[string]int{"tokens": 100}))
		time.Sleep(time.Second)
		rationtest.RequireRemaining(t, b, token, 4, 900)
		require.NoError(t, send().Settle(t.Context(), map[string]int{"tokens": 500}))
		time.Sleep(time.Second)
		rationtest.RequireRemaining(t, b, token, 3, 400)
	})
}
