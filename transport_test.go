package ration_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A provider answers a Transport's requests in place of a network, which would
// hold up a bubble's clock. It keeps the RoundTripper contract: it closes each
// body that it is given.
type api struct {
	// answer says what the n-th request gets, from 1. Nil: 200 OK.
	answer func(n int, req *http.Request) (*http.Response, error)

	begun time.Time
	mu    sync.Mutex // protects calls
	calls []call
	idled int
}

// A call is one request as it reached the provider.
type call struct {
	at     time.Duration // since the provider was made
	token  string        // what came as a bearer token
	url    string
	header http.Header
	body   string
}

func newProvider(answer func(n int, req *http.Request) (*http.Response, error)) *api {
	return &api{answer: answer, begun: time.Now()}
}

func (p *api) RoundTrip(req *http.Request) (*http.Response, error) {
	c := call{
		at:     time.Since(p.begun),
		token:  strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "),
		url:    req.URL.String(),
		header: req.Header.Clone(),
	}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		c.body = string(body)
	}
	p.mu.Lock()
	p.calls = append(p.calls, c)
	n := len(p.calls)
	p.mu.Unlock()
	if p.answer == nil {
		return respond(req, http.StatusOK, "", nil), nil
	}
	return p.answer(n, req)
}

func (p *api) CloseIdleConnections() { p.idled++ }

func (p *api) all() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// times returns when the requests came, earliest first.
func (p *api) times() []time.Duration {
	var at []time.Duration
	for _, c := range p.all() {
		at = append(at, c.at)
	}
	return at
}

// tokens returns the bearer tokens of the requests, in order.
func (p *api) tokens() []string {
	var of []string
	for _, c := range p.all() {
		of = append(of, c.token)
	}
	return of
}

// respond makes a response. Header is NAME, VALUE, NAME, VALUE.
func respond(req *http.Request, status int, body string, header []string) *http.Response {
	h := make(http.Header)
	for pair := range slices.Chunk(header, 2) {
		h.Add(pair[0], pair[1])
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// A body is a request's body that knows whether it was closed.
type body struct {
	io.Reader
	closed int
}

func newBody(s string) *body { return &body{Reader: strings.NewReader(s)} }

func (b *body) Close() error {
	b.closed++
	return nil
}

// newBudget returns a budget without a margin, so that slots are exact.
func newBudget(limits ...ration.Limit) *ration.Budget {
	return &ration.Budget{Name: "test", Limits: limits, Store: new(ration.MemoryStore), Margin: -1}
}

func tokens(secrets ...string) []ration.Token {
	var all []ration.Token
	for _, secret := range secrets {
		all = append(all, ration.NewToken(secret))
	}
	return all
}

func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	return req
}

// get sends a GET and drains the answer.
func get(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	resp, err := client.Do(newRequest(t, http.MethodGet, url, nil))
	require.NoError(t, err)
	drain(t, resp)
	return resp
}

func drain(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(b)
}

// seconds makes durations of whole seconds.
func seconds(of ...int) []time.Duration {
	var all []time.Duration
	for _, s := range of {
		all = append(all, time.Duration(s)*time.Second)
	}
	return all
}

func TestRequestsLeaveInTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newProvider(nil)
		pool := ration.NewPool(newBudget(ration.Limit{Max: 2, Window: 10 * time.Second}), ration.NewToken("a"))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: pool}}
		for range 5 {
			get(t, client, "http://api.test/")
		}
		require.Equal(t, seconds(0, 0, 10, 10, 20), api.times())
	})
}

func TestAnHourOfCallersLeavesInOrderAndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newProvider(nil)
		pool := ration.NewPool(newBudget(ration.Limit{Max: 10, Window: time.Minute}), tokens("a", "b")...)
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: pool}}
		var callers sync.WaitGroup
		for range 1200 {
			callers.Go(func() { get(t, client, "http://api.test/") })
		}
		callers.Wait()
		counts := make(map[time.Duration]int)
		for _, at := range api.times() {
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
		api := newProvider(nil)
		budget := newBudget(ration.Limit{Max: 1, Window: time.Minute})
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(budget, ration.NewToken("a"))}
		patient, hurried := &http.Client{Transport: transport}, &http.Client{Transport: transport, Timeout: time.Second}
		get(t, patient, "http://api.test/")
		for range 1000 {
			_, err := hurried.Get("http://api.test/")
			require.ErrorIs(t, err, ration.ErrExhausted)
		}
		get(t, patient, "http://api.test/")
		require.Equal(t, seconds(0, 60), api.times())
	})
}

func TestContextThatHasEndedSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newProvider(nil)
		budget := newBudget(ration.PerHour(5))
		token := ration.NewToken("a")
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(budget, token)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		content := newBody("content")
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/", content)
		require.NoError(t, err)
		_, err = transport.RoundTrip(req)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, content.closed)
		require.Empty(t, api.all())
		left, err := budget.Remaining(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 5, left)
	})
}

func TestMaxWaitRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := newBudget(ration.Limit{Max: 1, Window: time.Hour})
		budget.MaxWait = 10 * time.Minute
		client := &http.Client{Transport: &ration.Transport{Base: newProvider(nil), Pool: ration.NewPool(budget, ration.NewToken("a"))}}
		get(t, client, "http://api.test/")
		_, err := client.Get("http://api.test/")
		require.EqualError(t, err, `Get "http://api.test/": ration: budget "test": the next slot is in 1h0m0s, MaxWait allows 10m0s`)
		require.ErrorIs(t, err, ration.ErrExhausted)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// snapshot is what a RoundTripper may not change in a request.
func snapshot(req *http.Request) http.Request {
	kept := *req.Clone(req.Context())
	kept.Header, kept.Trailer = maps.Clone(req.Header), maps.Clone(req.Trailer)
	kept.GetBody, kept.Body = nil, nil // functions are never equal
	return kept
}
