package wakes_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// heard keeps the events of a process. Several goroutines may tell of them.
type heard struct {
	mu  sync.Mutex
	all []ration.Event
}

func hearing(p process) *heard {
	h := new(heard)
	p.OnEvent = func(e ration.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, e)
	}
	return h
}

// of returns the events of a kind.
func (h *heard) of(kind ration.EventKind) (all []ration.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.all {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// refusedOnce sends a request of a process's that is answered 429 once.
func refusedOnce(t *testing.T, p process, status int) {
	t.Helper()
	n := 0
	api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return rationtest.Respond(req, status, "", []string{"Retry-After", "3600"}), nil
		}
		return rationtest.Respond(req, http.StatusOK, "", nil), nil
	})
	tr := &ration.Transport{Base: api, Pool: ration.NewPool(p.Budget, ration.NewToken("a")), Retries: ration.RetryPolicy{Max: -1}}
	resp := rationtest.Get(t, &http.Client{Transport: tr}, "http://api.test/users/ann?key=hidden")
	require.Equal(t, status, resp.StatusCode)
}

// Every process hears who has paused what, until when and why, also one that begins later, and a
// Logger gets it without a line of code.
func TestAPauseIsToldInEveryProcess(t *testing.T) {
	test := func(t *testing.T, a, b, late process) {
		var logged bytes.Buffer
		byA, byB, byLate := hearing(a), hearing(b), hearing(late)
		late.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		b.book(t)
		refusedOnce(t, a, http.StatusTooManyRequests)
		for _, p := range []process{b, late} {
			_, err := p.Try(t.Context(), ration.NewToken("a"), 1)
			require.ErrorIs(t, err, ration.ErrExhausted)
			left, err := p.Remaining(t.Context(), ration.NewToken("a"))
			require.NoError(t, err)
			require.Zero(t, left)
			usage, err := p.Usage(t.Context(), ration.NewToken("a"))
			require.NoError(t, err)
			require.Contains(t, usage.Cause(), "429 Too Many Requests from GET http://api.test/users/ann")
		}
		for _, h := range []*heard{byA, byB, byLate} {
			require.Len(t, h.of(ration.Paused), 1)
			e := h.of(ration.Paused)[0]
			require.Equal(t, ration.NewToken("a").ID(), e.Account)
			require.Regexp(t, `^429 Too Many Requests from GET http://api.test/users/ann, which asks for 1h0m0s \(told by .+, process \d+\)$`, e.Cause)
			require.Equal(t, byA.of(ration.Paused)[0].Until, e.Until)
		}
		require.Contains(t, logged.String(), "level=WARN")
		require.Contains(t, logged.String(), "event=Paused")
		require.Contains(t, logged.String(), "429 Too Many Requests")
		require.NotContains(t, logged.String(), "hidden")
	}
	t.Run("memory", func(t *testing.T) {
		inMemory(t, ration.PerHour(1000), func(t *testing.T, a, b process) {
			test(t, a, b, newProcess("x", a.asked.Store, ration.PerHour(1000)))
		})
	})
	t.Run("redis", func(t *testing.T) {
		server := redistest.Shared(t)
		a, b := onRedis(t, server, ration.PerHour(1000))
		late := newProcess(a.Name, b.asked.Store, ration.PerHour(1000))
		test(t, a, b, late)
	})
}

// A pause of an endpoint is told with its key, and so is one of all accounts.
func TestAPauseOfAnEndpointIsTold(t *testing.T) {
	inMemory(t, ration.PerHour(1000), func(t *testing.T, a, b process) {
		byA, byB := hearing(a), hearing(b)
		refusedOnce(t, a, http.StatusServiceUnavailable)
		_, err := a.PauseAll(t.Context(), time.Hour)
		require.NoError(t, err)
		_, err = b.Try(t.Context(), ration.NewToken("a"), 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		for _, p := range []process{a, b} {
			usage, err := p.Usage(t.Context(), ration.NewToken("a"))
			require.NoError(t, err)
			require.Len(t, usage.Pauses, 2)
			require.Contains(t, usage.Cause(), "a call of PauseAll")
			all, part := usage.Pauses[0], usage.Pauses[1]
			if all.Key != "" {
				all, part = part, all
			}
			require.Equal(t, usage.PausedUntil, all.Until)
			require.Contains(t, part.Cause, "503 Service Unavailable from GET http://api.test/users/ann")
			require.NotEmpty(t, part.Key)
		}
		for _, h := range []*heard{byA, byB} {
			told := h.of(ration.Paused)
			require.Len(t, told, 2)
			for _, e := range told {
				require.Empty(t, e.Account)
				if e.Key == "" {
					require.Contains(t, e.String(), "all accounts: paused until")
					require.Contains(t, e.Cause, "a call of PauseAll (told by ")
				} else {
					require.Contains(t, e.String(), "the endpoint ")
					require.Contains(t, e.Cause, "503 Service Unavailable from GET http://api.test/users/ann")
				}
			}
		}
	})
}

// Every process hears that a token is quarantined.
func TestAQuarantineIsToldInEveryProcess(t *testing.T) {
	inMemory(t, ration.PerHour(1000), func(t *testing.T, a, b process) {
		byB := hearing(b)
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Authorization") == "Bearer bad" {
				return rationtest.Respond(req, http.StatusUnauthorized, `{"error":"invalid_token"}`, rationtest.JSON), nil
			}
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(a.Budget, ration.NewToken("bad"), ration.NewToken("good"))}}
		for range 2 {
			rationtest.Get(t, client, "http://api.test/users/ann")
		}
		b.book(t)
		told := byB.of(ration.TokenQuarantined)
		require.NotEmpty(t, told)
		require.Equal(t, ration.NewToken("bad").ID(), told[0].Token)
		require.Contains(t, told[0].Cause, "401 Unauthorized from GET http://api.test/users/ann")
		require.NotContains(t, told[0].Cause, "good")
		for _, p := range []process{a, b} {
			usages, err := ration.NewPool(p.Budget, ration.NewToken("bad"), ration.NewToken("good")).Usage(t.Context())
			require.NoError(t, err)
			for _, u := range usages {
				if u.Account == ration.NewToken("good").AccountID() {
					require.Empty(t, u.Quarantined)
					continue
				}
				require.Len(t, u.Quarantined, 1)
				require.Equal(t, told[0].Until, u.Quarantined[0].Until)
				require.Equal(t, told[0].Cause, u.Quarantined[0].Cause)
			}
		}
	})
}

// That a quota is spent is told once, with the limit, and so is that there is room again.
func TestASpentQuotaIsToldOnce(t *testing.T) {
	inMemory(t, ration.PerHour(2), func(t *testing.T, a, _ process) {
		h := hearing(a)
		for range 2 {
			a.book(t)
		}
		require.Empty(t, h.of(ration.QuotaSpent))
		for range 3 {
			_, err := a.Try(t.Context(), ration.NewToken("a"), 1)
			require.ErrorIs(t, err, ration.ErrExhausted)
		}
		a.book(t) // waits for an hour
		require.Len(t, h.of(ration.QuotaSpent), 1)
		e := h.of(ration.QuotaSpent)[0]
		require.Equal(t, "the quota of 2/1h is spent", e.Cause)
		require.Equal(t, ration.NewToken("a").ID(), e.Account)
		require.Empty(t, h.of(ration.QuotaBack))
		a.book(t)
		require.Len(t, h.of(ration.QuotaBack), 1)
		time.Sleep(time.Hour)
		a.book(t)
		require.Len(t, h.of(ration.QuotaBack), 1)
	})
}
