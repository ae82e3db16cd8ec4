package ration_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// llm is a Provider whose answers say what they have used, at the end of a stream or in a header.
func llm() *ration.Provider {
	return &ration.Provider{
		Spent: func(resp *http.Response) map[string]int {
			if resp.StatusCode == http.StatusNotModified {
				return map[string]int{"": 0, "tokens": 0, "images": 3}
			}
			return nil
		},
		SpentInBody: func(_ *http.Response, body []byte) map[string]int {
			var n int
			at := bytes.LastIndex(body, []byte("used "))
			if at < 0 {
				return nil
			}
			_, _ = fmt.Sscanf(string(body[at:]), "used %d", &n)
			return map[string]int{"tokens": n}
		},
	}
}

func TestATransportSettlesWhatAResponseSays(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = perMinuteOfTokens(10, 1000)
		token, status, body := ration.NewToken("a"), http.StatusOK, ""
		client := &http.Client{Transport: &ration.Transport{
			Pool: ration.NewPool(b, token), Provider: llm(), Units: func(*http.Request) map[string]int { return map[string]int{"tokens": 300} },
			Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
				return rationtest.Respond(req, status, body, nil), nil
			})}}
		get := func(read bool) ration.Grant {
			resp, err := client.Get("http://api.test/")
			require.NoError(t, err)
			if read {
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, body, string(got))
			}
			require.NoError(t, resp.Body.Close())
			synctest.Wait()
			grant, found := ration.GrantOf(resp)
			require.True(t, found)
			return grant
		}

		status = http.StatusNotModified
		require.Zero(t, get(true).Cost)
		rationtest.RequireRemaining(t, b, token, 10, 1000)
		status, body = http.StatusOK, strings.Repeat("x", 100_000)+"used 40."
		get(true)
		rationtest.RequireRemaining(t, b, token, 9, 960)
		grant := get(false)
		rationtest.RequireRemaining(t, b, token, 8, 660)
		require.NoError(t, grant.Settle(t.Context(), map[string]int{"tokens": 100}), "of what it has not read the caller may know more")
		rationtest.RequireRemaining(t, b, token, 8, 860)
		body = "it does not say"
		get(true)
		rationtest.RequireRemaining(t, b, token, 7, 560)
		status, body = http.StatusBadRequest, "used 10."
		get(true)
		rationtest.RequireRemaining(t, b, token, 6, 260)
	})
}

// After ten answers requests of a model book what 95 of 100 have used.
func TestUnitsAreEstimatedByWhatRequestsHaveUsed(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits, b.EstimateBy = perMinuteOfTokens(1000, 100_000), "model"
		token := ration.NewToken("a")
		take := func(model string) ration.Grant {
			ctx := ration.WithKey(ration.WithUnits(t.Context(), map[string]int{"tokens": 4000}), "model", model)
			grant, err := b.Wait(ctx, token, 1)
			require.NoError(t, err)
			return grant
		}
		for range 10 {
			require.NoError(t, take("small").Settle(t.Context(), map[string]int{"tokens": 100}))
		}
		rationtest.RequireRemaining(t, b, token, 990, 99_000)
		take("small")
		rationtest.RequireRemaining(t, b, token, 989, 99_000-104)
		take("large")
		rationtest.RequireRemaining(t, b, token, 988, 99_000-104-4000)
		take("")
		rationtest.RequireRemaining(t, b, token, 987, 99_000-104-8000)
		_, err := b.Wait(ration.WithKey(t.Context(), "model", "other"), token, 1)
		require.ErrorContains(t, err, "a limit counts tokens")
		_, err = b.Wait(ration.WithKey(t.Context(), "model", "small"), token, 1)
		require.NoError(t, err, "that is known")
	})
}

// 12,000 answers of 304 cost nothing of the hour; of the points of a minute they do.
func TestAnswersThatAreFreeAreNotCharged(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		p := rationtest.Preset(t, "github")
		b.Limits = slices.DeleteFunc(slices.Clone(p.Limits), func(l ration.Limit) bool { return l.Unit != "" })
		const calls, workers, took = 12_000, 16, 100 * time.Millisecond
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, ration.NewToken("a")), Provider: p,
			Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
				time.Sleep(took)
				return rationtest.Respond(req, http.StatusNotModified, "", []string{"X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4999",
					"X-RateLimit-Resource", "core"}), nil
			})}}
		begun := time.Now()
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for range calls / workers {
					resp, err := client.Get("https://api.github.com/user")
					if assert.NoError(t, err) {
						assert.NoError(t, resp.Body.Close())
					}
				}
			})
		}
		all.Wait()
		require.Less(t, time.Since(begun), calls/workers*took*11/10)
	})
}
