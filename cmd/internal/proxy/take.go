package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
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
	Hint    string            `json:"hint,omitempty"`    // why the program cannot know which token to send
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

	id   string // as which it was handed out; grants.mu protects it, and over
	over bool   // no report is waited for any more
}

type outcome struct {
	resp *http.Response
	err  error
}

type (
	heldKey struct{}
	toldKey struct{} // of the response, a *http.Response, to a grant that was taken elsewhere
)

var errNotReported = errors.New("no response was reported")

// handOver is the Base of a Transport whose requests others send.
type handOver struct{}

// RoundTrip implements [http.RoundTripper].
func (handOver) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	if resp, elsewhere := r.Context().Value(toldKey{}).(*http.Response); elsewhere {
		return answer(r, resp)
	}
	h := r.Context().Value(heldKey{}).(*held)
	h.sent <- r
	timer := time.NewTimer(reportWithin)
	defer timer.Stop()
	select {
	case resp := <-h.reported:
		return answer(r, resp)
	case <-timer.C:
		return nil, errNotReported
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// answer answers a request by what was reported; nil: there was no response.
func answer(r *http.Request, resp *http.Response) (*http.Response, error) {
	if resp == nil {
		return nil, errNotReported
	}
	resp.Request = r
	return resp, nil
}

// decode reads the JSON of a request, strictly. It reports whether it could; if not, it has answered.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem{http.StatusMethodNotAllowed, reasonRequest, "send it by POST, as JSON", 0}.write(w)
		return false
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyWithin))
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostKept))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		badRequest("the body is not what is expected: %s", strings.TrimPrefix(err.Error(), "json: ")).write(w)
		return false // the deadline stays, as the server reads what is left
	}
	_ = control.SetReadDeadline(time.Time{})
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
	o := asked.options(longest)
	if asked.Cost < 0 || asked.Reserve < 0 || asked.Reserve > 0.999 {
		badRequest("cost must not be negative, and reserve is a share from 0 to 0.999").write(w)
		return
	}
	req, p, ok := asked.request(b, routes)
	if !ok {
		p.write(w)
		return
	}
	seal, err := s.seals(r.Context())
	if err != nil {
		s.whyNot(r.Context(), err).write(w)
		return
	}
	caller := s.callers.name(o.caller)
	s.callers.begin(b.name, caller)
	defer s.callers.end(b.name, caller)

	// The request goes on after this handler has answered, until its response is reported.
	waits, stop := s.bound(context.WithoutCancel(r.Context()), o.longest)
	leaves := context.AfterFunc(r.Context(), stop)
	h := &held{sent: make(chan *http.Request, 1), reported: make(chan *http.Response, 1), done: make(chan outcome, 1)}
	ctx := o.context(context.WithValue(waits, heldKey{}, h))
	ctx = ration.WithRetries(ctx, ration.RetryPolicy{Max: -1})
	s.grants.begin()
	go func() {
		defer stop()
		end := recovered(func() (*http.Response, error) { return b.hands.RoundTrip(req.WithContext(ctx)) })
		s.grants.end(h)
		h.done <- end
	}()
	select {
	case end := <-h.done:
		leaves()
		p := s.whyNot(waits, end.err)
		s.callers.refused(b.name, caller, p.reason)
		p.write(w)
	case out := <-h.sent:
		leaves()
		id, err := seal.close(asked, b.name, waits.grant)
		if err != nil { // which it cannot be: the grant is one of ours
			stop()
			s.whyNot(waits, err).write(w)
			return
		}
		s.grants.add(id, h)
		answer := takeAnswer{Grant: id, Token: waits.grant.Token.ID(), Label: waits.grant.Token.Label, WaitMS: waits.grant.Waited.Milliseconds()}
		if b.config.HandOut {
			answer.attached(req, out)
		} else if answer.Label == "" {
			answer.Hint = "no token is handed out: write hand_out_tokens: true for the budget, or a label for each token by which the program knows its own"
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// recovered sends a request in a goroutine in which nobody else recovers: whatever a request makes of a panic, the proxy goes on.
func recovered(send func() (*http.Response, error)) (end outcome) {
	defer func() {
		if value := recover(); value != nil {
			end = outcome{err: fmt.Errorf("%w: %v", errPanic, value)}
		}
	}()
	resp, err := send()
	return outcome{resp, err}
}

var errPanic = errors.New("the request could not be handled, and that is a fault of the proxy")

// options returns what the program asks for beside its request.
func (t takeRequest) options(longest time.Duration) options {
	return options{longest: longest, cost: t.Cost, scopes: t.Scopes, reserve: t.Reserve, units: t.Units, caller: t.Caller}
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

// report has the Transport read what the origin has said: of a grant that this proxy has handed out the one that waits for it, of any
// other one of the fleet one that books nothing.
func (s *Server) report(w http.ResponseWriter, r *http.Request, routes *routes) {
	var told reportRequest
	if !decode(w, r, &told) {
		return
	}
	if told.Status != 0 && (told.Status < 100 || told.Status > 599) {
		badRequest("status is %d: write one of HTTP, or 0 if there was no response", told.Status).write(w)
		return
	}
	resp := told.response()
	var end outcome
	if h := s.grants.own(told.Grant); h != nil {
		h.reported <- resp
		end = <-h.done
	} else {
		seal, err := s.seals(r.Context())
		if err != nil {
			s.whyNot(r.Context(), err).write(w)
			return
		}
		grant, known := seal.open(told.Grant)
		if !known || !s.grants.once(told.Grant) {
			problem{http.StatusNotFound, reasonGrant, fmt.Sprintf("no grant %.40q waits for its report: it was reported, or more than %v have passed", told.Grant, reportWithin), 0}.write(w)
			return
		}
		if end = s.reportElsewhere(r.Context(), routes, grant, resp); end.resp == nil && told.Status != 0 {
			s.grants.forget(told.Grant)
			s.whyNot(r.Context(), end.err).write(w)
			return
		}
	}
	if grant, found := ration.GrantOf(end.resp); found && len(told.Units) > 0 {
		if err := grant.Settle(r.Context(), told.Units); err != nil {
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

// response returns what was reported; nil: there was no response.
func (t reportRequest) response() *http.Response {
	if t.Status == 0 {
		return nil
	}
	resp := &http.Response{StatusCode: t.Status, Status: fmt.Sprint(t.Status, " ", http.StatusText(t.Status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: http.NoBody}
	for name, value := range t.Headers {
		resp.Header.Add(name, value)
	}
	return resp
}

// reportElsewhere has the budget's Transport read what was reported of a grant that another proxy has handed out, or this one before it
// was started again.
func (s *Server) reportElsewhere(ctx context.Context, routes *routes, grant sealed, resp *http.Response) outcome {
	b := routes.budgets[grant.Budget]
	if b == nil {
		return outcome{err: fmt.Errorf("the configuration has no budget %q", grant.Budget)}
	}
	req, p, ok := grant.Take.request(b, routes)
	if !ok {
		return outcome{err: errors.New(p.detail)}
	}
	ctx = grant.Take.options(0).context(context.WithValue(context.WithoutCancel(ctx), toldKey{}, resp))
	ctx = ration.WithGrant(ration.WithRetries(ctx, ration.RetryPolicy{Max: -1}), grant.Grant)
	return recovered(func() (*http.Response, error) { return b.hands.RoundTrip(req.WithContext(ctx)) })
}
