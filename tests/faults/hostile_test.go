package faults_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// In this file is what a hostile provider, or one who stands in its place, may try.

// A town is all hosts at once: whatever is dialled, its plain server or the one with
// TLS takes the connection, as if all their names were known.
type town struct {
	base *http.Transport

	mu   sync.Mutex // protects seen
	seen []string   // scheme, host and all that a request carried
}

// newTown starts one in which api.test redirects to a URL, and other hosts to nowhere.
func newTown(t *testing.T, to string) *town {
	x := new(town)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		x.mu.Lock()
		x.seen = append(x.seen, fmt.Sprint(scheme, "://", r.Host, " ", r.URL, " ", r.Header))
		x.mu.Unlock()
		if scheme == "https" && r.Host == "api.test" && r.URL.Path == "/" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	x.base = &http.Transport{
		// The certificate is for example.com.
		TLSClientConfig: &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			server := plain
			if strings.HasSuffix(addr, "443") {
				server = secure
			}
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	t.Cleanup(x.base.CloseIdleConnections)
	return x
}

// A redirect takes the token nowhere but to where the caller sent it, by whatever
// header it goes, and names it in no Referer.
func TestRedirectTakesTheTokenNowhereElse(t *testing.T) {
	const secret = "SECRET+of/47"
	attaches := map[string]provider.Attach{
		"bearer": nil,
		"header": provider.HeaderNamed("X-Api-Key"),
		"cookie": func(req *http.Request, secret string) error {
			req.AddCookie(&http.Cookie{Name: "session", Value: secret})
			return nil
		},
		"basic": func(req *http.Request, secret string) error {
			req.SetBasicAuth("key", secret)
			return nil
		},
		"query": provider.QueryNamed("access_token"),
	}
	forms := []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte("key:" + secret))}
	has := func(seen string) bool {
		for _, form := range forms {
			if strings.Contains(seen, form) {
				return true
			}
		}
		return false
	}
	for _, row := range []struct {
		name, to string
		trusted  bool // it is where the caller went
	}{
		{"same host", "https://api.test/2", true},
		{"relative", "/2", true},
		{"foreign host", "https://evil.test/", false},
		{"http", "http://api.test/2", false},
		{"metadata service", "http://169.254.169.254/latest/meta-data/", false},
		{"metadata service, TLS", "https://169.254.169.254/", false},
		{"subdomain that was taken over", "https://old.api.test/", false},
		{"domain above", "https://test/", false},
		{"name that begins alike", "https://api.test.evil.test/", false},
		{"name in the user's place", "https://api.test@evil.test/", false},
		{"other port", "https://api.test:8443/", false},
		{"dot at the end", "https://api.test./", false},
	} {
		for name, attach := range attaches {
			for _, hosts := range [][]string{nil, {"api.test:443", "api.test"}} {
				t.Run(fmt.Sprint(row.name, " ", name, " ", hosts), func(t *testing.T) {
					if row.name == "other port" && hosts != nil {
						t.Skip("a name without a port is that of all of the host's ports")
					}
					town := newTown(t, row.to)
					budget, token := rationtest.NewBudget(ration.PerHour(10)), ration.NewToken(secret)
					client := &http.Client{Transport: &ration.Transport{Base: town.base, Attach: attach, Hosts: hosts, Pool: ration.NewPool(budget, token)}}
					resp, err := client.Post("https://api.test/", "text/plain", strings.NewReader("content"))
					require.NoError(t, err)
					rationtest.Drain(t, resp)
					require.Len(t, town.seen, 2)
					require.True(t, has(town.seen[0]), town.seen[0])
					require.Equal(t, row.trusted, has(town.seen[1]), town.seen[1])
					want := 9
					if row.trusted {
						want = 8
					}
					left, err := budget.Remaining(t.Context(), token)
					require.NoError(t, err)
					require.Equal(t, want, left)
				})
			}
		}
	}
}

// hostileHeaders are what an answer's head may be, on the wire.
func hostileHeaders() map[string]string {
	long, lots := strings.Repeat("9", 1<<20), new(strings.Builder)
	for i := range 10_000 {
		fmt.Fprintf(lots, "X-RateLimit-Remaining-%d: 0\r\nX-RateLimit-Remaining: %d\r\n", i, i)
	}
	return map[string]string{
		"1 MB":               "Retry-After: " + long + "\r\nX-RateLimit-Limit: " + long + "\r\nRateLimit: \"" + long + "\";r=0\r\n",
		"1 MB of commas":     "RateLimit: " + strings.Repeat("a,", 1<<19) + "\r\nRetry-After: " + strings.Repeat("1,", 1<<19) + "\r\n",
		"not UTF-8":          "Retry-After: \xff\xfe\x80\r\nX-RateLimit-Limit: \xc3\x28\r\nX-RateLimit-Resource: \xf0\x28\x8c\x28\r\n",
		"10,000 headers":     lots.String(),
		"CR alone":           "X-RateLimit-Resource: a\rInjected: b\r\n",
		"folded":             "Retry-After: 1\r\n 2\r\n",
		"NUL":                "X-RateLimit-Resource: a\x00b\r\n",
		"name with a space":  "Retry After: 5\r\n",
		"no name":            ": 5\r\n",
		"no colon":           "Retry-After\r\n",
		"numbers of no size": "X-RateLimit-Limit: 1e400\r\nX-RateLimit-Remaining: -1e400\r\nX-RateLimit-Reset: 99999999999999999999999\r\n",
	}
}

// Whatever stands in the head of an answer, the caller has what it would have without a
// Transport, at the cost of not much more memory than the head itself.
func TestHostileHeadersOnTheWire(t *testing.T) {
	for name, header := range hostileHeaders() {
		for _, status := range []string{"200 OK", "403 Forbidden", "429 Too Many Requests"} {
			t.Run(name+" "+status[:3], func(t *testing.T) {
				address := answersWith(t, "HTTP/1.1 "+status+"\r\n"+header+"Content-Length: 2\r\n\r\nok")
				base := &http.Transport{DisableKeepAlives: true}
				budget, token := rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a")
				fetch := func(rt http.RoundTripper) (resp *http.Response, failure string, took uint64) {
					var err error
					took = allocated(func() { resp, err = rt.RoundTrip(rationtest.NewRequest(t, http.MethodGet, address, nil)) })
					if err != nil {
						return nil, err.Error(), took
					}
					require.Equal(t, "ok", rationtest.Drain(t, resp))
					return resp, "", took
				}
				plain, failure, needed := fetch(base)
				resp, same, took := fetch(&ration.Transport{Base: base, Pool: ration.NewPool(budget, token), Retries: ration.RetryPolicy{Max: -1}})
				require.Equal(t, failure, same)
				if plain != nil {
					require.Equal(t, plain.StatusCode, resp.StatusCode)
					require.Equal(t, plain.Header, resp.Header)
				}
				require.LessOrEqual(t, took, 8*needed+1<<20)
				if plain != nil {
					answer := provider.Response{Status: plain.StatusCode, Header: plain.Header, Arrived: time.Now()}
					require.LessOrEqual(t, allocated(func() { rationtest.RequireBoundedFeedback(t, presets.Meta().Read(answer)) }), 8*needed+1<<20)
				}
				rationtest.RequireRemaining(t, budget, token, 99)
			})
		}
	}
}

// allocated returns how many bytes were allocated meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// answersWith starts a server that answers each request with these bytes.
func answersWith(t *testing.T, answer string) (address string) {
	t.Helper()
	return "http://" + listens(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, answer)
		}
	})
}

// A value that no header may have is not sent: neither the caller's own nor the token.
// What is said of it does not show the secret, and nothing is spent.
func TestHostileRequestIsNotSent(t *testing.T) {
	const control = "the secret has a line break or another control character"
	for _, row := range []struct{ name, secret, header, want string }{
		{"token with a line end", "SECRET\r\nX-Injected: 1", "fine", control},
		{"token with a NUL", "SECRET\x00", "fine", control},
		{"header with a line end", "SECRET", "a\r\nX-Injected: 1", "invalid header field value"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := rationtest.NewWire(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it was sent: %v", r.Header) })
			w.Token = ration.NewToken(row.secret)
			client := &http.Client{Transport: &ration.Transport{Base: w.Base, Pool: ration.NewPool(w.Budget, w.Token)}}
			content := &countedBody{Reader: strings.NewReader("content")}
			req := rationtest.NewRequest(t, http.MethodPost, w.URL, content)
			req.Header.Set("X-Mine", row.header)
			_, err := client.Do(req)
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "SECRET")
			require.EqualValues(t, 1, content.closed.Load())
			w.RequireSpent(t, 0)
		})
	}
}

// Whatever a header holds, also what no server could send, nothing panics and what is
// made of it is bounded.
//
//	go test -run '^$' -fuzz FuzzHostileHeaders -fuzztime 10m ./tests/faults
func FuzzHostileHeaders(f *testing.F) {
	for _, name := range []string{"Retry-After", "X-RateLimit-Remaining", "RateLimit", "RateLimit-Policy", "X-RateLimit-Resource", "Date", "WWW-Authenticate"} {
		for _, value := range []string{"a\r\nInjected: b", "\xff\xfe", strings.Repeat("9", 1<<12), strings.Repeat(`"a";r=0;t=1,`, 100), "\x00"} {
			f.Add(429, name, value, uint16(1))
			f.Add(200, name, value, uint16(1000))
		}
	}
	f.Fuzz(func(t *testing.T, status int, name, value string, times uint16) {
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			resp := rationtest.Respond(req, status, "", nil)
			for i := range int(times % 10_000) {
				resp.Header[fmt.Sprint(name, i/2)] = []string{value, value}
			}
			resp.Header[http.CanonicalHeaderKey(name)] = []string{value}
			return resp, nil
		})
		transport := &ration.Transport{Base: api, Retries: ration.RetryPolicy{Max: -1}, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))}
		resp, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		require.NoError(t, err)
		require.Equal(t, status, resp.StatusCode)
		require.Equal(t, []string{value}, resp.Header[http.CanonicalHeaderKey(name)])
		rationtest.RequireBoundedFeedback(t, (*ration.Provider)(nil).ReadResponse(resp, time.Now()))
	})
}
