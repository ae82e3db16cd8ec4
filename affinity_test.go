package ration_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

func labelled(secrets ...string) (all []ration.Token) {
	for _, secret := range secrets {
		token := ration.NewToken(secret)
		token.Label = "of " + secret
		all = append(all, token)
	}
	return all
}

// A conversation stays with its token as long as that is not too late, and goes to the best one otherwise.
func TestAffinity(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 5, Window: time.Minute}}
		pool := ration.NewPool(b, labelled("a", "b", "c")...)
		took := func(key string, patience time.Duration) (label string, waited time.Duration) {
			began := time.Now()
			g, err := pool.Take(ration.WithAffinity(t.Context(), key, patience), 1)
			require.NoError(t, err)
			return g.Token.Label, time.Since(began)
		}
		began := time.Now()
		first, _ := took("talk", 10*time.Second)
		for range 4 {
			time.Sleep(time.Second)
			again, waited := took("talk", 10*time.Second)
			require.Equal(t, first, again)
			require.Zero(t, waited)
		}
		other, waited := took("talk", 10*time.Second)
		require.NotEqual(t, first, other, "its token is spent for 56 s, and others are free")
		require.Zero(t, waited)
		again, _ := took("talk", 10*time.Second)
		require.Equal(t, other, again, "which serves it from then on")

		patient, waited := took("long", time.Minute)
		for range 4 {
			same, now := took("long", time.Minute)
			require.Equal(t, patient, same)
			waited += now
		}
		same, now := took("long", time.Minute)
		require.Equal(t, patient, same)
		require.Positive(t, waited+now, "it waits for its own")

		// All are spent: the best is about as late as its own.
		for time.Since(began) < 2*time.Minute {
			_, err := b.Try(t.Context(), labelled("a")[0], 1)
			_, other := b.Try(t.Context(), labelled("b")[0], 1)
			_, third := b.Try(t.Context(), labelled("c")[0], 1)
			if err != nil && other != nil && third != nil {
				break
			}
		}
		last, _ := took("late", 0)
		for range 4 {
			same, _ := took("late", time.Minute)
			require.Equal(t, last, same)
		}
	})
}

// Only the tokens that a request names serve it.
func TestOnlyTheNamedTokensServe(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 2, Window: time.Minute}}
		pool := ration.NewPool(b, labelled("a", "b", "c")...)
		api := rationtest.NewAPI(func(int, *http.Request) (*http.Response, error) { return rationtest.Served.To(nil), nil })
		client := &http.Client{Transport: &ration.Transport{Pool: pool, Base: api}}
		began := time.Now()
		served := make(map[string]int)
		for n := range 8 {
			req := rationtest.NewRequest(t, "GET", fmt.Sprint("https://api.example/", n), nil)
			resp, err := client.Do(req.WithContext(ration.WithTokens(t.Context(), "of c", "of a")))
			require.NoError(t, err)
			g, _ := ration.GrantOf(resp)
			served[g.Token.Label]++
		}
		require.Equal(t, map[string]int{"of a": 4, "of c": 4}, served)
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		g, err := pool.Take(ration.WithTokens(t.Context(), "of b"), 1)
		require.NoError(t, err)
		require.Equal(t, "of b", g.Token.Label)

		_, err = pool.Take(ration.WithTokens(t.Context(), "of d"), 1)
		require.ErrorIs(t, err, ration.ErrNoToken)
		require.ErrorContains(t, err, "none has the label of d")
		req := rationtest.NewRequest(t, "GET", "https://api.example/", nil)
		_, err = client.Do(req.WithContext(ration.WithTokens(t.Context(), "of d", "of e")))
		require.ErrorIs(t, err, ration.ErrNoToken)
		require.ErrorContains(t, err, "none has the label of d or of e")
	})
}

// Callers that ask for one token, or for different keys, stand in few lines, and none is skipped.
func TestAffinityUnderLoad(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 10, Window: 10 * time.Second}}
		pool := ration.NewPool(b, labelled("a", "b", "c", "d")...)
		type got struct{ key, label string }
		done := make(chan got)
		const keys, each = 40, 10
		began := time.Now()
		for key := range keys {
			go func() {
				for range each {
					g, err := pool.Take(ration.WithAffinity(t.Context(), fmt.Sprint(key), 15*time.Second), 1)
					if err != nil {
						t.Error(err)
					}
					done <- got{fmt.Sprint(key), g.Token.Label}
				}
			}()
		}
		stays, last := 0, make(map[string]string)
		for range keys * each {
			one := <-done
			if last[one.key] == one.label {
				stays++
			}
			last[one.key] = one.label
		}
		require.Less(t, time.Since(began), 150*time.Second, "400 calls at 4 a second, some of which prefer a token that is busy for 15 s")
		require.Greater(t, stays, keys*each*3/4, "most are served by the token that has served them before")
	})
}
