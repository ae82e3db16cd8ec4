package ration_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// Who waits for a source of secrets that is slow is shown within two seconds, and not when the process says next that it is there.
func TestWhoWaitsForASlowSourceIsSoonShown(t *testing.T) {
	t.Parallel()
	kept := &ration.RedisStore{Client: redistest.Start(t).Client(t)}
	budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(100)}, Store: kept}
	began := make(chan struct{})
	token := ration.TokenFrom("ann", func(ctx context.Context) (string, time.Time, error) {
		close(began)
		<-ctx.Done()
		return "", time.Time{}, ctx.Err()
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:1/", nil)
		if resp, err := (&ration.Transport{Pool: ration.NewPool(budget, token)}).RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-began
	require.Eventually(t, func() bool {
		d, err := kept.Describe(t.Context(), "api")
		return err == nil && len(d.Workers) == 1 && d.Workers[0].Load.Waiting["source"] == 1
	}, 5*time.Second, 50*time.Millisecond)
	stop()
	<-ended
}

// A process that has ended is no worker any more, also if it booked a moment ago, and the next one that asks is.
func TestAProcessThatHasEndedIsNoWorker(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ends, stays := &ration.RedisStore{Client: server.Client(t)}, &ration.RedisStore{Client: server.Client(t)}
	limits := []ration.Limit{ration.PerHour(100)}
	names := []string{"a", "b"}
	for _, of := range []*ration.RedisStore{ends, stays} {
		for _, name := range names {
			_, err := (&ration.Budget{Name: name, Limits: limits, Store: of}).Wait(t.Context(), ration.NewToken("t"), 1)
			require.NoError(t, err)
		}
	}
	workers := func(want int) {
		t.Helper()
		for _, name := range names {
			d, err := stays.Describe(t.Context(), name)
			require.NoError(t, err)
			require.Len(t, d.Workers, want)
		}
	}
	workers(2)
	require.NoError(t, ends.Settle(t.Context()))
	workers(1)
	require.NoError(t, ends.Settle(t.Context()), "nothing is left to say")
	_, err := (&ration.Budget{Name: "a", Limits: limits, Store: ends}).Wait(t.Context(), ration.NewToken("t"), 1)
	require.NoError(t, err)
	d, err := stays.Describe(t.Context(), "a")
	require.NoError(t, err)
	require.Len(t, d.Workers, 2, "it goes on after all")
}

// A Budget that its program has replaced is a worker for as long as its last call is in flight.
func TestABudgetThatWasLeftIsNoWorkerOnceItsCallersHaveEnded(t *testing.T) {
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		kept := &ration.RedisStore{Client: server.Client(t)}
		budget := &ration.Budget{Name: redistest.Name(t), Limits: []ration.Limit{ration.PerHour(100)}, Store: kept}
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			time.Sleep(15 * time.Second)
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(budget, ration.NewToken("t"))}}
		workers := func() int {
			d, err := kept.Describe(t.Context(), budget.Name)
			require.NoError(t, err)
			return len(d.Workers)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			rationtest.Drain(t, rationtest.Get(t, client, "http://api/"))
		}()
		time.Sleep(time.Second)
		budget.Leave()
		time.Sleep(11 * time.Second)
		require.Equal(t, 1, workers(), "a call is in flight")
		<-ended
		time.Sleep(11 * time.Second)
		require.Zero(t, workers())
		budget.Leave()
		rationtest.Drain(t, rationtest.Get(t, client, "http://api/"))
		time.Sleep(11 * time.Second)
		require.Zero(t, workers(), "who came nevertheless has gone")
	})
}
