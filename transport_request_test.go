package ration_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

func TestRequestWithoutAHeaderMapIsSentAndUnchanged(t *testing.T) {
	api := rationtest.NewAPI(nil)
	transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a"))}
	req := rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil)
	req.Header = nil
	_, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.Nil(t, req.Header)
	require.Equal(t, []string{"a"}, api.Tokens())
}

// The body is closed also where nothing is sent, and the error says what to
// change.
func TestBodyIsClosedWhereNothingIsSent(t *testing.T) {
	good := func() *ration.Budget { return rationtest.NewBudget(ration.PerHour(5)) }
	with := func(change func(*ration.Budget)) *ration.Budget {
		b := good()
		change(b)
		return b
	}
	token := ration.NewToken("a")
	for _, row := range []struct {
		name      string
		transport *ration.Transport
		want      string
	}{
		{"no pool", &ration.Transport{}, "ration: Transport.Pool is nil: set it to ration.NewPool(budget, tokens...)"},
		{"no token", &ration.Transport{Pool: ration.NewPool(good())}, `ration: budget "test": the pool has no token: Add one`},
		{"empty token", &ration.Transport{Pool: ration.NewPool(good(), token, ration.Token{})}, "the token is empty: make it with NewToken from a secret"},
		{"empty secret", &ration.Transport{Pool: ration.NewPool(good(), ration.NewToken(""))}, "the token is empty: make it with NewToken from a secret"},
		{"no budget", &ration.Transport{Pool: ration.NewPool(nil, token)}, "the Budget is nil"},
		{"no store", &ration.Transport{Pool: ration.NewPool(with(func(b *ration.Budget) { b.Store = nil }), token)},
			`ration: budget "test": Budget.Store is nil: set a *RedisStore for a fleet, or new(ration.MemoryStore) for one process`},
		{"no name", &ration.Transport{Pool: ration.NewPool(with(func(b *ration.Budget) { b.Name = "" }), token)}, "Budget.Name is empty"},
		{"no limit", &ration.Transport{Pool: ration.NewPool(with(func(b *ration.Budget) { b.Limits = nil }), token)}, "there is no limit: name at least one"},
		{"limits of the preset", &ration.Transport{Provider: rationtest.Preset(t, "instagram"), Pool: ration.NewPool(with(func(b *ration.Budget) { b.Limits = nil }), token)},
			"such as ration.PerHour(5000), or Provider.Limits, which for instagram are 5000/1h"},
		{"too expensive", &ration.Transport{Pool: ration.NewPool(good(), token), Cost: func(*http.Request) int { return 6 }},
			"ration: the cost is 6, and no limit ever admits more than 5 at once"},
		{"no cost", &ration.Transport{Pool: ration.NewPool(good(), token), Cost: func(*http.Request) int { return 0 }},
			"ration: the cost is 0: it must be at least 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			api := rationtest.NewAPI(nil)
			row.transport.Base = api
			content := rationtest.NewBody("content")
			resp, err := row.transport.RoundTrip(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", content))
			require.ErrorContains(t, err, row.want)
			require.Nil(t, resp)
			require.Equal(t, 1, content.Closed)
			require.Empty(t, api.Calls())
		})
	}
}

// That the provider of these tests closes bodies is what a RoundTripper does:
// the Transport adds nothing to it.
func TestBodyIsGivenToBaseUnwrapped(t *testing.T) {
	content := rationtest.NewBody("content")
	var given io.ReadCloser
	transport := &ration.Transport{
		Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a")),
		Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			given = req.Body
			_ = req.Body.Close()
			return nil, errors.New("the line is down")
		}),
	}
	_, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", content))
	require.EqualError(t, err, "the line is down")
	require.Same(t, content, given)
	require.Equal(t, 1, content.Closed)
}

// What Base says is passed on as it is, and a request that may have reached the
// provider stays charged.
func TestFailureOfAnUnknownBaseStaysCharged(t *testing.T) {
	broken := errors.New("the line broke")
	budget, token := rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a")
	transport := &ration.Transport{
		Pool: ration.NewPool(budget, token),
		Base: rationtest.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, broken }),
	}
	_, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
	require.ErrorIs(t, err, broken)
	left, err := budget.Remaining(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, 4, left)
}

func TestCostIsWhatTheFunctionSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(nil)
		pool := ration.NewPool(rationtest.NewBudget(ration.Limit{Max: 10, Window: time.Minute}), ration.NewToken("a"))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: pool, Cost: func(req *http.Request) int {
			if req.URL.Path == "/search" {
				return 5
			}
			return 1
		}}}
		for _, path := range []string{"search", "a", "search", "b"} {
			rationtest.Get(t, client, "http://api.test/"+path)
		}
		// 5 + 1 leave room for 4: the second search, and all behind it, wait.
		require.Equal(t, rationtest.Seconds(0, 0, 60, 60), api.Times())
	})
}

func TestOnGrantIsCalledInTheSlotBeforeTheRequestIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(nil)
		budget, token := rationtest.NewBudget(ration.Limit{Max: 1, Window: time.Minute}), ration.NewToken("a")
		type moment struct {
			at   time.Duration
			sent int
			id   string
			cost int
			slot time.Time
			late time.Duration
			auth string
		}
		var granted []moment
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(budget, token),
			OnGrant: func(req *http.Request, g ration.Grant) {
				granted = append(granted, moment{time.Since(api.Begun), len(api.Calls()), g.Token.ID(), g.Cost, g.Slot, g.Late, req.Header.Get("Authorization")})
			}}}
		rationtest.Get(t, client, "http://api.test/")
		rationtest.Get(t, client, "http://api.test/")
		begun := api.Begun.Local()
		for i := range granted {
			granted[i].slot = granted[i].slot.Local()
		}
		require.Equal(t, []moment{
			{at: 0, sent: 0, id: token.ID(), cost: 1, slot: time.UnixMicro(begun.UnixMicro())},
			{at: time.Minute, sent: 1, id: token.ID(), cost: 1, slot: time.UnixMicro(begun.Add(time.Minute).UnixMicro())},
		}, granted)
	})
}

func TestGrantOfReturnsTheGrantOfAResponse(t *testing.T) {
	token := ration.NewToken("a")
	client := &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(nil), Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), token)}}
	resp := rationtest.Get(t, client, "http://api.test/")
	grant, found := ration.GrantOf(resp)
	require.True(t, found)
	require.Equal(t, token.ID(), grant.Token.ID())
	require.Equal(t, 1, grant.Cost)

	_, found = ration.GrantOf(nil)
	require.False(t, found)
	_, found = ration.GrantOf(new(http.Response))
	require.False(t, found)
	_, found = ration.GrantOf(&http.Response{Request: rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil)})
	require.False(t, found)
}

// A request made from an earlier response's context does not pass for one that
// was sent on that grant.
func TestGrantOfKnowsNothingOfAForeignHostsResponse(t *testing.T) {
	client := &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(nil), Hosts: []string{"api.test"},
		Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a"))}}
	resp := rationtest.Get(t, client, "http://api.test/")
	req, err := http.NewRequestWithContext(resp.Request.Context(), http.MethodGet, "http://other.test/", nil)
	require.NoError(t, err)
	other, err := client.Do(req)
	require.NoError(t, err)
	_, found := ration.GrantOf(other)
	require.False(t, found)
}

func TestTransportIsSafeForConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
			if n%17 == 0 {
				return rationtest.Respond(req, http.StatusTooManyRequests, "wait", []string{"Retry-After", "1"}), nil
			}
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		pool := ration.NewPool(rationtest.NewBudget(ration.PerSecond(50)), rationtest.Tokens("a", "b", "c")...)
		var granted, refused atomic.Int64
		client := &http.Client{Transport: &ration.Transport{
			Base: api, Pool: pool, Retries: ration.RetryPolicy{Max: 100},
			OnGrant:   func(*http.Request, ration.Grant) { granted.Add(1) },
			OnRefusal: func(*http.Response, ration.Grant) { refused.Add(1) },
		}}
		var workers sync.WaitGroup
		for i := range 32 {
			workers.Go(func() {
				for j := range 25 {
					content := fmt.Sprintf("%d.%d", i, j)
					resp, err := client.Do(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", bytes.NewReader([]byte(content))))
					if err != nil || resp.StatusCode != http.StatusOK {
						t.Errorf("request %s: %v", content, err)
						return
					}
				}
			})
		}
		workers.Go(func() {
			for i := range 20 {
				extra := ration.NewToken(fmt.Sprint("extra", i))
				pool.Add(extra)
				<-time.After(300 * time.Millisecond)
				pool.Remove(extra)
			}
		})
		workers.Wait()
		seen := make(map[string]int)
		for _, c := range api.Calls() {
			seen[c.Body]++
		}
		require.Len(t, seen, 800)
		require.Equal(t, int64(len(api.Calls())), granted.Load())
		require.Equal(t, int64(len(api.Calls())/17), refused.Load())
		require.Equal(t, int64(800), granted.Load()-refused.Load())
	})
}

// A host that no request ever goes to would send them all without a token and a slot.
func TestHostsThatCannotBeMeantAreErrors(t *testing.T) {
	for host, instead := range map[string]string{
		"http://127.0.0.1:18080/": "127.0.0.1:18080", "https://api.test/v1": "api.test", "api.test/v1": "api.example.com",
		"*.test": "api.example.com", "": "api.example.com", " api.test": "api.example.com",
	} {
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) { return rationtest.Served.To(req), nil })
		client := &http.Client{Transport: &ration.Transport{Base: api, Hosts: []string{"other.test", host},
			Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(10)), ration.NewToken("a"))}}
		body := rationtest.NewBody("content")
		_, err := client.Do(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", body))
		require.ErrorContains(t, err, "Transport.Hosts has")
		require.ErrorContains(t, err, instead)
		require.Empty(t, api.Calls())
		require.Equal(t, 1, body.Closed)
	}
}

// What cannot be meant is an error that names the field, before anything is booked.
func TestFieldsThatCannotBeMeantAreErrors(t *testing.T) {
	for want, spoil := range map[string]func(*ration.Transport, *ration.Budget){
		"Transport.Retries.Within": func(t *ration.Transport, _ *ration.Budget) { t.Retries.Within = -1 },
		"Transport.AttemptTimeout": func(t *ration.Transport, _ *ration.Budget) { t.AttemptTimeout = -1 },
		"Transport.MaxCooldown":    func(t *ration.Transport, _ *ration.Budget) { t.MaxCooldown = -1 },
		"Transport.Hosts":          func(t *ration.Transport, _ *ration.Budget) { t.Hosts = []string{} },
		"MaxWait":                  func(_ *ration.Transport, b *ration.Budget) { b.MaxWait = -1 },
	} {
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) { return rationtest.Served.To(req), nil })
		b := rationtest.NewBudget(ration.PerHour(10))
		tr := &ration.Transport{Base: api, Pool: ration.NewPool(b, ration.NewToken("a"))}
		spoil(tr, b)
		_, err := tr.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		require.ErrorContains(t, err, want)
		require.Empty(t, api.Calls())
	}
}
