package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// In this file are the faults by which a fleet would stand still.

// hostileWaits are values of Retry-After that no provider means.
var hostileWaits = []string{
	"1e12", "1000000000000", "9223372037", "9223372036854775808", "-5", "-9223372037", "NaN", "Inf", "-Inf", "0x7fffffff", "120, 5",
	strings.Repeat("9", 1<<20), strings.Repeat("5,", 1<<19), "0." + strings.Repeat("0", 1<<20) + "1",
	"Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT",
	"", " ", "\x00", "\xff\xfe", "soon", "1 year", "99999h", "-99999h", "9999999999999d", "P9999Y",
}

// requireBoundedPause refuses the first request with the values of Retry-After, and
// fails unless the pause is from nothing to MaxCooldown, and over then for the fleet.
func requireBoundedPause(t *testing.T, values ...string) {
	t.Helper()
	const most = time.Minute
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			if n > 1 {
				return rationtest.Respond(req, http.StatusOK, "welcome", nil), nil
			}
			resp := rationtest.Respond(req, http.StatusTooManyRequests, "slow down", nil)
			resp.Header["Retry-After"] = values
			return resp, nil
		})
		ours := rationtest.NewBudget(ration.PerHour(100))
		store := &rationtest.PauseLog{Store: ours.Store}
		ours.Store = store
		theirs := &ration.Budget{Name: ours.Name, Limits: ours.Limits, Store: ours.Store, Margin: ours.Margin}
		for _, b := range []*ration.Budget{ours, theirs} {
			client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, ration.NewToken("a")), MaxCooldown: most}}
			resp := rationtest.Get(t, client, "http://api.test/")
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.LessOrEqual(t, time.Since(api.Begun), most+most/16) // and two steps of the slow start
		}
		require.LessOrEqual(t, len(store.Lengths), 1)
		for _, length := range store.Lengths {
			require.GreaterOrEqual(t, length, time.Duration(0))
			require.LessOrEqual(t, length, most)
		}
		require.Len(t, api.Calls(), 3)
	})
}

func TestHostileRetryAfterFreezesNobody(t *testing.T) {
	for _, value := range hostileWaits {
		t.Run(fmt.Sprintf("%.30q", value), func(t *testing.T) {
			requireBoundedPause(t, value)
			requireBoundedPause(t, value, "120")
			requireBoundedPause(t, "0", value)
		})
	}
}

// Whatever a provider sends as Retry-After, the pause is bounded.
//
//	go test -run '^$' -fuzz FuzzRetryAfter -fuzztime 10m ./tests/faults
func FuzzRetryAfter(f *testing.F) {
	for _, value := range hostileWaits {
		f.Add(value[:min(len(value), 1<<10)], "")
		f.Add("5", value[:min(len(value), 1<<10)])
	}
	f.Fuzz(func(t *testing.T, one, other string) { requireBoundedPause(t, one, other) })
}

func TestSlotBeyondTheDeadlineIsRefusedAtOnceAndBooksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(nil)
		budget := rationtest.NewBudget(ration.Limit{Max: 1, Window: 40 * time.Minute})
		budget.Name = "instagram"
		token := ration.NewToken("a")
		client := &http.Client{
			Transport: &ration.Transport{Base: api, Pool: ration.NewPool(budget, token)},
			Timeout:   30 * time.Second,
		}
		rationtest.Get(t, client, "http://api.test/")
		before, err := budget.Usage(t.Context(), token)
		require.NoError(t, err)

		_, err = client.Get("http://api.test/")
		require.EqualError(t, err, `Get "http://api.test/": ration: budget "instagram": the next slot is in 40m0s, `+
			`the deadline allows 30s: give the context (or http.Client.Timeout, which counts the wait) more time; the quota of 1/40m is spent`)
		require.ErrorIs(t, err, ration.ErrExhausted)
		exhausted, found := errors.AsType[*ration.ExhaustedError](err)
		require.True(t, found)
		require.Equal(t, 40*time.Minute, exhausted.RetryAfter)
		require.Equal(t, 30*time.Second, exhausted.Allowed)
		require.True(t, exhausted.Deadline)

		require.Zero(t, time.Since(api.Begun))
		require.Equal(t, rationtest.Seconds(0), api.Times())
		after, err := budget.Usage(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

// Who stops waiting is let go in the same moment, and its slot goes to the next. The
// bubble would not end if a goroutine were left.
func TestCancelWhileWaitingHandsTheSlotToTheNext(t *testing.T) {
	why := errors.New("the operator said stop")
	for _, row := range []struct {
		name  string
		stops func(context.Context) context.Context // in 20 s
		want  []error
	}{
		{"cancelled", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(20*time.Second, cancel)
			return ctx
		}, []error{context.Canceled}},
		{"cancelled for a cause", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(20*time.Second, func() { cancel(why) })
			return ctx
		}, []error{context.Canceled, why}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := rationtest.NewAPI(nil)
				pool := ration.NewPool(rationtest.NewBudget(ration.Limit{Max: 1, Window: time.Minute}), ration.NewToken("a"))
				transport := &ration.Transport{Base: api, Pool: pool}
				client := &http.Client{Transport: transport}
				rationtest.Get(t, client, "http://api.test/first")

				content := rationtest.NewBody("content")
				req := rationtest.NewRequest(t, http.MethodPost, "http://api.test/cancelled", content).WithContext(row.stops(t.Context()))
				_, err := transport.RoundTrip(req)
				for _, want := range row.want {
					require.ErrorIs(t, err, want)
				}
				require.Equal(t, 20*time.Second, time.Since(api.Begun))
				require.Equal(t, 1, content.Closed)

				rationtest.Get(t, client, "http://api.test/next")
				calls := api.Calls()
				require.Len(t, calls, 2)
				require.Equal(t, "http://api.test/next", calls[1].URL)
				require.Equal(t, time.Minute, calls[1].At)
			})
		})
	}
}

// A refusal whose body never ends is given up after a while, by who sends again and by
// who has it, and nothing is left of it.
func TestEndlessRefusalHoldsNobodyUp(t *testing.T) {
	endless := map[string]func(http.ResponseWriter, *http.Request){
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"dribbling": func(w http.ResponseWriter, r *http.Request) {
			beat := time.NewTicker(5 * time.Millisecond)
			defer beat.Stop()
			for r.Context().Err() == nil {
				fmt.Fprint(w, "s")
				_ = http.NewResponseController(w).Flush()
				<-beat.C
			}
		},
		"torrential": func(w http.ResponseWriter, r *http.Request) {
			for page := strings.Repeat("slow down ", 1000); r.Context().Err() == nil; {
				fmt.Fprint(w, page)
			}
		},
	}
	for name, body := range endless {
		for _, retries := range []int{1, -1} {
			t.Run(fmt.Sprint(name, " ", retries), func(t *testing.T) {
				var calls, ended atomic.Int64
				w := newJudgedWire(t, func(w http.ResponseWriter, r *http.Request) {
					if calls.Add(1) > 1 {
						fmt.Fprint(w, "welcome")
						return
					}
					w.Header().Set("Retry-After", "0.05")
					w.WriteHeader(http.StatusTooManyRequests)
					_ = http.NewResponseController(w).Flush()
					body(w, r)
					ended.Add(1)
				})
				before := runtime.NumGoroutine()
				client := &http.Client{Transport: &ration.Transport{Base: w.Base, Pool: ration.NewPool(w.Budget, w.Token), Retries: ration.RetryPolicy{Max: retries}}}
				begun := time.Now()
				resp, err := client.Get(w.URL)
				require.NoError(t, err)
				require.Less(t, time.Since(begun), 20*time.Second, "2 s of waiting for the body, and what a busy machine needs")
				if retries > 0 {
					require.Equal(t, "welcome", rationtest.Drain(t, resp))
					w.requireBookings(t, 2)
				} else {
					require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
					if name != "silent" {
						_, err = resp.Body.Read(make([]byte, 1))
						require.NoError(t, err)
					}
					require.NoError(t, resp.Body.Close())
					w.requireBookings(t, 1)
				}
				require.Eventually(t, func() bool { return ended.Load() == 1 }, 20*time.Second, time.Millisecond, "the connection was closed")
				w.Base.CloseIdleConnections()
				requireGoroutines(t, before)
			})
		}
	}
}
