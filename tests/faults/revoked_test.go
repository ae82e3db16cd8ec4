package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

const tokenIsDead = `{"error":"invalid_token","error_description":"The access token was revoked"}`

// requireAllAside fails unless the error names each token, why it is set aside, and
// when it is tried again; and shows no secret.
func requireAllAside(t *testing.T, err error, all []ration.Token) map[string]time.Time {
	t.Helper()
	require.ErrorIs(t, err, ration.ErrNoToken)
	none, is := errors.AsType[*ration.NoTokenError](err)
	require.True(t, is)
	require.Equal(t, "test", none.Budget)
	require.Len(t, none.Tokens, len(all))
	until := make(map[string]time.Time)
	for _, aside := range none.Tokens {
		require.Equal(t, provider.ReasonDeadToken, aside.Reason)
		require.True(t, aside.Until.After(time.Now()))
		require.ErrorContains(t, err, string(aside.Reason))
		until[aside.ID] = aside.Until
	}
	for _, token := range all {
		require.Contains(t, until, token.ID())
		require.ErrorContains(t, err, token.ID())
	}
	require.NotContains(t, err.Error(), "SECRET")
	return until
}

// Each caller has the provider's response until 20 requests have shown that no token is valid. Then
// the caller is told of all of them, and nothing is sent.
func TestAllTokensRevoked(t *testing.T) {
	secrets := []string{"SECRET1", "SECRET2", "SECRET3"}
	var bodies []string
	w := newJudgedWire(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(content))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, tokenIsDead)
	})
	all := rationtest.Tokens(secrets...)
	client := &http.Client{Transport: &ration.Transport{Base: w.Base, Pool: ration.NewPool(w.Budget, all...)}}
	for range 20 {
		resp, err := client.Post(w.URL, "text/plain", strings.NewReader("content"))
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
		_ = resp.Body.Close()
	}
	for range 3 {
		resp, err := client.Post(w.URL, "text/plain", strings.NewReader("content"))
		require.Nil(t, resp)
		requireAllAside(t, err, all)
		for _, secret := range secrets {
			w.oracle.requireArrivals(t, "Bearer "+secret, 20)
		}
	}
	require.Len(t, bodies, 60)
	require.Equal(t, []string{"content"}, slices.Compact(bodies))
}

// In an hour of asking every second a revoked token is tried now and then, and never
// before the moment that the caller was told. One that is good again is used again.
func TestRevokedTokensAreNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revived atomic.Bool
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			if revived.Load() {
				return rationtest.Respond(req, http.StatusOK, "welcome", nil), nil
			}
			return rationtest.Respond(req, http.StatusUnauthorized, tokenIsDead, []string{"Content-Type", "application/json"}), nil
		})
		all := rationtest.Tokens("SECRET1", "SECRET2", "SECRET3")
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(10_000)), all...)}}
		ask := func() error {
			ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer stop()
			resp, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil).WithContext(ctx))
			if err == nil {
				rationtest.Drain(t, resp)
			}
			return err
		}
		tries := make(map[string]int)
		notBefore := make(map[string]time.Time)
		looked := 0
		for time.Since(api.Begun) < time.Hour {
			err := ask()
			if err == nil {
				<-time.After(time.Second)
				continue // some were tried
			}
			until := requireAllAside(t, err, all)
			for _, c := range api.Calls()[looked:] {
				id := ration.NewToken(c.Token).ID()
				tries[id]++
				require.False(t, api.Begun.Add(c.At).Before(notBefore[id]), "token %s was tried at %v", id, c.At)
				looked++
			}
			notBefore = until
			<-time.After(time.Second)
		}
		require.Len(t, tries, 3)
		for id, n := range tries {
			require.LessOrEqual(t, n, 20+12, "token %s was tried more often than after 1, 2, 4, ... s", id)
		}

		revived.Store(true)
		for ask() != nil {
			require.Less(t, time.Since(api.Begun), 3*time.Hour, "a token that is good again is found")
			<-time.After(time.Second)
		}
		require.NoError(t, ask())
	})
}
