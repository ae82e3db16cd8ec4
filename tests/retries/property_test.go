package retries_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/rationtest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

// Whatever a provider answers, in whatever order: nothing is sent twice that must not
// be, no token that is set aside and no account that is paused is used, every caller has
// an answer or an error, and every body is closed once. The provider keeps a record of
// its own of what it has said, and judges each request by that.

// A moodyProvider answers as a script says.
type moodyProvider struct {
	accounts map[string]string // by secret

	mu        sync.Mutex // protects all below
	script    []mood
	silences  []silence
	sendings  map[string]int     // by request
	final     map[string]bool    // requests that may have been carried out
	bodies    []*rationtest.Body // of all answers
	complaint string             // the first thing that was wrong
}

// A mood is what one request is answered.
type mood struct {
	kind  string
	after time.Duration // how long the answer takes
	wait  int           // seconds, where it tells
}

// A silence is what is not to be used for a time.
type silence struct {
	token, account, endpoint string // empty: all
	from, to                 time.Time
	by                       int // the worker that was told
	why                      string
}

const (
	probeEvery = 10 * time.Minute
	patience   = 5 * time.Second
	learns     = time.Second // so long another worker may not have heard of a pause
)

var moods = []string{"served", "served", "served", "quota", "quota without a wait", "address", "endpoint", "crowd", "failure", "overload",
	"unauthorized", "dead", "unpaid", "large", "broken", "hanging"}

var moodyDialect = ration.Provider{Rules: []provider.MatchRule{
	{Header: "X-Why", Equals: "address", Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
	{Header: "X-Why", Equals: "endpoint", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint},
	{Header: "X-Why", Equals: "crowd", Reason: provider.ReasonConcurrency},
}}

func (p *moodyProvider) complain(format string, args ...any) {
	if p.complaint == "" {
		p.complaint = fmt.Sprintf(format, args...)
	}
}

// judge takes in a request, and returns what it is answered.
func (p *moodyProvider) judge(req *http.Request, worker int, content string) mood {
	p.mu.Lock()
	defer p.mu.Unlock()
	token, name, now := rationtest.SecretOf(req), req.Header.Get("X-Name"), time.Now()
	for _, s := range p.silences {
		from := s.from
		if s.by != worker {
			from = from.Add(learns)
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
	m := mood{kind: "served"}
	if len(p.script) > 0 {
		m, p.script = p.script[0], p.script[1:]
	}
	return m
}

// silence notes what an answer that is given now asks for.
func (p *moodyProvider) silence(req *http.Request, m mood, worker int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	token, now := rationtest.SecretOf(req), time.Now()
	s := silence{from: now, to: now.Add(time.Duration(m.wait) * time.Second), by: worker, why: m.kind}
	switch m.kind {
	case "quota":
		s.account = p.accounts[token]
	case "quota without a wait":
		s.account, s.to = p.accounts[token], now.Add(time.Second)
	case "address":
	case "endpoint", "overload":
		s.endpoint = req.Method + req.URL.Path
	case "dead", "unpaid":
		s.token, s.to = token, now.Add(probeEvery)
	default:
		return
	}
	s.to = s.to.Add(-2 * time.Microsecond) // stores count in microseconds
	p.silences = append(p.silences, s)
}

// worker returns the provider as one worker reaches it.
func (p *moodyProvider) worker(n int) http.RoundTripper {
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
		p.silence(req, m, n)
		wait := []string{"Retry-After", fmt.Sprint(m.wait)}
		r := rationtest.Served
		switch m.kind {
		case "broken":
			return nil, io.ErrUnexpectedEOF
		case "quota":
			r = rationtest.Reply{Status: 429, Body: "", Header: wait}
		case "quota without a wait":
			r = rationtest.Reply{Status: 429}
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

// An errandPlan is a request to be made.
type errandPlan struct {
	worker int
	after  time.Duration // the one before
	kind   string
	path   string
	within time.Duration // 0: as long as it takes
}

var errandKinds = []string{"GET", "POST", "POST once", "POST with a key", "POST once with a key"}

func drawErrand(rt *rapid.T) errandPlan {
	return errandPlan{
		worker: rapid.IntRange(0, 1).Draw(rt, "worker"),
		after:  rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, 7 * time.Second, time.Minute, 6 * time.Minute}).Draw(rt, "after"),
		kind:   rapid.SampledFrom(errandKinds).Draw(rt, "kind"),
		path:   rapid.SampledFrom([]string{"/users", "/tags"}).Draw(rt, "path"),
		within: rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Second, time.Minute}).Draw(rt, "within"),
	}
}

func drawMood(rt *rapid.T) mood {
	return mood{
		kind:  rapid.SampledFrom(moods).Draw(rt, "mood"),
		after: rapid.SampledFrom([]time.Duration{0, 0, 50 * time.Millisecond, 2 * time.Second}).Draw(rt, "takes"),
		wait:  rapid.IntRange(1, 90).Draw(rt, "wait"),
	}
}

func TestWhateverIsAnswered(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &moodyProvider{accounts: make(map[string]string), sendings: make(map[string]int), final: make(map[string]bool)}
		p.script = rapid.SliceOfN(rapid.Custom(drawMood), 1, 40).Draw(rt, "script")
		plans := rapid.SliceOfN(rapid.Custom(drawErrand), 1, 12).Draw(rt, "requests")
		pooled := rationtest.Tokens([]string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(rt, "tokens")]...)
		together := rapid.Bool().Draw(rt, "together")
		for i, secret := range []string{"a", "b", "c"}[:len(pooled)] {
			if together && i < 2 {
				pooled[i].Account = "together"
			}
			p.accounts[secret] = pooled[i].AccountID()
		}
		synctest.Test(t, func(t *testing.T) { p.run(t, plans, pooled) })
		if p.complaint != "" {
			rt.Fatal(p.complaint)
		}
	})
}

// run makes the requests, and looks at what became of them.
func (p *moodyProvider) run(t *testing.T, plans []errandPlan, pooled []ration.Token) {
	store := new(ration.MemoryStore)
	var transports []*ration.Transport
	for n := range 2 {
		b := rationtest.NewBudget(ration.Limit{Max: 4, Window: 20 * time.Second})
		b.Store = store
		b.OnEvent = func(notice ration.Event) { p.asideForLess(notice, n, pooled) }
		transports = append(transports, &ration.Transport{Base: p.worker(n), Pool: ration.NewPool(b, pooled...), Provider: &moodyDialect,
			AttemptTimeout: patience, ProbeEvery: probeEvery})
	}
	var callers sync.WaitGroup
	all := make([][]*rationtest.Body, len(plans))
	for i, plan := range plans {
		time.Sleep(plan.after)
		req, bodies, stop := plan.request(t, i)
		all[i] = bodies
		made := &all[i]
		if req.GetBody != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				again := rationtest.NewBody(req.Header.Get("X-Content"))
				p.mu.Lock()
				*made = append(*made, again)
				p.mu.Unlock()
				return again, nil
			}
		}
		callers.Go(func() {
			defer stop()
			resp, err := transports[plan.worker].RoundTrip(req)
			p.mu.Lock()
			defer p.mu.Unlock()
			if (resp == nil) == (err == nil) {
				p.complain("request %d has answer %v and error %v", i, resp, err)
			}
			if resp != nil {
				_ = resp.Body.Close()
			}
			most := 1 + 3 + len(pooled) + 8
			if n := p.sendings[fmt.Sprint(i)]; n > most {
				p.complain("request %d was sent %d times", i, n)
			}
		})
	}
	callers.Wait()
	for i, bodies := range append(all, p.bodies) {
		for _, b := range bodies {
			if b.Closed != 1 {
				p.complain("a body of request %d of %d was closed %d times", i, len(all), b.Closed)
			}
		}
	}
	// And nothing is spoilt for good.
	p.script = nil
	time.Sleep(time.Hour)
	for _, transport := range transports {
		resp, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/users", nil))
		if err != nil || resp.StatusCode != 200 {
			p.complain("when all was over: %v, %v", resp, err)
		}
	}
}

// asideForLess takes in that a token is set aside for a 401 that does not say why, which
// depends on what came before.
func (p *moodyProvider) asideForLess(n ration.Event, worker int, pooled []ration.Token) {
	if n.Kind != ration.TokenQuarantined || n.Reason != provider.ReasonUnauthorized {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, token := range pooled {
		if token.ID() == n.Token {
			p.silences = append(p.silences, silence{token: string("abc"[i]), from: time.Now(), to: n.Until, by: worker, why: "set aside"})
		}
	}
}

// request makes the n-th request, and returns the bodies that it has been given.
func (plan errandPlan) request(t *testing.T, n int) (req *http.Request, bodies []*rationtest.Body, stop context.CancelFunc) {
	ctx, stop := context.WithCancel(t.Context())
	if plan.within > 0 {
		ctx, stop = context.WithTimeoutCause(t.Context(), plan.within, errors.New("the caller's patience is over"))
	}
	method, content := http.MethodPost, fmt.Sprintf("content of %d", n)
	if plan.kind == "GET" {
		method, content = http.MethodGet, ""
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://api.test"+plan.path, nil)
	require.NoError(t, err)
	req.Header.Set("X-Name", fmt.Sprint(n))
	req.Header.Set("X-Content", content)
	if content != "" {
		first := rationtest.NewBody(content)
		req.Body, bodies = first, append(bodies, first)
		req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("run has another") }
	}
	if strings.Contains(plan.kind, "once") {
		req.GetBody = nil
		req.Header.Set("X-Once", "1")
	}
	if strings.Contains(plan.kind, "key") {
		req.Header.Set("Idempotency-Key", fmt.Sprint(n))
	}
	if plan.kind == "GET" || strings.Contains(plan.kind, "key") {
		req.Header.Set("X-Safe", "1")
	}
	return req, bodies, stop
}
