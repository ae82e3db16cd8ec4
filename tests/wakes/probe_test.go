package wakes_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// A quarantined token is probed by one request of the whole fleet, and what it finds is known to
// all processes.

// A fleet is several processes that crawl one provider with the tokens "bad" and "good".
type fleet struct {
	api     *rationtest.API
	answer  func(*http.Request) (*http.Response, error) // to a request with the token "bad"
	clients []*http.Client
	pools   []*ration.Pool
}

// onFleets runs a test of so many processes in a bubble, on each store. The token "bad" has just been
// quarantined for a second.
func onFleets(t *testing.T, processes int, secrets []string, test func(t *testing.T, f *fleet)) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(100_000)}
		f := &fleet{answer: func(req *http.Request) (*http.Response, error) { return rationtest.InvalidToken.To(req), nil }}
		f.api = rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			if rationtest.SecretOf(req) == "bad" {
				return f.answer(req)
			}
			return rationtest.Served.To(req), nil
		})
		for range processes {
			pool := ration.NewPool(rationtest.Peer(b), rationtest.Tokens(secrets...)...)
			f.pools = append(f.pools, pool)
			f.clients = append(f.clients, &http.Client{Transport: &ration.Transport{Base: f.api, Pool: pool, Retries: ration.RetryPolicy{Max: -1}}})
		}
		for range 2 {
			require.Equal(t, http.StatusOK, rationtest.Get(t, f.clients[0], "http://api.test/").StatusCode)
		}
		require.Len(t, f.api.TimesOf("bad"), 1)
		f.crawl(t, 1)
		require.Len(t, f.api.TimesOf("bad"), 1, "all processes have heard of it")
		test(t, f)
	})
}

// crawl has each process send so many requests at once.
func (f *fleet) crawl(t *testing.T, each int) {
	t.Helper()
	var callers sync.WaitGroup
	for _, client := range f.clients {
		for range each {
			callers.Go(func() {
				if resp, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil)); err == nil {
					rationtest.Drain(t, resp)
				}
			})
		}
	}
	callers.Wait()
}

func TestOneRequestOfTheFleetProbesAToken(t *testing.T) {
	onFleets(t, 4, []string{"bad", "good"}, func(t *testing.T, f *fleet) {
		f.answer = func(*http.Request) (*http.Response, error) {
			time.Sleep(30 * time.Second)
			return nil, errors.New("the line broke")
		}
		time.Sleep(time.Second)
		f.crawl(t, 10)
		require.Len(t, f.api.TimesOf("bad"), 2)
		f.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Second)
			return rationtest.Served.To(req), nil
		}
		f.crawl(t, 10)
		require.Len(t, f.api.TimesOf("bad"), 3, "the probe had no result: another request probes at once")
		f.answer = func(req *http.Request) (*http.Response, error) { return rationtest.Served.To(req), nil }
		f.crawl(t, 1) // who books hears of it
		bad, before := len(f.api.TimesOf("bad")), len(f.api.TimesOf("good"))
		f.crawl(t, 10)
		require.Len(t, f.api.TimesOf("bad"), bad+20, "all processes use it again")
		require.Len(t, f.api.TimesOf("good"), before+20)
	})
}

// A process that has ended while it probed holds nobody up for longer than a probe may take.
func TestAProbeWithoutAnEndIsGivenUp(t *testing.T) {
	onFleets(t, 2, []string{"bad", "good"}, func(t *testing.T, f *fleet) {
		time.Sleep(time.Second)
		for range 2 { // the pool of a process that reports nothing has taken the probe
			_, err := f.pools[0].Take(t.Context(), 1)
			require.NoError(t, err)
		}
		f.clients = f.clients[1:]
		f.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return rationtest.Served.To(req), nil
		}
		f.crawl(t, 10)
		require.Len(t, f.api.TimesOf("bad"), 1)
		time.Sleep(time.Minute)
		f.crawl(t, 10)
		require.Len(t, f.api.TimesOf("bad"), 2)
		f.crawl(t, 10)
		require.Len(t, f.api.TimesOf("bad"), 7)
	})
}

// Quarantines double however many processes probe, so a revoked token costs as many calls of a
// fleet as of one process.
func TestQuarantinesDoubleForTheWholeFleet(t *testing.T) {
	onFleets(t, 8, []string{"bad", "good"}, func(t *testing.T, f *fleet) {
		for range 600 {
			f.crawl(t, 1)
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, len(f.api.TimesOf("bad")), 8)
		require.GreaterOrEqual(t, len(f.api.TimesOf("bad")), 6)
	})
}

// While all tokens are quarantined a request waits for the probe of another process.
func TestARequestWaitsForTheProbeOfAnotherProcess(t *testing.T) {
	onFleets(t, 2, []string{"bad", "good"}, func(t *testing.T, f *fleet) {
		for _, pool := range f.pools {
			pool.Remove(rationtest.Tokens("good")...)
		}
		time.Sleep(time.Second)
		f.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Second)
			return rationtest.Served.To(req), nil
		}
		var waits sync.WaitGroup
		waits.Go(func() { rationtest.Get(t, f.clients[0], "http://api.test/") })
		synctest.Wait()
		begun := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		resp, err := f.clients[1].Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil).WithContext(ctx))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.LessOrEqual(t, time.Since(begun), 11*time.Second+100*time.Millisecond, "without messages a second later")
		waits.Wait()
	})
}

// And it waits no longer than it may.
func TestARequestWaitsForAProbeNoLongerThanItMay(t *testing.T) {
	onFleets(t, 2, []string{"bad", "good"}, func(t *testing.T, f *fleet) {
		for _, pool := range f.pools {
			pool.Remove(rationtest.Tokens("good")...)
		}
		time.Sleep(time.Second)
		f.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(50 * time.Second)
			return rationtest.InvalidToken.To(req), nil
		}
		var waits sync.WaitGroup
		waits.Go(func() { rationtest.Get(t, f.clients[0], "http://api.test/") })
		synctest.Wait()
		begun := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		_, err := f.clients[1].Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil).WithContext(ctx))
		require.Error(t, err)
		require.Equal(t, 3*time.Second, time.Since(begun))
		waits.Wait()
	})
}
