package rationtest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// An API answers a Transport's requests in place of a network, which would stop a
// bubble's clock. It keeps the RoundTripper contract: it closes each body that it is
// given. It is safe for concurrent use.
type API struct {
	// Answer returns the response to the n-th request, from 1. Nil: 200 OK.
	Answer func(n int, req *http.Request) (*http.Response, error)

	// Begun is when the API was made.
	Begun time.Time
	// Idled counts the calls of CloseIdleConnections.
	Idled int

	mu    sync.Mutex // protects calls
	calls []Call
}

// A Call is one request as it reached the API.
type Call struct {
	At     time.Duration // since API.Begun
	Token  string        // the bearer token
	URL    string
	Header http.Header
	Body   string
}

// NewAPI returns an API that begins now.
func NewAPI(answer func(n int, req *http.Request) (*http.Response, error)) *API {
	return &API{Answer: answer, Begun: time.Now()}
}

// RoundTrip records the request and answers it.
func (p *API) RoundTrip(req *http.Request) (*http.Response, error) {
	c := Call{
		At:     time.Since(p.Begun),
		Token:  strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "),
		URL:    req.URL.String(),
		Header: req.Header.Clone(),
	}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		c.Body = string(body)
	}
	p.mu.Lock()
	p.calls = append(p.calls, c)
	n := len(p.calls)
	p.mu.Unlock()
	if p.Answer == nil {
		return Respond(req, http.StatusOK, "", nil), nil
	}
	return p.Answer(n, req)
}

// CloseIdleConnections counts that it was called.
func (p *API) CloseIdleConnections() { p.Idled++ }

// Calls returns the requests that came, in order.
func (p *API) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Times returns when the requests came, earliest first.
func (p *API) Times() []time.Duration {
	var at []time.Duration
	for _, c := range p.Calls() {
		at = append(at, c.At)
	}
	return at
}

// Tokens returns the bearer tokens of the requests, in order.
func (p *API) Tokens() []string {
	var of []string
	for _, c := range p.Calls() {
		of = append(of, c.Token)
	}
	return of
}

// TimesOf returns when requests came with a token.
func (p *API) TimesOf(secret string) []time.Duration {
	var at []time.Duration
	for _, c := range p.Calls() {
		if c.Token == secret {
			at = append(at, c.At)
		}
	}
	return at
}
