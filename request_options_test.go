package ration_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

func TestALimitOfAScopeCoversItsRequestsOnly(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 10, Window: time.Minute}, {Max: 2, Window: time.Minute, Scope: "search"}}
		token := ration.NewToken("a")
		search := ration.WithScopes(t.Context(), "search", "unheard-of")
		for range 2 {
			_, err := b.Try(search, token, 1)
			require.NoError(t, err)
		}
		_, err := b.Try(search, token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
		rationtest.RequireRemaining(t, b, token, 8, 0)
		for range 8 {
			_, err := b.Try(t.Context(), token, 1)
			require.NoError(t, err)
		}
		_, err = b.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted, "a search counts among all")
	})
}

func TestWhoWaitsInAScopeHoldsNobodyElseUp(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 5, Window: 10 * time.Second}, {Max: 1, Window: 30 * time.Second, Scope: "search"}}
		token, begun := ration.NewToken("a"), time.Now()
		search := ration.WithScopes(t.Context(), "search")
		var slots []time.Duration
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				_, err := b.Wait(search, token, 1)
				require.NoError(t, err)
				mu.Lock()
				slots = append(slots, time.Since(begun))
				mu.Unlock()
			})
		}
		time.Sleep(time.Millisecond)
		for range 4 {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
		}
		require.Equal(t, time.Millisecond, time.Since(begun), "the searches wait for slots at 30, 60 and 90 s")
		// Where a search is booked ahead it counts.
		time.Sleep(25*time.Second - time.Millisecond)
		for range 4 {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
		}
		require.Equal(t, 25*time.Second, time.Since(begun))
		_, err := b.Try(t.Context(), token, 1)
		require.ErrorIs(t, err, ration.ErrExhausted, "the search at 30 s would be the sixth in 10 s")
		wait.Wait()
		require.Equal(t, []time.Duration{0, 30 * time.Second, 60 * time.Second, 90 * time.Second}, slots)
	})
}

func TestARequestIsChargedToSharedAccountsInOneStep(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 3, Window: time.Minute}}
		app := ration.NewSharedAccount("the app", ration.Limit{Max: 4, Window: time.Minute})
		address := ration.NewSharedAccount("192.0.2.1", ration.Limit{Max: 100, Window: time.Minute})
		b.Shared = []ration.SharedAccount{app, address}
		one, two := ration.NewToken("one"), ration.NewToken("two")
		for range 3 {
			_, err := b.Try(t.Context(), one, 1)
			require.NoError(t, err)
		}
		grant, err := b.Try(t.Context(), two, 1)
		require.NoError(t, err)
		_, err = b.Try(t.Context(), two, 1)
		require.ErrorIs(t, err, ration.ErrExhausted, "the app has none left")
		rationtest.RequireRemaining(t, b, two, 2)

		// Cancel gives all units back, once.
		time.Sleep(time.Microsecond)
		require.NoError(t, grant.Cancel(t.Context()))
		require.NoError(t, grant.Cancel(t.Context()))
		rationtest.RequireRemaining(t, b, two, 3)
		_, err = b.Try(t.Context(), two, 1)
		require.NoError(t, err)
		_, err = b.Try(t.Context(), two, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)

		// A worker at another address is charged to that.
		other := rationtest.Peer(b)
		other.Shared = []ration.SharedAccount{ration.NewSharedAccount("192.0.2.2", ration.Limit{Max: 1, Window: time.Minute})}
		_, err = other.Try(t.Context(), two, 1)
		require.NoError(t, err)
		_, err = other.Try(t.Context(), two, 1)
		require.ErrorIs(t, err, ration.ErrExhausted)
	})
}

func TestASlotOfSharedAccountsGoesToTheNext(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1, Window: 10 * time.Second}}
		b.Shared = []ration.SharedAccount{ration.NewSharedAccount("the app", ration.Limit{Max: 2, Window: 20 * time.Second})}
		token, begun := ration.NewToken("a"), time.Now()
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := b.Wait(ctx, token, 1)
			gone <- err
		}()
		time.Sleep(time.Second)
		stop()
		require.ErrorIs(t, <-gone, context.Canceled)
		for _, due := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second} {
			_, err := b.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			require.Equal(t, due, time.Since(begun))
		}
	})
}

func TestATokenOfASharedAccountsPoolHoldsNoOtherUp(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1, Window: 10 * time.Second}}
		b.Shared = []ration.SharedAccount{ration.NewSharedAccount("the app", ration.Limit{Max: 3, Window: 10 * time.Second})}
		one, two, begun := ration.NewToken("one"), ration.NewToken("two"), time.Now()
		for range 2 {
			go func() { _, _ = b.Wait(t.Context(), one, 1) }()
		}
		time.Sleep(time.Second)
		_, err := b.Wait(t.Context(), two, 1)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(begun), "token one is booked until 10 s")
		time.Sleep(time.Minute)
	})
}

func TestAPauseOfASharedAccountHoldsAllBack(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1, Window: 10 * time.Second}}
		app := ration.NewToken("the app's")
		app.Account = "the app"
		b.Shared = []ration.SharedAccount{ration.NewSharedAccount("the app", ration.Limit{Max: 9, Window: 10 * time.Second})}
		token, begun := ration.NewToken("a"), time.Now()
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		time.AfterFunc(5*time.Second, func() { _, _ = b.Pause(t.Context(), app, 20*time.Second) })
		_, err = b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.Equal(t, 25*time.Second, time.Since(begun))
	})
}

func TestARequestsContextSaysItsCostAndScopes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	b := rationtest.NewBudget(ration.PerHour(100), ration.Limit{Max: 30, Window: time.Hour, Scope: "search"})
	token := ration.NewToken("a")
	transport := &ration.Transport{Pool: ration.NewPool(b, token), Cost: func(*http.Request) int { return 2 }}
	client := &http.Client{Transport: transport}
	get := func(ctx context.Context) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	get(t.Context())
	rationtest.RequireRemaining(t, b, token, 98, 30)
	get(ration.WithCost(t.Context(), 7))
	rationtest.RequireRemaining(t, b, token, 91, 30)
	get(ration.WithScopes(t.Context(), "search"))
	rationtest.RequireRemaining(t, b, token, 89, 28)
	transport.Scopes = func(r *http.Request) []string { return []string{"search"} }
	get(ration.WithCost(t.Context(), 20))
	rationtest.RequireRemaining(t, b, token, 69, 8)
}
