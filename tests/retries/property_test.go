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

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

// Whatever a provider responds, in whatever order: no request is sent twice that must not
// be, no quarantined token and no paused account is used, every caller gets a response or an
// error, and every body is closed once. The scripted provider records its own responses, and
// checks each request against them.

// An requestPlan is a request to be made.
type requestPlan struct {
	worker int
	after  time.Duration // the one before
	kind   string
	path   string
	within time.Duration // 0: as long as it takes
}

var requestKinds = []string{"GET", "POST", "POST once", "POST with a key", "POST once with a key"}

func drawRequest(rt *rapid.T) requestPlan {
	return requestPlan{
		worker: rapid.IntRange(0, 1).Draw(rt, "worker"),
		after:  rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, 7 * time.Second, time.Minute, 6 * time.Minute}).Draw(rt, "after"),
		kind:   rapid.SampledFrom(requestKinds).Draw(rt, "kind"),
		path:   rapid.SampledFrom([]string{"/users", "/tags"}).Draw(rt, "path"),
		within: rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Second, time.Minute}).Draw(rt, "within"),
	}
}

func drawResponse(rt *rapid.T) scriptedResponse {
	return scriptedResponse{
		kind:  rapid.SampledFrom(responseKinds).Draw(rt, "response"),
		after: rapid.SampledFrom([]time.Duration{0, 0, 50 * time.Millisecond, 2 * time.Second}).Draw(rt, "takes"),
		wait:  rapid.IntRange(1, 90).Draw(rt, "wait"),
	}
}

func TestWhateverAProviderAnswers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &scriptedProvider{accounts: make(map[string]string), sendings: make(map[string]int), final: make(map[string]bool)}
		p.script = rapid.SliceOfN(rapid.Custom(drawResponse), 1, 40).Draw(rt, "script")
		plans := rapid.SliceOfN(rapid.Custom(drawRequest), 1, 12).Draw(rt, "requests")
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

// run makes the requests and checks their results.
func (p *scriptedProvider) run(t *testing.T, plans []requestPlan, pooled []ration.Token) {
	store := new(ration.MemoryStore)
	var transports []*ration.Transport
	for n := range 2 {
		b := rationtest.NewBudget(ration.Limit{Max: 4, Window: 20 * time.Second})
		b.Store = store
		b.OnEvent = func(notice ration.Event) { p.recordQuarantine(notice, n, pooled) }
		transports = append(transports, &ration.Transport{Base: p.worker(n), Pool: ration.NewPool(b, pooled...), Provider: &scriptedDialect,
			AttemptTimeout: attemptTimeout, MaxCooldown: probeEvery})
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

// recordQuarantine records the quarantine of a token that was rejected. When it begins depends on
// the responses to other requests.
func (p *scriptedProvider) recordQuarantine(n ration.Event, worker int, pooled []ration.Token) {
	if n.Kind != ration.TokenQuarantined || n.Reason == provider.ReasonBilling {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, token := range pooled {
		if token.ID() == n.Token {
			p.pauses = append(p.pauses, pause{token: string("abc"[i]), from: time.Now(), to: n.Until, by: worker, why: "quarantined"})
		}
	}
}

// request makes the n-th request, and returns its bodies.
func (plan requestPlan) request(t *testing.T, n int) (req *http.Request, bodies []*rationtest.Body, stop context.CancelFunc) {
	ctx, stop := context.WithCancel(t.Context())
	if plan.within > 0 {
		ctx, stop = context.WithTimeoutCause(t.Context(), plan.within, errors.New("the caller's attemptTimeout is over"))
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
