package retries_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

// A scriptedProvider sends the responses of a script.
type scriptedProvider struct {
	accounts map[string]string // by secret

	mu        sync.Mutex // protects all below
	script    []scriptedResponse
	pauses    []pause
	sendings  map[string]int     // by request
	final     map[string]bool    // requests that may have been carried out
	bodies    []*rationtest.Body // of all responses
	complaint string             // the first thing that was wrong
}

// A scriptedResponse is the response to one request.
type scriptedResponse struct {
	kind  string
	after time.Duration // how long the response takes
	wait  int           // seconds, if it has a Retry-After
}

// A pause is what must not be used for a time.
type pause struct {
	token, account, endpoint string // empty: all
	from, to                 time.Time
	by                       int // the worker that got the response
	why                      string
}

const (
	probeEvery     = 10 * time.Minute
	attemptTimeout = 5 * time.Second
	propagation    = time.Second // how long another worker may not know of a pause
)

var responseKinds = []string{"served", "served", "served", "quota", "quota without a wait", "address", "endpoint", "crowd", "failure", "overload",
	"unauthorized", "dead", "unpaid", "large", "broken", "hanging"}

var scriptedDialect = ration.Provider{Rules: []provider.MatchRule{
	{Header: "X-Why", Equals: "address", Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
	{Header: "X-Why", Equals: "endpoint", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint},
	{Header: "X-Why", Equals: "quota", Reason: provider.ReasonQuota, Scope: provider.ScopeToken},
	{Header: "X-Why", Equals: "crowd", Reason: provider.ReasonConcurrency},
}}

func (p *scriptedProvider) complain(format string, args ...any) {
	if p.complaint == "" {
		p.complaint = fmt.Sprintf(format, args...)
	}
}

// judge checks a request and returns its response.
func (p *scriptedProvider) judge(req *http.Request, worker int, content string) scriptedResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	token, name, now := rationtest.SecretOf(req), req.Header.Get("X-Name"), time.Now()
	for _, s := range p.pauses {
		from := s.from
		if s.by != worker {
			from = from.Add(propagation)
		}
		if now.After(from) && now.Before(s.to) && (s.token == "" || s.token == token) &&
			(s.account == "" || s.account == p.accounts[token]) && (s.endpoint == "" || s.endpoint == req.Method+req.URL.Path) {
			p.complain("request %s came by worker %d with %s for %s at %v: %s at %v by worker %d, until %v",
				name, worker, token, req.URL.Path, now, s.why, s.from, s.by, s.to)
		}
	}
	if p.final[name] {
		p.complain("request %s was sent again", name)
	}
	if p.sendings[name]++; p.sendings[name] > 1 && req.Header.Get("X-Once") != "" {
		p.complain("request %s, whose body cannot be had again, was sent again", name)
	}
	if want := req.Header.Get("X-Content"); content != want {
		p.complain("request %s came with body %q, not %q", name, content, want)
	}
	m := scriptedResponse{kind: "served"}
	if len(p.script) > 0 {
		m, p.script = p.script[0], p.script[1:]
	}
	return m
}

// recordPause records the pause that a response asks for.
func (p *scriptedProvider) recordPause(req *http.Request, m scriptedResponse, worker int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	token, now := rationtest.SecretOf(req), time.Now()
	s := pause{from: now, to: now.Add(time.Duration(m.wait) * time.Second), by: worker, why: m.kind}
	switch m.kind {
	case "quota":
		s.account = p.accounts[token]
	case "quota without a wait":
		s.account, s.to = p.accounts[token], now.Add(time.Second)
		if slices.ContainsFunc(p.pauses, func(o pause) bool { return o.account == s.account && !o.to.Before(now) }) {
			return // what had left before the account cooled down says nothing new
		}
	case "address":
	case "endpoint", "overload":
		s.endpoint = req.Method + req.URL.Path
	case "unpaid":
		s.token, s.to = token, now.Add(probeEvery)
	default:
		return
	}
	s.to = s.to.Add(-2 * time.Microsecond) // stores count in microseconds
	p.pauses = append(p.pauses, s)
}

// worker returns the provider as one worker reaches it.
func (p *scriptedProvider) worker(n int) http.RoundTripper {
	return rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		var content []byte
		if req.Body != nil {
			content, _ = io.ReadAll(req.Body)
			_ = req.Body.Close()
		}
		m := p.judge(req, n, string(content))
		if req.Header.Get("X-Safe") == "" {
			switch m.kind {
			case "failure", "overload", "broken", "hanging":
				p.mu.Lock()
				p.final[req.Header.Get("X-Name")] = true
				p.mu.Unlock()
			}
		}
		if m.kind == "hanging" {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		select {
		case <-time.After(m.after):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		p.recordPause(req, m, n)
		wait := []string{"Retry-After", fmt.Sprint(m.wait)}
		r := rationtest.Served
		switch m.kind {
		case "broken":
			return nil, io.ErrUnexpectedEOF
		case "quota":
			r = rationtest.Reply{Status: 429, Body: "", Header: append(wait, "X-Why", m.kind)}
		case "quota without a wait":
			r = rationtest.Reply{Status: 429, Header: []string{"X-Why", "quota"}}
		case "address", "endpoint":
			r = rationtest.Reply{Status: 429, Body: "", Header: append(wait, "X-Why", m.kind)}
		case "crowd":
			r = rationtest.Reply{Status: 429, Body: "", Header: []string{"X-Why", m.kind}}
		case "failure":
			r = rationtest.Reply{Status: 500}
		case "overload":
			r = rationtest.Reply{Status: 503, Body: "", Header: wait}
		case "unauthorized":
			r = rationtest.Unauthorized
		case "dead":
			r = rationtest.InvalidToken
		case "unpaid":
			r = rationtest.PaymentRequired
		case "large":
			r = rationtest.Reply{Status: 413}
		}
		resp := r.To(req)
		kept := rationtest.NewBody(r.Body)
		resp.Body = kept
		p.mu.Lock()
		p.bodies = append(p.bodies, kept)
		p.mu.Unlock()
		return resp, nil
	})
}
