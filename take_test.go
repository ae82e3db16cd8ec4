package ration_test

import (
	"net/http"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A request whose endpoint is paused on one token does not book a slot of another that
// comes later than the end of that pause.
func TestAShortPauseIsNotGoneRoundByALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			if n == 2 {
				return rationtest.Respond(req, 429, "{}", []string{"Content-Type", "application/json", "Retry-After", "5"}), nil
			}
			return rationtest.Respond(req, 200, "{}", nil), nil
		})
		budget, both := rationtest.NewBudget(ration.PerHour(1)), rationtest.Tokens("a", "b")
		both[1].Limits = []ration.Limit{ration.PerHour(100)}
		p := rationtest.Preset(t, "x")
		spent := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(budget, both[0])}}
		rationtest.Get(t, spent, "http://api.test/2/users/1")
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p, Pool: ration.NewPool(budget, both...)}}
		rationtest.Get(t, client, "http://api.test/2/users/2")
		require.Equal(t, []string{"a", "b", "b"}, api.Tokens())
		require.Equal(t, rationtest.Seconds(0, 0, 5), api.Times())
	})
}

// An answer that names an endpoint's bucket and not whose is about that of the preset's
// holder, here the token.
func TestABucketIsTheTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			left := "4"
			if n == 1 {
				left = "0"
			}
			return rationtest.Respond(req, 200, "{}", []string{"X-RateLimit-Limit", "5", "X-RateLimit-Remaining", left,
				"X-RateLimit-Reset-After", "60", "X-RateLimit-Bucket", "abcd"}), nil
		})
		p := rationtest.Preset(t, "discord")
		p.Attach = nil
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p,
			Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), rationtest.Tokens("a", "b")...)}}
		for range 3 {
			rationtest.Get(t, client, "http://api.test/channels/1/messages")
		}
		of := api.Tokens()
		require.Equal(t, []time.Duration{0, 0, 0}, api.Times())
		require.Equal(t, of[1], of[2])
		require.NotEqual(t, of[0], of[1])
	})
}
