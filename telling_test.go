package ration_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
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

// A process whose limits are not the fleet's gets nothing. It is shown among the workers, with the error, and what it was given.
func TestAProcessWithOtherLimitsIsShown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	kept := &ration.RedisStore{Client: server.Client(t)}
	of := func(most int) *ration.Budget {
		return &ration.Budget{Name: "api", Limits: []ration.Limit{{Max: most, Window: time.Hour}}, Store: &ration.RedisStore{Client: server.Client(t)}}
	}
	_, err := of(30).Wait(t.Context(), ration.NewToken("t"), 1)
	require.NoError(t, err)
	_, err = of(60).Wait(t.Context(), ration.NewToken("t"), 1)
	differ, _ := errors.AsType[*ration.LimitsError](err)
	require.NotNil(t, differ)
	require.Eventually(t, func() bool {
		d, err := kept.Describe(t.Context(), "api")
		if err != nil {
			return false
		}
		for _, w := range d.Workers {
			if p := w.Load.Process; p.Error != "" {
				require.Equal(t, differ.Error(), p.Error)
				require.Equal(t, []string{"60/1h"}, p.Limits)
				require.WithinDuration(t, d.Now, p.ErrorAt, 10*time.Second)
				require.Less(t, p.ClockAhead.Abs(), time.Second)
				return true
			}
		}
		return false
	}, 5*time.Second, 50*time.Millisecond)
}

// How long callers wait, and how long the provider takes, is told, and so is what was answered in all.
func TestHowLongCallersWaitIsTold(t *testing.T) {
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		kept := &ration.RedisStore{Client: server.Client(t)}
		budget := &ration.Budget{Name: redistest.Name(t), Limits: []ration.Limit{{Max: 1, Window: 20 * time.Second}}, Store: rationtest.WithClock(kept, time.Now)}
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			time.Sleep(300 * time.Millisecond)
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(budget, ration.NewToken("t"))}}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		for range 4 { // which have their slots after 0, 20, 40 and 60 s
			go func() {
				defer func() { ended <- struct{}{} }()
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://api/", nil)
				if resp, err := client.Do(req); err == nil {
					_ = resp.Body.Close()
				}
			}()
		}
		time.Sleep(55 * time.Second)
		d, err := kept.Describe(t.Context(), budget.Name)
		require.NoError(t, err)
		require.Len(t, d.Workers, 1)
		load := d.Workers[0].Load
		require.InDelta(t, 50, load.LongestWait.Seconds(), 6, "it tells every ten seconds")
		require.Equal(t, 3, load.Waited.Count())
		require.InEpsilon(t, 20*time.Second, load.Waited.Mean(), 0.1)
		require.InEpsilon(t, 40*time.Second, load.Waited.Quantile(1), 0.1)
		require.InEpsilon(t, 300*time.Millisecond, load.Took.Quantile(0.5), 0.06)
		require.Equal(t, map[string]int64{"2xx": 3}, load.AnswersInAll)
		stop()
		for range 4 {
			<-ended
		}
	})
}

// The workers of a fleet hear of one whose callers get nothing, once.
func TestOthersHearOfAWorkerThatFails(t *testing.T) {
	server, name := redistest.Start(t), redistest.Name(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		client, token := server.Client(t), ration.NewToken("t")
		right := rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(1000))
		other := rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(2000))
		for range 60 {
			_, err := right.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			_, err = other.Wait(t.Context(), token, 1)
			require.ErrorAs(t, err, new(*ration.LimitsError))
			time.Sleep(time.Second)
		}
		told := right.Noticed(ration.WorkerFailing)
		require.Len(t, told, 1)
		require.Contains(t, told[0].String(), "callers get nothing in worker ")
		require.Contains(t, told[0].String(), "2000/1h")
		require.Empty(t, other.Noticed(ration.WorkerFailing), "it knows")
	})
}

// What is not served is told by account and endpoint, without the IDs of objects.
func TestWhatIsNotServedIsToldByAccountAndEndpoint(t *testing.T) {
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(rationtest.Leave)
		kept := &ration.RedisStore{Client: server.Client(t)}
		budget := &ration.Budget{Name: redistest.Name(t), Limits: []ration.Limit{ration.PerHour(1000)}, Store: rationtest.WithClock(kept, time.Now)}
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.HasPrefix(req.URL.Path, "/users/") {
				return rationtest.Respond(req, http.StatusNotFound, "", nil), nil
			}
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		token := ration.NewToken("secret")
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(budget, token)}}
		for range 24 {
			rationtest.Drain(t, rationtest.Get(t, client, "http://api/users/7?key=secret"))
			rationtest.Drain(t, rationtest.Get(t, client, "http://api/users/ann@example.org"))
			rationtest.Drain(t, rationtest.Get(t, client, "http://api/pages/7"))
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		d, err := kept.Describe(t.Context(), budget.Name)
		require.NoError(t, err)
		require.Equal(t, []store.FailedAnswers{{Account: token.AccountID(), Endpoint: "GET http://api/users/*", Class: "other 4xx", Count: 48}}, d.Workers[0].Load.Failed)
	})
}
