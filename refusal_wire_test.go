package ration_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// An endless answer to a refused request is given up, not read.
func TestRefusalThatNeverEndsHoldsNobodyUp(t *testing.T) {
	var calls atomic.Int64
	w := newWire(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			fmt.Fprint(w, "welcome")
			return
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	resp, err := w.client.Get(w.URL)
	require.NoError(t, err)
	require.Equal(t, "welcome", drain(t, resp))
	w.requireSpent(t, 2)
}

func TestRefusalThatIsGivenUpIsReadInFull(t *testing.T) {
	page := strings.Repeat("slow down ", 1<<18)
	w := newWire(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0")
		w.Header().Set("X-Request-Id", "17")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, page)
	})
	for _, content := range []io.Reader{nil, strings.NewReader("content"), io.MultiReader(strings.NewReader("content"))} {
		resp, err := w.client.Do(newRequest(t, http.MethodPost, w.URL, content))
		require.NoError(t, err)
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
		require.Equal(t, "17", resp.Header.Get("X-Request-Id"))
		require.Equal(t, page, drain(t, resp))
	}
	// 4 of that without a body, 4 of that which http gave a GetBody, and 1 of
	// the stream.
	w.requireSpent(t, 9)
}

// With Expect: 100-continue a refusal comes before the body is sent.
func TestRefusalBeforeTheBodyIsSent(t *testing.T) {
	var calls atomic.Int64
	w := newWire(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	w.base.ExpectContinueTimeout = time.Minute
	req := newRequest(t, http.MethodPut, w.URL, strings.NewReader("content"))
	req.Header.Set("Expect", "100-continue")
	resp, err := w.client.Do(req)
	require.NoError(t, err)
	require.Equal(t, "content", drain(t, resp))
	w.requireSpent(t, 2)
}

func TestRedirectedPostIsBookedOnEachHop(t *testing.T) {
	w := newWire(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/new" {
			_, _ = io.Copy(w, r.Body)
			return
		}
		http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
	})
	resp, err := w.client.Post(w.URL+"/old", "text/plain", strings.NewReader("content"))
	require.NoError(t, err)
	require.Equal(t, "content", drain(t, resp))
	w.requireSpent(t, 2)
}

func TestRedirectToAnotherPortCarriesNoToken(t *testing.T) {
	var seen []http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header)
	}))
	t.Cleanup(other.Close)
	w := newWire(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusFound)
	})
	for _, attach := range []ration.Attach{ration.Bearer, ration.HeaderNamed("X-Api-Key"), ration.QueryNamed("access_token")} {
		client := &http.Client{Transport: &ration.Transport{Base: w.base, Attach: attach, Pool: ration.NewPool(w.budget, w.token)}}
		resp := get(t, client, w.URL)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		_, granted := ration.GrantOf(resp)
		require.False(t, granted)
	}
	require.Len(t, seen, 3)
	require.NotContains(t, fmt.Sprint(seen), "SECRET")
	w.requireSpent(t, 3)
}
