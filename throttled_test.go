package ration_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

func TestThrottledRequestIsRetriedWhenThePauseIsOver(t *testing.T) {
	// A bubble begins at 2000-01-01 00:00:00 UTC.
	for _, row := range []struct {
		name   string
		header []string
		most   time.Duration // MaxCooldown
		want   time.Duration
	}{
		{"seconds", []string{"Retry-After", "90"}, 0, 90 * time.Second},
		{"spaces around", []string{"Retry-After", "  90\t"}, 0, 90 * time.Second},
		{"fraction", []string{"Retry-After", "1.5"}, 0, 1500 * time.Millisecond},
		{"fraction finer than a store counts", []string{"Retry-After", "0.0000019"}, 0, 2 * time.Microsecond},
		{"sign", []string{"Retry-After", "+5"}, 0, 5 * time.Second},
		{"unit", []string{"Retry-After", "5s"}, 0, 5 * time.Second},
		{"two headers, of which the longer counts", []string{"Retry-After", "120", "Retry-After", "5"}, 0, 2 * time.Minute},
		{"date", []string{"Retry-After", "Sat, 01 Jan 2000 00:02:00 GMT"}, 0, 2 * time.Minute},
		{"date of RFC 850", []string{"Retry-After", "Saturday, 01-Jan-00 00:02:00 GMT"}, 0, 2 * time.Minute},
		{"date of asctime", []string{"Retry-After", "Sat Jan  1 00:02:00 2000"}, 0, 2 * time.Minute},
		{"date without a zone", []string{"Retry-After", "2000-01-01 00:02:00"}, 0, 2 * time.Minute},
		{"date that never comes", []string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, 0, time.Hour},
		{"longer than an hour", []string{"Retry-After", "3601"}, 0, time.Hour},
		{"longer than MaxCooldown", []string{"Retry-After", "90"}, time.Minute, time.Minute},
		{"as MaxCooldown allows", []string{"Retry-After", "7200"}, 3 * time.Hour, 2 * time.Hour},
		{"more than a Duration holds", []string{"Retry-After", "9223372037"}, 0, time.Hour},
		{"a year of milliseconds", []string{"Retry-After", "31536000000"}, 0, time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := rationtest.NewAPI(rationtest.Throttling(1, row.header...))
				pool := ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))
				client := &http.Client{Transport: &ration.Transport{Base: api, Pool: pool, MaxCooldown: row.most}}
				resp := rationtest.Get(t, client, "http://api.test/")
				require.Equal(t, http.StatusOK, resp.StatusCode)
				require.Equal(t, []time.Duration{0, row.want}, api.Times())
			})
		})
	}
}

// Without a Retry-After that can be understood, cooldowns are 1, 2, 4 and 8 seconds, and up to a quarter more. They cost the request
// no retry.
func TestRefusalWithoutAWaitPausesLongerEachTime(t *testing.T) {
	for _, row := range []struct {
		name   string
		header []string
	}{
		{"not said", nil},
		{"empty", []string{"Retry-After", ""}},
		{"negative", []string{"Retry-After", "-5"}},
		{"nothing", []string{"Retry-After", "0"}},
		{"date that has passed", []string{"Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT"}},
		{"more than anybody means", []string{"Retry-After", "9999999999999999999999999999999999999999"}},
		{"two values", []string{"Retry-After", "120, 5"}},
		{"exponent", []string{"Retry-After", "1e9"}},
		{"hexadecimal", []string{"Retry-After", "0x10"}},
		{"not a number", []string{"Retry-After", "NaN"}},
		{"infinity", []string{"Retry-After", "Inf"}},
		{"two points", []string{"Retry-After", "1.2.3"}},
		{"words", []string{"Retry-After", "soon"}},
		{"longer than any number", []string{"Retry-After", "00000000000000000000000000000000000000000005"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := rationtest.NewAPI(rationtest.Throttling(4, row.header...))
				budget := rationtest.NewBudget(ration.PerHour(100))
				kept := &rationtest.PauseLog{Store: budget.Store}
				budget.Store = kept
				transport := &ration.Transport{Base: api, Pool: ration.NewPool(budget, ration.NewToken("a"))}
				resp := rationtest.Get(t, &http.Client{Transport: transport}, "http://api.test/")
				require.Equal(t, http.StatusOK, resp.StatusCode)

				require.Len(t, kept.Lengths, 5)
				require.Zero(t, kept.Lengths[4], "that it was served ends the last")
				at := []time.Duration{0}
				for i, length := range kept.Lengths[:4] {
					about := time.Second << i
					require.GreaterOrEqual(t, length, about/2)
					require.LessOrEqual(t, length, about+about/2)
					at = append(at, at[i]+length)
				}
				require.Equal(t, at, api.Times())
			})
		})
	}
}

func TestPausesWithoutARetryAfterAreCappedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(rationtest.Throttling(1))
		client := &http.Client{Transport: &ration.Transport{Base: api, MaxCooldown: 100 * time.Millisecond,
			Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))}}
		rationtest.Get(t, client, "http://api.test/")
		require.Equal(t, []time.Duration{0, 100 * time.Millisecond}, api.Times())
	})
}

func TestOtherTokenIsUsedAtOnceAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "1800"))
		budget, both := rationtest.NewBudget(ration.Limit{Max: 2, Window: time.Hour}), rationtest.Tokens("a", "b")
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(budget, both...)}}
		for range 4 {
			rationtest.Get(t, client, "http://api.test/")
		}
		// X is refused, Y serves twice; X has one call left when its pause
		// ends; then both have room when their hour is over.
		calls := api.Calls()
		x, y := calls[0].Token, calls[1].Token
		require.NotEqual(t, x, y)
		require.Equal(t, []string{x, y, y, x, calls[4].Token}, api.Tokens())
		require.Equal(t, rationtest.Seconds(0, 0, 0, 1800, 3600), api.Times())
	})
}

// The whole fleet keeps the pause: each worker has a Budget value of its own, and
// those that are asleep when it begins have earlier slots.
func TestPauseHoldsBackTheFleetAlsoThoseAsleep(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{{Max: 1, Window: time.Minute}}
		theirs := rationtest.Peer(ours)
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			if n == 2 {
				return rationtest.Respond(req, http.StatusTooManyRequests, "", []string{"Retry-After", "600"}), nil
			}
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		token := ration.NewToken("a")
		us := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(ours, token)}}
		them := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(theirs, token)}}
		var callers sync.WaitGroup
		book := func(client *http.Client, path string) {
			callers.Go(func() { rationtest.Get(t, client, "http://api.test/"+path) })
			<-time.After(time.Second) // so that the next books after it
		}
		book(us, "1")
		book(us, "2")   // has the slot at 60 s, and is refused
		book(them, "3") // asleep till 120 s when the pause of 10 min begins
		book(us, "4")   // asleep till 180 s
		<-time.After(100 * time.Second)
		book(them, "5") // comes while the pause is on
		callers.Wait()
		require.Equal(t, rationtest.Seconds(0, 60, 660, 720, 780, 840), api.Times())
	})
}

func TestAPauseBeyondMaxWaitIsAnErrorAndHoldsNobodyElseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "60"))
		budget, all := rationtest.NewBudget(ration.PerHour(100)), rationtest.Tokens("a", "b")
		pool := ration.NewPool(budget, all[0])
		transport := &ration.Transport{Base: api, Pool: pool, Retries: ration.RetryPolicy{Max: -1}}
		rationtest.Get(t, &http.Client{Transport: transport}, "http://api.test/")
		usage, err := budget.Usage(t.Context(), all[0])
		require.NoError(t, err)
		require.Equal(t, time.Minute, usage.PausedUntil.Sub(usage.Now))
		usage, err = budget.Usage(t.Context(), all[1])
		require.NoError(t, err)
		require.Zero(t, usage.PausedUntil)
		_, err = budget.Wait(t.Context(), all[1], 1)
		require.NoError(t, err)
		require.Zero(t, time.Since(api.Begun))
	})
}

// Retries is how often, and each time is a booking; then the caller has the
// provider's own answer.
// A refusal that its account's cooldown explains costs no retry: a request waits for as long as Within lets it, unless it is never to be
// tried again.
func TestAThrottledRequestIsRetriedWithin(t *testing.T) {
	for _, row := range []struct{ retries, want int }{{0, 6}, {1, 6}, {5, 6}, {-1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			api := rationtest.NewAPI(rationtest.Throttling(100, "Retry-After", "60", "X-Request-Id", "17"))
			budget, token := rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a")
			var refused []int
			transport := &ration.Transport{Base: api, Pool: ration.NewPool(budget, token), Retries: ration.RetryPolicy{Max: row.retries, Within: 5*time.Minute + 30*time.Second},
				OnRefusal: func(resp *http.Response, g ration.Grant) {
					require.Equal(t, token.ID(), g.Token.ID())
					refused = append(refused, resp.StatusCode)
				}}
			resp, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
			require.NoError(t, err)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			require.Equal(t, "17", resp.Header.Get("X-Request-Id"))
			require.Equal(t, "slow down", rationtest.Drain(t, resp))
			require.Len(t, api.Calls(), row.want)
			require.Len(t, refused, row.want)
			require.Equal(t, time.Duration(row.want-1)*time.Minute, time.Since(api.Begun))
			rationtest.RequireRemaining(t, budget, token, 100-row.want)
		})
	}
}

func TestOtherStatusesAreNotRefusals(t *testing.T) {
	for _, status := range []int{202, 304, 400, 401, 404, 501, 505} {
		synctest.Test(t, func(t *testing.T) {
			api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
				return rationtest.Respond(req, status, "as it is", []string{"Retry-After", "60"}), nil
			})
			client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(9)), ration.NewToken("a"))}}
			require.Equal(t, status, rationtest.Get(t, client, "http://api.test/").StatusCode)
			rationtest.Get(t, client, "http://api.test/")
			require.Equal(t, rationtest.Seconds(0, 0), api.Times())
		})
	}
}
