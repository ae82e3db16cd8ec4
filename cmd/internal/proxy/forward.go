package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ration-go/ration"
)

// mostKept is how long a body may be that is kept to be sent again. A longer one, or one of unknown length, is sent once, as it
// comes.
const mostKept = 1 << 20

// bodyWithin is how long a client may take to send such a body.
const bodyWithin = time.Minute

// A passage is a request on its way through.
type passage struct {
	route
	caller string
	url    *url.URL
	wait   *wait
	secret atomic.Pointer[string] // with which it was sent last; nil: it was not
}

type passageKey struct{}

func passageOf(ctx context.Context) *passage { p, _ := ctx.Value(passageKey{}).(*passage); return p }

// forward sends a request to a host, once a slot has come.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, routes *routes, host, path string) {
	to, p, ok := routes.find(r, host)
	if !ok {
		p.write(w)
		return
	}
	if r.Header.Get("Upgrade") != "" {
		problem{http.StatusNotImplemented, reasonUpgrade, "the proxy counts requests, and cannot see those within a WebSocket or another protocol", 0}.write(w)
		return
	}
	if r.Header.Get("Authorization") != "" {
		if routes.config.Authorization == refuse {
			problem{http.StatusBadRequest, reasonAuth, "the proxy attaches a token itself: send no Authorization, or have it dropped by authorization: drop", 0}.write(w)
			return
		}
		r.Header.Del("Authorization")
	}
	unescaped, err := url.PathUnescape(path)
	if err != nil {
		badRequest("the path is wrong: %v", err).write(w)
		return
	}
	o, err := optionsOf(r.Header, routes.config)
	if err != nil {
		badRequest("%v", err).write(w)
		return
	}
	if err := keepBody(w, r); err != nil {
		badRequest("the body could not be read: %v", err).write(w)
		return
	}
	waits, stop := s.bound(r.Context(), o.longest)
	defer stop()
	pass := &passage{route: to, caller: s.callers.name(o.caller), wait: waits,
		url: &url.URL{Scheme: to.scheme, Host: to.host, Path: unescaped, RawPath: path, RawQuery: r.URL.RawQuery}}
	ctx := o.context(context.WithValue(waits, passageKey{}, pass))
	ctx = ration.WithTrace(ration.WithRetries(ctx, waits.retries()), waits.trace())
	s.callers.begin(to.budget.name, pass.caller)
	defer s.callers.end(to.budget.name, pass.caller)
	if to.budget.inQuery {
		w = finalWriter{w}
	}
	s.reverse.ServeHTTP(w, r.WithContext(ctx))
}

// find returns the host of the configuration that a request is for.
func (t *routes) find(r *http.Request, host string) (to route, p problem, ok bool) {
	if r.URL.User != nil || strings.Contains(host, "@") {
		return to, badRequest("a user in the address of the host is not sent on"), false
	}
	for _, scheme := range []string{"https", "http"} {
		// Which scheme is spoken to a host says the configuration.
		if to, ok = t.hosts[canonical(host, scheme)]; ok && (to.scheme == scheme || r.URL.IsAbs()) {
			return to, p, true
		}
	}
	return to, problem{http.StatusForbidden, reasonHost, fmt.Sprintf("the configuration has no host %q: write /HOST/PATH with a HOST of it", host), 0}, false
}

// Options are what a client asks of the proxy, by headers that are not sent on.
type options struct {
	longest time.Duration
	caller  string
	cost    int // 0: the budget's
	scopes  []string
	reserve float64
	units   map[string]int
}

func optionsOf(h http.Header, config *Config) (o options, err error) {
	if o.longest, err = parseWait("Ration-Max-Wait", take(h, "Ration-Max-Wait"), config); err != nil {
		return o, err
	}
	if text := take(h, "Ration-Cost"); text != "" {
		if o.cost, err = strconv.Atoi(text); err != nil || o.cost < 1 {
			return o, fmt.Errorf("Ration-Cost is %q: write a number of units from 1 on", text)
		}
	}
	if text := take(h, "Ration-Reserve"); text != "" {
		if o.reserve, err = strconv.ParseFloat(text, 64); err != nil || o.reserve < 0 || o.reserve > 0.999 {
			return o, fmt.Errorf("Ration-Reserve is %q: write a share from 0 to 0.999", text)
		}
	}
	for scope := range strings.SplitSeq(take(h, "Ration-Scopes"), ",") {
		if scope = strings.TrimSpace(scope); scope != "" {
			o.scopes = append(o.scopes, scope)
		}
	}
	o.caller = take(h, "Ration-Caller")
	return o, nil
}

// parseWait returns the longest wait that a client asks for by a name, which the configuration bounds. Empty: that of the configuration.
func parseWait(name, text string, config *Config) (time.Duration, error) {
	most := time.Duration(config.MaxWait)
	if text == "" {
		return most, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is %q: write a duration such as 10s", name, text)
	}
	return min(d, most), nil
}

func take(h http.Header, name string) string {
	text := h.Get(name)
	h.Del(name)
	return text
}

// context returns a context that tells the Transport.
func (o options) context(ctx context.Context) context.Context {
	if o.cost > 0 {
		ctx = ration.WithCost(ctx, o.cost)
	}
	if o.scopes != nil {
		ctx = ration.WithScopes(ctx, o.scopes...)
	}
	if o.reserve > 0 {
		ctx = ration.WithReserve(ctx, o.reserve)
	}
	if o.units != nil {
		ctx = ration.WithUnits(ctx, o.units)
	}
	return ctx
}

// keepBody reads a short body, so that a slow client does not hold a slot and the request can be sent again.
func keepBody(w http.ResponseWriter, r *http.Request) error {
	control := http.NewResponseController(w)
	if r.ContentLength <= 0 || r.ContentLength > mostKept {
		if r.ContentLength != 0 {
			r.Body = &timedBody{r.Body, control}
		}
		return nil
	}
	_ = control.SetReadDeadline(time.Now().Add(bodyWithin))
	text, err := io.ReadAll(io.LimitReader(r.Body, r.ContentLength)) // which grows as it comes
	if err == nil && int64(len(text)) < r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	_ = control.SetReadDeadline(time.Time{})
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	r.Body, _ = r.GetBody()
	return nil
}

// A timedBody is one that is sent as it comes. A client that sends nothing of it for bodyWithin is gone.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements [io.Reader].
func (b *timedBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(bodyWithin))
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// rewrite makes a request the origin's.
func rewrite(r *httputil.ProxyRequest) {
	p := passageOf(r.In.Context())
	r.Out.URL, r.Out.Host = p.url, ""
	if p.budget.inQuery {
		// What is compressed, or a part, cannot be looked through: hide.go.
		r.Out.Header.Set("Accept-Encoding", "identity")
		r.Out.Header.Del("Range")
		r.Out.Header.Del("If-Range")
	}
}

// transportOf sends each request by the Transport of its budget.
type transportOf struct{}

// RoundTrip implements [http.RoundTripper].
func (transportOf) RoundTrip(r *http.Request) (*http.Response, error) {
	p := passageOf(r.Context())
	ctx := context.WithValue(r.Context(), dialKey{}, p.isFree())
	return p.budget.sends.RoundTrip(r.WithContext(ctx))
}

// isFree reports whether the host may be at a private address.
func (p *passage) isFree() bool { return p.named || p.budget.config.Private }

// answered adds to the origin's response what the client wants to know of its slot.
func (s *Server) answered(resp *http.Response) error {
	for name := range resp.Header {
		if strings.HasPrefix(name, "Ration-") {
			resp.Header.Del(name) // which only the proxy says
		}
	}
	p := passageOf(resp.Request.Context())
	p.wait.answered()
	s.callers.answered(p.budget.name, p.caller, resp.StatusCode)
	g, found := ration.GrantOf(resp)
	if !found {
		return nil
	}
	if secret := p.secret.Load(); secret != nil {
		if err := hide(resp, *secret, g.Token.ID(), p.budget.inQuery); err != nil {
			return err
		}
	}
	resp.Header.Set("Ration-Waited", g.Waited.Round(time.Millisecond).String())
	resp.Header.Set("Ration-Token", g.Token.ID())
	if left, known := p.budget.left.of(resp.Request.Context(), p.budget.pool); known {
		resp.Header.Set("Ration-Remaining", strconv.Itoa(left))
	}
	return nil
}

// failed answers a request that got no response.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	p := s.whyNot(r.Context(), err)
	pass := passageOf(r.Context())
	s.callers.refused(pass.budget.name, pass.caller, p.reason)
	p.write(w)
}

// Remaining is what is left of a budget, asked of the store once a second at most.
type remaining struct {
	mu    sync.Mutex
	at    time.Time
	left  int
	known bool
}

func (r *remaining) of(ctx context.Context, pool *ration.Pool) (left int, known bool) {
	r.mu.Lock()
	now := time.Now()
	if now.Sub(r.at) < time.Second {
		defer r.mu.Unlock()
		return r.left, r.known
	}
	r.at = now // others that come meanwhile get what is known
	r.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
	defer stop()
	left, err := pool.Remaining(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.known = left, err == nil
	return r.left, r.known
}

// errAddress says that a host is at an address that must not be reached.
var errAddress = errors.New("its address is of this machine or its network")

type dialKey struct{}

// forbidden are further addresses at which clouds tell secrets, and those that stand for others.
var forbidden = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("64:ff9b::/96")}

// dialChecked connects to a host. The address that is checked is the one that is connected to, whatever a name server says before or
// after.
func dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	free, _ := ctx.Value(dialKey{}).(bool)
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		ip := at.Addr().Unmap()
		// Link-local addresses are where clouds tell secrets to the machine.
		if slices.ContainsFunc(forbidden, func(p netip.Prefix) bool { return p.Contains(ip) }) || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || !free && (ip.IsLoopback() || ip.IsPrivate()) {
			return fmt.Errorf("%s is %s: %w; private: true allows private ones", address, ip, errAddress)
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}
