package stack_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/examples/stack"
	"github.com/ration-go/ration/provider/presets"
)

// An api records what reached it, and leaves the response to answer.
type api struct {
	*httptest.Server

	mu     sync.Mutex
	tokens []string
	bodies []string
}

func newAPI(t *testing.T, answer func(w http.ResponseWriter, call int)) *api {
	a := new(api)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.tokens = append(a.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		a.bodies = append(a.bodies, string(body))
		call := len(a.tokens)
		a.mu.Unlock()
		answer(w, call)
	}))
	t.Cleanup(a.Close)
	return a
}

func newPool(secrets ...string) *ration.Pool {
	budget := &ration.Budget{Name: "stack", Limits: []ration.Limit{ration.PerHour(100)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(budget)
	for _, secret := range secrets {
		pool.Add(ration.NewToken(secret))
	}
	return pool
}

// A token that is spent leaves the other one, which go-github's own check would not use.
func TestGoGitHubUsesTheOtherToken(t *testing.T) {
	server := newAPI(t, func(w http.ResponseWriter, call int) {
		left := 99
		if call == 1 {
			left = 0
		}
		w.Header().Set("X-RateLimit-Limit", "100")
		w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(left))
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
		_, _ = io.WriteString(w, `{"login":"golang"}`)
	})
	github := presets.GitHub()
	client := stack.GitHub(&ration.Transport{Pool: newPool("first", "second"), Provider: github})
	var err error
	client.BaseURL, err = url.Parse(server.URL + "/")
	require.NoError(t, err)
	for range 3 {
		user, _, err := client.Users.Get(t.Context(), "golang")
		require.NoError(t, err)
		require.Equal(t, "golang", user.GetLogin())
	}
	require.Len(t, server.tokens, 3)
	require.Equal(t, server.tokens[1], server.tokens[2])
	require.NotEqual(t, server.tokens[0], server.tokens[1])
}

// One 429 is one retry, with the same body, and nobody retries the retries.
func TestRetryableRetriesOnce(t *testing.T) {
	server := newAPI(t, func(w http.ResponseWriter, call int) {
		if call == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	client := stack.Retryable(&ration.Transport{Pool: newPool("first", "second")})
	client.Logger = log.New(t.Output(), "", 0)
	resp, err := client.Post(server.URL, "text/plain", strings.NewReader("body"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, []string{"body", "body"}, server.bodies)
}

func TestRetryableReturnsTheLastResponse(t *testing.T) {
	server := newAPI(t, func(w http.ResponseWriter, _ int) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "slow down")
	})
	client := stack.Retryable(&ration.Transport{Pool: newPool("first"), Retries: ration.RetryPolicy{Max: -1}})
	client.Logger = log.New(t.Output(), "", 0)
	resp, err := client.Get(server.URL)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	require.Equal(t, "slow down", string(body))
	require.Len(t, server.bodies, 1)
}
