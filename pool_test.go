package ration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"net/http"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// Many tokens are put into a pool, and removed, in a time that grows with their number.
func BenchmarkNewPool(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var tokens []ration.Token
			for i := range n {
				tokens = append(tokens, ration.NewToken(fmt.Sprint("token-", i)))
			}
			for b.Loop() {
				p := ration.NewPool(rationtest.NewBudget(ration.PerHour(5000)), tokens...)
				if _, err := p.Take(b.Context(), 1); err != nil {
					b.Fatal(err)
				}
				p.Remove(tokens[1:]...)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/token")
		})
	}
}

// Of a token that is given twice the last one counts.
func TestATokenThatIsGivenTwiceCountsOnce(t *testing.T) {
	one, again := ration.NewToken("a"), ration.NewToken("a")
	again.Label = "the last"
	p := ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), one, ration.NewToken("b"), again)
	require.Len(t, p.Tokens(), 2)
	require.Equal(t, "the last", p.Tokens()[1].Label)
	p.Add(one)
	require.Empty(t, p.Tokens()[1].Label)
	p.Remove(one)
	require.Len(t, p.Tokens(), 1)
}

// take takes one unit and returns whose token it got.
func take(t *testing.T, pool *ration.Pool, names map[string]string) string {
	t.Helper()
	grant, err := pool.Take(t.Context(), 1)
	require.NoError(t, err)
	name, found := names[grant.Token.ID()]
	require.True(t, found, "a token of the pool")
	return name
}

// naming returns the tokens' names by their IDs.
func naming(all ...ration.Token) map[string]string {
	names := make(map[string]string)
	for i, t := range all {
		names[t.ID()] = string(rune('a' + i))
	}
	return names
}

func limited(secret string, limits ...ration.Limit) ration.Token {
	t := ration.NewToken(secret)
	t.Limits = limits
	return t
}

func TestTakeWaitsForTheTokenThatIsFreeFirst(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{rationtest.Every(10)}
		fast, slow := ration.NewToken("fast"), limited("slow", rationtest.Every(25))
		pool, names, begun := ration.NewPool(b, fast, slow), naming(fast, slow), time.Now()
		type taken struct {
			at   time.Duration
			name string
		}
		var got []taken
		for range 8 {
			name := take(t, pool, names)
			got = append(got, taken{time.Since(begun) / time.Second, name})
		}
		// Of two that are free at 0 and at 50 the order is the store's.
		require.ElementsMatch(t, []taken{{0, "a"}, {0, "b"}}, got[:2])
		require.Equal(t, []taken{{10, "a"}, {20, "a"}, {25, "b"}, {30, "a"}, {40, "a"}}, got[2:7])
		require.Equal(t, time.Duration(50), got[7].at)
	})
}

func TestTakeSpendsTheTokenThatHasRestedLongest(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100)}
		all := rationtest.Tokens("a", "b", "c")
		pool, names := ration.NewPool(b, all...), naming(all...)
		round := func() (got []string) {
			for range all {
				got = append(got, take(t, pool, names))
				<-time.After(time.Second)
			}
			return got
		}
		first := round()
		require.ElementsMatch(t, []string{"a", "b", "c"}, first)
		for range 5 {
			require.Equal(t, first, round())
		}
	})
}

func TestSpentOrPausedTokenStallsNobody(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(1000)}
		paused, spent, free := ration.NewToken("paused"), limited("spent", rationtest.Every(3600)), ration.NewToken("free")
		pool, names, begun := ration.NewPool(b, paused, spent, free), naming(paused, spent, free), time.Now()
		_, err := b.Pause(t.Context(), paused, 30*time.Minute)
		require.NoError(t, err)
		_, err = b.Wait(t.Context(), spent, 1)
		require.NoError(t, err)
		for range 1000 {
			require.Equal(t, "c", take(t, pool, names))
		}
		require.Zero(t, time.Since(begun))
		require.Equal(t, "a", take(t, pool, names), "and then it waits for the one that is free first")
		require.Equal(t, 30*time.Minute, time.Since(begun))
	})
}

func TestTokensOfOneAccountShareItsLogAndTakeTurns(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(6)}
		all := rationtest.Tokens("first", "second", "alone")
		all[0].Account, all[1].Account = "ann", "ann"
		pool, names, begun := ration.NewPool(b, all...), naming(all...), time.Now()
		left, err := pool.Remaining(t.Context())
		require.NoError(t, err)
		require.Equal(t, 12, left, "each account once")
		usage, err := pool.Usage(t.Context())
		require.NoError(t, err)
		require.Len(t, usage, 2)

		counts := make(map[string]int)
		for range 12 {
			counts[take(t, pool, names)]++
			<-time.After(time.Second)
		}
		require.Equal(t, map[string]int{"a": 3, "b": 3, "c": 6}, counts)
		require.Equal(t, 12*time.Second, time.Since(begun))
		left, err = pool.Remaining(t.Context())
		require.NoError(t, err)
		require.Zero(t, left)
		for _, token := range all {
			left, err := b.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.Zero(t, left)
		}
	})
}

func TestTokensOwnLimitsTakeThePlaceOfTheBudgets(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		better := limited("better", ration.PerHour(20), ration.PerMinute(3))
		pool := ration.NewPool(b, better)
		begun := time.Now()
		for range 7 {
			take(t, pool, naming(better))
		}
		require.Equal(t, 2*time.Minute, time.Since(begun), "and the budget may have none")
		usage, err := pool.Usage(t.Context())
		require.NoError(t, err)
		require.Equal(t, 13, usage[0].Limits[0].Remaining)
		require.Equal(t, 2, usage[0].Limits[1].Remaining)
		require.Equal(t, 2, usage[0].Remaining())
	})
}

// A cost that one token could never take goes to another, and one that none
// could is an error.
func TestCostPassesOverTokensThatCouldNeverTakeIt(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		small, large := limited("small", ration.PerHour(5)), limited("large", ration.PerHour(50))
		pool := ration.NewPool(b, small, large)
		for range 2 {
			grant, err := pool.Take(t.Context(), 20)
			require.NoError(t, err)
			require.Equal(t, large.ID(), grant.Token.ID())
		}
		_, err := pool.Take(t.Context(), 51)
		require.ErrorContains(t, err, "the cost is 51, and no limit ever admits more than 50 at once")
	})
}

func TestTakeIsRefusedAtOnceWhereTheFirstFreeTokenIsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon, late := limited("soon", rationtest.Every(60)), limited("late", rationtest.Every(3600))
		pool, begun := ration.NewPool(rationtest.NewBudget(), soon, late), time.Now()
		for range 2 {
			take(t, pool, naming(soon, late))
		}
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		_, err := pool.Take(ctx, 1)
		var exhausted *ration.ExhaustedError
		require.ErrorAs(t, err, &exhausted)
		require.Equal(t, time.Minute, exhausted.RetryAfter)
		require.Equal(t, soon.AccountID(), exhausted.Account)
		require.Zero(t, time.Since(begun))
	})
}

func TestGrantThatIsCancelledGoesToTheNext(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{rationtest.Every(60)}
		pool, begun := ration.NewPool(b, ration.NewToken("a")), time.Now()
		grant, err := pool.Take(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, grant.Cancel(t.Context()))
		require.NoError(t, grant.Cancel(t.Context()))
		_, err = pool.Take(t.Context(), 1)
		require.NoError(t, err)
		require.Zero(t, time.Since(begun))
		require.NoError(t, ration.Grant{}.Cancel(t.Context()))
	})
}

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

// The accounts that a request is not tried on again are excluded from the one index of the
// pool: each set of them would otherwise have one of its own, for a day.
func TestWhatIsRefusedToEveryTokenMakesNoOtherIndex(t *testing.T) {
	d := rationtest.NewRedisBudget(t)
	b := &ration.Budget{Name: d.Name, Limits: []ration.Limit{ration.PerHour(100)}, Store: d.Store}
	var secrets []string
	for i := range 20 {
		secrets = append(secrets, fmt.Sprint("token-", i))
	}
	api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) { return rationtest.Unauthorized.To(req), nil })
	client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, rationtest.Tokens(secrets...)...)}}
	require.Equal(t, 401, rationtest.Get(t, client, "http://api.test/private").StatusCode)
	require.Len(t, api.Tokens(), 3)
	indexes := 0
	for key := range d.Keys(t) {
		if strings.HasPrefix(key, ":pool:") {
			indexes++
		}
	}
	require.Equal(t, 1, indexes)
}
