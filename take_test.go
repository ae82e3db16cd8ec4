package ration_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A request whose endpoint is paused on one token does not book a slot of another that
// comes later than the end of that pause.
func TestAShortPauseIsNotGoneRoundByALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newProvider(func(n int, req *http.Request) (*http.Response, error) {
			if n == 2 {
				return respond(req, 429, "{}", []string{"Content-Type", "application/json", "Retry-After", "5"}), nil
			}
			return respond(req, 200, "{}", nil), nil
		})
		budget, both := newBudget(ration.PerHour(1)), tokens("a", "b")
		both[1].Limits = []ration.Limit{ration.PerHour(100)}
		p := preset(t, "x")
		spent := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(budget, both[0])}}
		get(t, spent, "http://api.test/2/users/1")
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(budget, both...)}}
		get(t, client, "http://api.test/2/users/2")
		require.Equal(t, []string{"a", "b", "b"}, api.tokens())
		require.Equal(t, seconds(0, 0, 5), api.times())
	})
}

// An answer that names an endpoint's bucket and not whose is about that of the preset's
// holder, here the token.
func TestABucketIsTheTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newProvider(func(n int, req *http.Request) (*http.Response, error) {
			left := "4"
			if n == 1 {
				left = "0"
			}
			return respond(req, 200, "{}", []string{"X-RateLimit-Limit", "5", "X-RateLimit-Remaining", left,
				"X-RateLimit-Reset-After", "60", "X-RateLimit-Bucket", "abcd"}), nil
		})
		p := preset(t, "discord")
		p.Attach = nil
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p,
			Pool: ration.NewPool(newBudget(ration.PerHour(100)), tokens("a", "b")...)}}
		for range 3 {
			get(t, client, "http://api.test/channels/1/messages")
		}
		of := api.tokens()
		require.Equal(t, []time.Duration{0, 0, 0}, api.times())
		require.Equal(t, of[1], of[2])
		require.NotEqual(t, of[0], of[1])
	})
}
