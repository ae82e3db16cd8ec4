package ration_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

func TestRequestsLeaveInTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(nil)
		pool := ration.NewPool(rationtest.NewBudget(ration.Limit{Max: 2, Window: 10 * time.Second}), ration.NewToken("a"))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: pool}}
		for range 5 {
			rationtest.Get(t, client, "http://api.test/")
		}
		require.Equal(t, rationtest.Seconds(0, 0, 10, 10, 20), api.Times())
	})
}

func TestAnHourOfCallersLeavesInOrderAndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(nil)
		pool := ration.NewPool(rationtest.NewBudget(ration.Limit{Max: 10, Window: time.Minute}), rationtest.Tokens("a", "b")...)
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: pool}}
		var callers sync.WaitGroup
		for range 1200 {
			callers.Go(func() { rationtest.Get(t, client, "http://api.test/") })
		}
		callers.Wait()
		counts := make(map[time.Duration]int)
		for _, at := range api.Times() {
			counts[at]++
		}
		want := make(map[time.Duration]int)
		for minute := range 60 {
			want[time.Duration(minute)*time.Minute] = 20
		}
		require.Equal(t, want, counts)
	})
}

func TestImpatientCallersLeaveNoTraceBesideAPatientOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(nil)
		budget := rationtest.NewBudget(ration.Limit{Max: 1, Window: time.Minute})
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(budget, ration.NewToken("a"))}
		patient, hurried := &http.Client{Transport: transport}, &http.Client{Transport: transport, Timeout: time.Second}
		rationtest.Get(t, patient, "http://api.test/")
		for range 1000 {
			_, err := hurried.Get("http://api.test/")
			require.ErrorIs(t, err, ration.ErrExhausted)
		}
		rationtest.Get(t, patient, "http://api.test/")
		require.Equal(t, rationtest.Seconds(0, 60), api.Times())
	})
}

func TestContextThatHasEndedSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(nil)
		budget := rationtest.NewBudget(ration.PerHour(5))
		token := ration.NewToken("a")
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(budget, token)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		content := rationtest.NewBody("content")
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/", content)
		require.NoError(t, err)
		_, err = transport.RoundTrip(req)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, content.Closed)
		require.Empty(t, api.Calls())
		left, err := budget.Remaining(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 5, left)
	})
}

func TestMaxWaitRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := rationtest.NewBudget(ration.Limit{Max: 1, Window: time.Hour})
		budget.MaxWait = 10 * time.Minute
		client := &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(nil), Pool: ration.NewPool(budget, ration.NewToken("a"))}}
		rationtest.Get(t, client, "http://api.test/")
		_, err := client.Get("http://api.test/")
		require.EqualError(t, err, `Get "http://api.test/": ration: budget "test": the next slot is in 1h0m0s, MaxWait allows 10m0s; the quota of 1/1h is spent`)
		require.ErrorIs(t, err, ration.ErrExhausted)
	})
}
