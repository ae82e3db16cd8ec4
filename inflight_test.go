package ration_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A busyAPI counts how many calls of each kind are in flight, refuses those beyond a limit, and streams the second half of each answer.
type busyAPI struct {
	most int // zero: it refuses none
	took time.Duration
	kind func(*http.Request) string

	mu                     sync.Mutex // protects all below
	now, peak              map[string]int
	served, refused, begun int
	calls                  sync.WaitGroup
}

func (a *busyAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	kind := a.kind(req)
	a.mu.Lock()
	if a.now == nil {
		a.now, a.peak = make(map[string]int), make(map[string]int)
	}
	if a.most > 0 && a.now[kind] >= a.most {
		a.refused++
		a.mu.Unlock()
		return rationtest.Reply{Status: 429, Body: `{"error":"too many concurrent requests"}`, Header: rationtest.JSON}.To(req), nil
	}
	a.begun++
	a.now[kind]++
	a.peak[kind] = max(a.peak[kind], a.now[kind])
	a.mu.Unlock()
	time.Sleep(a.took / 2)
	resp := rationtest.Served.To(req)
	body, w := io.Pipe()
	resp.Body, resp.ContentLength = body, -1
	a.calls.Go(func() {
		time.Sleep(a.took / 2)
		_, _ = io.WriteString(w, "{}")
		a.mu.Lock()
		a.now[kind]--
		a.served++
		a.mu.Unlock()
		_ = w.Close()
	})
	return resp, nil
}

func oneKind(*http.Request) string { return "" }

// crawl has callers of several workers send so many requests each, and waits for them.
func (a *busyAPI) crawl(t *testing.T, workers []*ration.Budget, callers, each int, request func(n int) *http.Request, tokens ...ration.Token) {
	var all sync.WaitGroup
	for _, b := range workers {
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, tokens...), Base: a}}
		for caller := range callers {
			all.Go(func() {
				for n := range each {
					resp, err := client.Do(request(caller*each + n))
					if err != nil {
						t.Error(err)
						return
					}
					require.Equal(t, 200, resp.StatusCode)
					rationtest.Drain(t, resp)
				}
			})
		}
	}
	all.Wait()
	a.calls.Wait()
}

func itemsOf(t *testing.T) func(int) *http.Request {
	return func(int) *http.Request { return rationtest.NewRequest(t, "GET", "https://api.example/items", nil) }
}

// Workers whose fields say 6 at once have 6 at once, and use them.
func TestCallsInFlightAreLimitedForTheFleet(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerSecond(1000), {InFlight: 6}}
		workers := []*ration.Budget{b, rationtest.Peer(b), rationtest.Peer(b)}
		api := &busyAPI{took: 2 * time.Second, kind: oneKind}
		began := time.Now()
		api.crawl(t, workers, 10, 6, itemsOf(t), ration.NewToken("a"))
		require.Equal(t, 180, api.served)
		require.Equal(t, 6, api.peak[""])
		require.Less(t, time.Since(began), 68*time.Second, "180 calls of 2 s, 6 at once, take a minute")
	})
}

// Who has many callers gets what others do not need, and gives it back when they do.
func TestPermitsGoWhereTheyAreWanted(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerSecond(1000), {InFlight: 10}}
		api := &busyAPI{took: time.Second, kind: oneKind}
		var all sync.WaitGroup
		began := time.Now()
		all.Go(func() { api.crawl(t, []*ration.Budget{b}, 10, 30, itemsOf(t), ration.NewToken("a")) })
		time.Sleep(15 * time.Second)
		api.mu.Lock()
		begun := api.begun
		api.mu.Unlock()
		assert.InDelta(t, 150, begun, 10, "one worker alone has all of them")
		all.Go(func() {
			late := &busyAPI{took: time.Second, kind: oneKind}
			late.crawl(t, []*ration.Budget{rationtest.Peer(b)}, 10, 10, itemsOf(t), ration.NewToken("a"))
			assert.Less(t, time.Since(began), 41*time.Second, "100 calls, 5 at once")
		})
		all.Wait()
		require.Equal(t, 10, api.peak[""])
		require.Less(t, time.Since(began), 48*time.Second, "400 calls of a second, 10 at once")
	})
}

// Of a pool each account has its own, and no slot is used of one that has none left.
func TestEachAccountHasItsOwnCallsInFlight(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerMinute(1000), {InFlight: 2}}
		api := &busyAPI{most: 2, took: 10 * time.Second, kind: func(req *http.Request) string { return rationtest.SecretOf(req) }}
		began := time.Now()
		api.crawl(t, []*ration.Budget{b, rationtest.Peer(b)}, 16, 4, itemsOf(t), rationtest.Tokens("a", "b", "c", "d", "e")...)
		require.Zero(t, api.refused)
		require.Equal(t, 128, api.served)
		require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2, "d": 2, "e": 2}, api.peak)
		require.Less(t, time.Since(began), 150*time.Second, "128 calls of 10 s, 10 at once, take 130 s")
		left := 0
		for _, secret := range []string{"a", "b", "c", "d", "e"} {
			usage, err := b.Usage(t.Context(), ration.NewToken(secret))
			require.NoError(t, err)
			left += usage.Limits[0].Used
		}
		require.LessOrEqual(t, left, 128, "nothing was booked that was not sent")
	})
}

// A limit may be of a scope, or of each value of a key.
func TestCallsInFlightOfAScopeAndOfAKey(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerSecond(1000), {InFlight: 3, Per: "model"}, {InFlight: 1, Scope: "search"}, {InFlight: 5}}
		api := &busyAPI{took: time.Second, kind: func(req *http.Request) string { return req.URL.Path }}
		all := &busyAPI{took: time.Second, kind: oneKind}
		count := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			all.mu.Lock()
			if all.now == nil {
				all.now, all.peak = make(map[string]int), make(map[string]int)
			}
			api.mu.Lock()
			sum := 1
			for _, n := range api.now {
				sum += n
			}
			api.mu.Unlock()
			all.peak[""] = max(all.peak[""], sum)
			all.mu.Unlock()
			return api.RoundTrip(req)
		})
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, ration.NewToken("a")), Base: count}}
		var calls sync.WaitGroup
		began := time.Now()
		for n := range 60 {
			calls.Go(func() {
				path := []string{"/x", "/y", "/search"}[n%3]
				ctx := ration.WithKey(t.Context(), "model", path)
				if path == "/search" {
					ctx = ration.WithScopes(ration.WithKey(ctx, "model", ""), "search")
				}
				resp, err := client.Do(rationtest.NewRequest(t, "GET", "https://api.example"+path, nil).WithContext(ctx))
				require.NoError(t, err)
				rationtest.Drain(t, resp)
			})
		}
		calls.Wait()
		api.calls.Wait()
		require.Equal(t, 1, api.peak["/search"])
		require.LessOrEqual(t, max(api.peak["/x"], api.peak["/y"]), 3)
		require.Equal(t, 5, all.peak[""])
		require.Less(t, time.Since(began), 26*time.Second, "20 searches of a second, one at once, beside others")
	})
}

// Without HTTP a call is in flight until Done, or is cancelled.
func TestDone(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits, b.MaxWait = []ration.Limit{ration.PerHour(100), {InFlight: 2}}, time.Minute
		token := ration.NewToken("a")
		first, err := b.Try(t.Context(), token, 1)
		require.NoError(t, err)
		second, err := b.Try(t.Context(), token, 1)
		require.NoError(t, err)
		_, err = b.Try(t.Context(), token, 1)
		var exhausted *ration.ExhaustedError
		require.ErrorAs(t, err, &exhausted)
		require.Equal(t, rationtrace.Concurrency, exhausted.Wait.Reason)
		require.ErrorContains(t, err, "as many calls are in flight as 2/inflight allows")
		usage, err := b.Usage(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 2, usage.Limits[0].Used, "nothing was booked for the third")
		require.Equal(t, []any{"2/inflight", 2, 0}, []any{usage.Limits[1].Limit.String(), usage.Limits[1].Used, usage.Limits[1].Remaining})
		require.Equal(t, []int{98, 0}, []int{usage.Remaining(), usage.RemainingOf(store.InFlight)})

		began := time.Now()
		_, err = b.Wait(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		require.Equal(t, time.Minute, time.Since(began))
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = b.Wait(ctx, token, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		first.Done()
		first.Done()
		third, err := b.Try(t.Context(), token, 1)
		require.NoError(t, err)
		_, err = b.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		require.NoError(t, second.Cancel(t.Context()))
		fourth, err := b.Try(t.Context(), token, 1)
		require.NoError(t, err)

		waits := make(chan ration.Grant)
		go func() {
			g, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			waits <- g
		}()
		time.Sleep(3 * time.Second)
		require.Equal(t, 1, b.Counts().Waiting[rationtrace.Concurrency])
		third.Done()
		g := <-waits
		require.Equal(t, []rationtrace.Reason{rationtrace.Concurrency}, []rationtrace.Reason{g.Waits[0].Reason})
		require.Equal(t, 3*time.Second, g.Waits[0].Took)
		g.Done()
		fourth.Done()
	})
}

// A fleet that is told too many finds out how many there may be, and loses nothing.
func TestARefusalForConcurrencyLowersTheLimit(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerSecond(1000), {InFlight: 20}}
		var mu sync.Mutex
		var events []string
		b.OnEvent = func(e ration.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprint(e.Kind, " ", e.Ours, " ", e.Theirs))
		}
		api := &busyAPI{most: 5, took: time.Second, kind: oneKind}
		began := time.Now()
		api.crawl(t, []*ration.Budget{b, rationtest.Peer(b)}, 15, 10, itemsOf(t), ration.NewToken("a"))
		require.Equal(t, 300, api.served)
		require.Less(t, api.refused, 120, "each second about a fifth of what is in flight, from 20 to 5")
		require.Less(t, time.Since(began), 75*time.Second, "300 calls of a second, 5 at once, take a minute")
		require.NotEmpty(t, events)
		require.Contains(t, events[0], "20/inflight")
	})
}

// A caller that waits for a slot holds no permit, and one that waits for a permit no slot.
func TestNoPermitIsHeldForASlot(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerSecond(1000), {Max: 1, Window: time.Minute, Scope: "slow"}, {InFlight: 1}}
		token := ration.NewToken("a")
		slow := ration.WithScopes(t.Context(), "slow")
		first, err := b.Wait(slow, token, 1)
		require.NoError(t, err)
		first.Done()
		began := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			g, err := b.Wait(slow, token, 1)
			require.NoError(t, err)
			require.InDelta(t, time.Minute, time.Since(began), float64(100*time.Millisecond))
			g.Done()
		})
		time.Sleep(time.Second)
		for range 10 {
			g, err := b.Try(t.Context(), token, 1)
			require.NoError(t, err)
			time.Sleep(time.Second)
			g.Done()
		}
		all.Wait()
	})
}

// All tokens together are limited by a shared account, and each by its own limit.
func TestASharedAccountLimitsCallsInFlight(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerSecond(1000), {InFlight: 4}}
		b.Shared = []ration.SharedAccount{ration.NewSharedAccount("app", ration.Limit{InFlight: 5})}
		api := &busyAPI{took: time.Second, kind: oneKind}
		peer := rationtest.Peer(b)
		peer.Shared = b.Shared
		began := time.Now()
		api.crawl(t, []*ration.Budget{b, peer}, 8, 4, itemsOf(t), rationtest.Tokens("a", "b", "c")...)
		require.Equal(t, 64, api.served)
		require.Equal(t, 5, api.peak[""])
		require.Less(t, time.Since(began), 17*time.Second, "64 calls of a second, 5 at once")
	})
}

// An account that is free again is taken, though its permits were all in use when callers booked far ahead on another one.
func TestABusyAccountIsTakenWhenItsCallsEnd(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 50, Window: time.Hour}, {InFlight: 5}}
		spent := ration.NewToken("a")
		for range 50 {
			g, err := b.Wait(t.Context(), spent, 1)
			require.NoError(t, err)
			g.Done()
		}
		api := &busyAPI{took: 10 * time.Second, kind: oneKind}
		began := time.Now()
		api.crawl(t, []*ration.Budget{b}, 40, 1, itemsOf(t), spent, ration.NewToken("b"))
		require.Equal(t, 5, api.peak[""])
		require.Less(t, time.Since(began), 101*time.Second, "40 calls of 10 s, 5 at once, take 80 s, and not an hour")
	})
}

// A patience of none takes the best token, and one whose permits are all in use is not waited for.
func TestAffinityWaitsForNoPermit(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 2, Window: time.Hour}, {InFlight: 1}}
		pool := ration.NewPool(b, labelled("a", "b", "c")...)
		began := time.Now()
		var all []ration.Grant
		for range 3 {
			g, err := pool.Take(ration.WithAffinity(t.Context(), "talk", 0), 1)
			require.NoError(t, err)
			all = append(all, g)
		}
		require.Less(t, time.Since(began), 5*time.Second)
		for _, g := range all {
			g.Done()
		}
		for range 3 {
			g, err := pool.Take(ration.WithAffinity(t.Context(), "talk", 0), 1)
			require.NoError(t, err)
			g.Done()
		}
		require.Less(t, time.Since(began), 5*time.Second)
	})
}

// tryAll has callers who do not wait take permits until one gets none.
func tryAll(t *testing.T, b *ration.Budget, token ration.Token) (all []ration.Grant) {
	for {
		g, err := b.Try(t.Context(), token, 1)
		if err != nil {
			require.ErrorIs(t, err, ration.ErrExhausted)
			return all
		}
		all = append(all, g)
	}
}

// Callers who do not wait have all calls in flight that may be, and those that another process has no more.
func TestWhoDoesNotWaitTakesWhatIsFree(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(1000), {InFlight: 5}}
		other, token := rationtest.Peer(b), ration.NewToken("a")
		all := tryAll(t, b, token)
		require.Len(t, all, 5)
		require.Empty(t, tryAll(t, other, token))
		for _, g := range all[:3] {
			g.Done()
		}
		var others []ration.Grant
		for n := 0; n < 60 && len(others) < 3; n++ { // at the next heartbeat at the latest, if no message of real time has come
			others = append(others, tryAll(t, other, token)...)
			time.Sleep(200 * time.Millisecond)
		}
		require.Len(t, others, 3)
	})
}

// SetLimits changes how many calls may be in flight, and leaves that as it is where it names only how many a window has.
func TestSetLimitsChangesHowManyCallsAreInFlight(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Margin = 0 // which limits of calls in flight have none of
		b.Limits = []ration.Limit{ration.PerHour(1000), {InFlight: 2}}
		token := ration.NewToken("a")
		for _, step := range []struct {
			set  []ration.Limit
			free int
		}{
			{[]ration.Limit{ration.PerHour(900)}, 2},
			{[]ration.Limit{ration.PerHour(900), {InFlight: 5}}, 5},
			{[]ration.Limit{ration.PerHour(900), {InFlight: 1}}, 1},
		} {
			require.NoError(t, b.SetLimits(step.set...))
			all := tryAll(t, b, token)
			require.Len(t, all, step.free, "%v", step.set)
			for _, g := range all {
				g.Done()
			}
		}
	})
}
