package proxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration"
)

// reportWithin is how long after it was taken a grant may be reported. After that it counts as sent, and nothing is known of the
// response.
const reportWithin = 5 * time.Minute

// A takeRequest asks for a slot.
type takeRequest struct {
	Budget  string         `json:"budget"`
	Method  string         `json:"method"` // what is to be sent: pauses may be of an endpoint alone. "": GET
	URL     string         `json:"url"`    // "": the first host of the budget
	Cost    int            `json:"cost"`   // in calls; 0: the budget's
	Units   map[string]int `json:"units"`  // of other units
	Scopes  []string       `json:"scopes"`
	Reserve float64        `json:"reserve"`
	MaxWait string         `json:"max_wait"` // "10s"
	Caller  string         `json:"caller"`
}

// A takeAnswer is a slot that has come: one request may be sent now.
type takeAnswer struct {
	Grant   string            `json:"grant"` // to be reported
	Token   string            `json:"token"` // its ID: a digest
	Label   string            `json:"label,omitempty"`
	WaitMS  int64             `json:"wait_ms"`           // how long it took
	Headers map[string]string `json:"headers,omitempty"` // to be sent, if tokens may leave the process
	URL     string            `json:"url,omitempty"`     // likewise, where a token is a part of the address
}

// A reportRequest tells what the origin has said.
type reportRequest struct {
	Grant   string            `json:"grant"`
	Status  int               `json:"status"` // 0: there was no response
	Headers map[string]string `json:"headers"`
	Units   map[string]int    `json:"units"` // that were really used, where they are not those that were taken
}

// A reportAnswer says what to do next.
type reportAnswer struct {
	Retry  bool   `json:"retry"`   // take again, and send the request again
	WaitMS int64  `json:"wait_ms"` // how long what was refused is paused; the next take waits by itself
	Reason string `json:"reason,omitempty"`
}

// A held request waits in a Transport for what is reported of it: to the Transport the program that has the grant is the
// network.
type held struct {
	sent     chan *http.Request // with its token
	reported chan *http.Response
	done     chan outcome
}

type outcome struct {
	resp *http.Response
	err  error
}

type heldKey struct{}

var errNotReported = errors.New("no response was reported")

// handOver is the Base of a Transport whose requests others send.
type handOver struct{}

// RoundTrip implements [http.RoundTripper].
func (handOver) RoundTrip(r *http.Request) (*http.Response, error) {
	h := r.Context().Value(heldKey{}).(*held)
	_ = r.Body.Close()
	h.sent <- r
	timer := time.NewTimer(reportWithin)
	defer timer.Stop()
	select {
	case resp := <-h.reported:
		if resp == nil {
			return nil, errNotReported
		}
		resp.Request = r
		return resp, nil
	case <-timer.C:
		return nil, errNotReported
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// Grants are those that were handed out and not reported.
type grants struct {
	mu      sync.Mutex
	waiting map[string]*held
}

func (g *grants) add(id string, h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[id] = h
}

// remove returns a grant, once.
func (g *grants) remove(id string) *held {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.waiting[id]
	delete(g.waiting, id)
	return h
}

// decode reads the JSON of a request, strictly. It reports whether it could; if not, it has answered.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem{http.StatusMethodNotAllowed, reasonRequest, "send it by POST, as JSON", 0}.write(w)
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostKept))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		badRequest("the body is not what is expected: %s", strings.TrimPrefix(err.Error(), "json: ")).write(w)
		return false
	}
	return true
}

// take answers with a slot, when it has come.
func (s *Server) take(w http.ResponseWriter, r *http.Request, routes *routes) {
	var asked takeRequest
	if !decode(w, r, &asked) {
		return
	}
	b := routes.budgets[asked.Budget]
	if b == nil {
		problem{http.StatusNotFound, reasonRequest, fmt.Sprintf("the configuration has no budget %q", asked.Budget), 0}.write(w)
		return
	}
	longest, err := parseWait("max_wait", asked.MaxWait, routes.config)
	if err != nil {
		badRequest("%v", err).write(w)
		return
	}
	o := options{longest: longest, cost: asked.Cost, scopes: asked.Scopes, reserve: asked.Reserve, units: asked.Units, caller: asked.Caller}
	if asked.Cost < 0 || asked.Reserve < 0 || asked.Reserve > 0.999 {
		badRequest("cost must not be negative, and reserve is a share from 0 to 0.999").write(w)
		return
	}
	req, p, ok := asked.request(b, routes)
	if !ok {
		p.write(w)
		return
	}
	caller := s.callers.name(o.caller)
	s.callers.begin(b.name, caller)
	defer s.callers.end(b.name, caller)

	// The request goes on after this handler has answered, until its response is reported.
	waits, stop := bound(context.WithoutCancel(r.Context()), o.longest)
	leaves := context.AfterFunc(r.Context(), stop)
	h := &held{sent: make(chan *http.Request, 1), reported: make(chan *http.Response, 1), done: make(chan outcome, 1)}
	ctx := o.context(context.WithValue(waits, heldKey{}, h))
	ctx = ration.WithRetries(ctx, ration.RetryPolicy{Max: -1})
	id := rand.Text()
	s.grants.add(id, h) // nobody knows it yet
	go func() {
		defer stop()
		resp, err := b.hands.RoundTrip(req.WithContext(ctx))
		s.grants.remove(id)
		h.done <- outcome{resp, err}
	}()
	select {
	case end := <-h.done:
		leaves()
		p := s.whyNot(waits, end.err)
		s.callers.refused(b.name, caller, p.reason)
		p.write(w)
	case out := <-h.sent:
		leaves()
		answer := takeAnswer{Grant: id, Token: waits.grant.Token.ID(), Label: waits.grant.Token.Label, WaitMS: waits.grant.Waited.Milliseconds()}
		if b.config.HandOut {
			answer.attached(req, out)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// request returns the request that the program is going to send, as far as it is known.
func (t takeRequest) request(b *budget, routes *routes) (req *http.Request, p problem, ok bool) {
	address := t.URL
	if address == "" {
		address = b.targets[0].scheme + "://" + b.targets[0].host + "/"
	}
	method := strings.ToUpper(t.Method)
	if method == "" {
		method = http.MethodGet
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, badRequest("url is %q: write it whole, with https://", address), false
	}
	to, found := routes.hosts[canonical(u.Host, u.Scheme)]
	if !found || to.budget != b {
		return nil, problem{http.StatusForbidden, reasonHost, fmt.Sprintf("%q is no host of the budget %q", u.Host, b.name), 0}, false
	}
	u.Scheme, u.Host, u.User = to.scheme, to.host, nil // as the Transport knows the host: to any other it attaches nothing
	// A body that cannot be read again keeps the Transport from sending it again by itself.
	if req, err = http.NewRequest(method, u.String(), io.NopCloser(strings.NewReader("-"))); err != nil {
		return nil, badRequest("%v", err), false
	}
	return req, p, true
}

// attached tells what the Transport has attached.
func (a *takeAnswer) attached(before, out *http.Request) {
	a.Headers = make(map[string]string)
	for name := range out.Header {
		if out.Header.Get(name) != before.Header.Get(name) {
			a.Headers[name] = out.Header.Get(name)
		}
	}
	if out.URL.String() != before.URL.String() {
		a.URL = out.URL.String()
	}
}

// report has the Transport read what the origin has said.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	var told reportRequest
	if !decode(w, r, &told) {
		return
	}
	if told.Status != 0 && (told.Status < 100 || told.Status > 599) {
		badRequest("status is %d: write one of HTTP, or 0 if there was no response", told.Status).write(w)
		return
	}
	h := s.grants.remove(told.Grant)
	if h == nil {
		problem{http.StatusNotFound, reasonGrant, fmt.Sprintf("no grant %q waits for its report: it was reported, or more than %v have passed", told.Grant, reportWithin), 0}.write(w)
		return
	}
	var resp *http.Response
	if told.Status != 0 {
		resp = &http.Response{StatusCode: told.Status, Status: fmt.Sprint(told.Status, " ", http.StatusText(told.Status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: make(http.Header), Body: http.NoBody}
		for name, value := range told.Headers {
			resp.Header.Add(name, value)
		}
	}
	h.reported <- resp
	end := <-h.done
	if grant, found := ration.GrantOf(end.resp); found && len(told.Units) > 0 {
		if err := grant.RecordUnits(r.Context(), told.Units); err != nil {
			problem{http.StatusUnprocessableEntity, reasonRequest, fmt.Sprintf("the response was read, but not the units: %s", strings.TrimPrefix(err.Error(), "ration: ")), 0}.write(w)
			return
		}
	}
	var answer reportAnswer
	if end.err == nil {
		if f, found := ration.FeedbackOf(end.resp); found {
			answer.Retry = f.Refused || told.Status >= 500
			if f.Refused {
				answer.Reason, answer.WaitMS = string(f.Reason), f.Wait.Value.Milliseconds()
			}
		}
	} else if told.Status == 0 {
		answer.Retry = true
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
