package proxy_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/cmd/internal/proxy"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

const metered = `
budgets:
  NAME:
    hosts: ["api.example.com"]
    preset: discord
    limits: ["50/1h", "100/1h:unit=tokens", "5/1h:per=route"]
    tokens: [{env: TEST_TOKENS}]
    hand_out_tokens: true
`

// post posts JSON and returns the answer.
func post(t *testing.T, address, said string) (status int, answer map[string]any) {
	t.Helper()
	resp, err := http.Post(address, "application/json", strings.NewReader(said))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}

// A grant that one proxy has handed out is reported to another one of the fleet, or to the same one when it was started again: what was
// used counts, with its units and for its route, and a refusal pauses the fleet. Nobody else's is taken, and none twice.
func TestAnyProxyOfAFleetTakesAReport(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	start := func(key string) (*proxy.Server, string) {
		s := &proxy.Server{Store: &ration.RedisStore{Client: server.Client(t)}, Key: func(context.Context) ([]byte, error) { return []byte(key), nil }}
		require.NoError(t, s.Use(load(t, strings.ReplaceAll(metered, "NAME", name))))
		front := httptest.NewServer(s)
		t.Cleanup(front.Close)
		return s, front.URL
	}
	_, first := start("the fleet's")
	_, second := start("the fleet's")
	_, stranger := start("another fleet's")
	take := func() string {
		t.Helper()
		status, answer := post(t, first+"/v1/take", fmt.Sprintf(`{"budget": %q, "url": "https://api.example.com/channels/1/a%%00b", "units": {"tokens": 90}}`, name))
		require.Equal(t, 200, status, answer)
		return answer["grant"].(string)
	}
	report := func(to, grant, more string) (int, map[string]any) {
		return post(t, to+"/v1/report", fmt.Sprintf(`{"grant": %q, %s}`, grant, more))
	}
	take()
	grant := take()
	status, answer := post(t, first+"/v1/take", fmt.Sprintf(`{"budget": %q, "units": {"tokens": 90}, "max_wait": "0s"}`, name))
	require.Equal(t, 503, status, "two tokens have 200 units: %v", answer)
	status, answer = report(stranger, grant, `"status": 200`)
	require.Equal(t, 404, status, answer)
	payload, signature, _ := strings.Cut(grant, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	for _, forged := range []string{payload, payload + ".", payload + "." + signature[1:], "x." + signature,
		base64.RawURLEncoding.EncodeToString(append(text, ' ')) + "." + signature} {
		status, _ := report(second, forged, `"status": 429`)
		require.Equal(t, 404, status, forged)
	}
	status, answer = report(second, grant, `"status": 200, "units": {"tokens": 10}`)
	require.Equal(t, 200, status, answer)
	status, _ = report(second, grant, `"status": 200`)
	require.Equal(t, 404, status, "twice")
	take() // which the units that were not used make possible

	status, answer = report(second, take2(t, first, name), `"status": 429, "headers": {"Retry-After": "30", "X-RateLimit-Global": "true"}`)
	require.Equal(t, []any{200, true, 30000.0}, []any{status, answer["retry"], answer["wait_ms"]})
}

// take2 takes a slot without units of tokens.
func take2(t *testing.T, front, name string) string {
	t.Helper()
	status, answer := post(t, front+"/v1/take", fmt.Sprintf(`{"budget": %q, "units": {"tokens": 0}}`, name))
	require.Equal(t, 200, status, answer)
	return answer["grant"].(string)
}

// A proxy that is stopped tells all who wait for a slot, and all who come, to come again, serves what is under way, and takes reports
// until no grant is out.
func TestTheEndAnswersAll(t *testing.T) {
	under := make(chan struct{}, 1)
	goOn := make(chan struct{})
	s, front, host := serve(t, strings.Replace(simple, "1000/1s", "2/40s", 1), func(http.ResponseWriter, *http.Request) {
		under <- struct{}{}
		<-goOn
	})
	var all sync.WaitGroup
	all.Go(func() {
		resp, _ := do(t, "GET", front+"/"+host+"/under-way")
		assert.Equal(t, 200, resp.StatusCode)
	})
	<-under
	_, answer := post(t, front+"/v1/take", `{"budget": "api"}`)
	grant := answer["grant"].(string)
	for range 2 {
		post(t, front+"/v1/report", fmt.Sprintf(`{"grant": %q, "status": 200}`, mustTake(t, front)))
	}
	ends := func(resp *http.Response) {
		assert.Equal(t, []any{503, "ending", "1"}, []any{resp.StatusCode, resp.Header.Get("Ration-Reason"), resp.Header.Get("Retry-After")})
	}
	for range 2 {
		all.Go(func() {
			resp, _ := do(t, "GET", front+"/"+host+"/waits", "Ration-Max-Wait", "50s")
			ends(resp)
		})
		all.Go(func() {
			resp, err := http.Post(front+"/v1/take", "application/json", strings.NewReader(`{"budget": "api"}`))
			if assert.NoError(t, err) {
				ends(resp)
				_ = resp.Body.Close()
			}
		})
	}
	require.Eventually(t, func() bool {
		_, text := do(t, "GET", front+"/metrics")
		return strings.Contains(text, "ration_proxy_requests_inside{budget=\"api\",caller=\"unnamed\"} 5")
	}, 5*time.Second, 10*time.Millisecond)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.End(t.Context())
	}()
	require.Eventually(t, func() bool {
		resp, _ := do(t, "GET", front+"/healthz")
		return resp.StatusCode == 503
	}, 5*time.Second, 10*time.Millisecond)
	resp, _ := do(t, "GET", front+"/"+host+"/comes")
	ends(resp)
	select {
	case <-ended:
		t.Error("it waits for no report")
	default:
	}
	status, answer := post(t, front+"/v1/report", fmt.Sprintf(`{"grant": %q, "status": 200}`, grant))
	require.Equal(t, 200, status, answer)
	<-ended
	close(goOn)
	all.Wait()
}

// What an API sends beside its answer has no token either, and what it compresses all the same is not passed on.
func TestATokenOfTheQueryIsInNoHintAndTrailer(t *testing.T) {
	_, front, host := serve(t, simple+"    auth: query:key\n", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/zip" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			return
		}
		w.Header().Set("Link", "</style.css?"+r.URL.RawQuery+">; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Next")
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, "picture")
		w.Header().Set("X-Next", "/?"+r.URL.RawQuery)
	})
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(h))
		return nil
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, front+"/"+host+"/", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NotEmpty(t, resp.Trailer)
	require.NotContains(t, fmt.Sprint(hints, resp.Header, resp.Trailer), "-secret")
	zipped, text := do(t, "GET", front+"/"+host+"/zip")
	require.Equal(t, http.StatusBadGateway, zipped.StatusCode, text)
}

func mustTake(t *testing.T, front string) string {
	t.Helper()
	status, answer := post(t, front+"/v1/take", `{"budget": "api"}`)
	require.Equal(t, 200, status, answer)
	return answer["grant"].(string)
}

// A program that cannot know which token to send is told so.
func TestATakeWithoutATokenSaysSo(t *testing.T) {
	_, front, _ := serve(t, simple, nil)
	_, answer := post(t, front+"/v1/take", `{"budget": "api"}`)
	require.Contains(t, answer["hint"], "hand_out_tokens: true")
	_, front, _ = serve(t, strings.Replace(simple, "TEST_TOKENS}", "TEST_TOKENS, label: team}", 1), nil)
	_, answer = post(t, front+"/v1/take", `{"budget": "api"}`)
	require.NotContains(t, answer, "hint")
}

// A token in the query does not come back: a client that follows a redirect, or a link to the next page, gets the proxy's own token again.
func TestATokenOfTheQueryStaysHere(t *testing.T) {
	_, front, host := serve(t, simple+"    auth: query:key\n", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.RawQuery
		w.Header().Set("Location", "/next?"+query)
		w.Header().Add("Link", fmt.Sprintf(`<https://%s/?page=2&%s>; rel="next", <https://%[1]s/?%[2]s&page=9>; rel="last"`, r.Host, query))
		w.Header().Set("X-Said", r.URL.Query().Get("key")+" is your key")
		w.Header().Set("Content-Type", r.URL.Query().Get("as"))
		escaped, _ := json.Marshal("https://" + r.Host + "/?" + query + "&page=2")
		fmt.Fprintf(w, `{"next": %s, "html": "<a href='/?%s'>", "key": %q}`, escaped, strings.ReplaceAll(query, "&", "&amp;"), r.URL.Query().Get("key"))
	})
	resp, text := do(t, "GET", front+"/"+host+"/?as=application/json&x=1", "Accept-Encoding", "gzip")
	require.NotContains(t, fmt.Sprint(resp.Header, text), "-secret")
	require.Equal(t, "/next?as=application/json&x=1", resp.Header.Get("Location"))
	require.Regexp(t, `^<https://[^>]*/\?page=2&as=application/json&x=1>; rel="next", <[^>]*\?as=application/json&x=1&page=9>; rel="last"$`, resp.Header.Get("Link"))
	require.Equal(t, resp.Header.Get("Ration-Token")+" is your key", resp.Header.Get("X-Said"))
	require.Regexp(t, `^{"next": "https://[^"]*/\?as=application/json\\u0026x=1\\u0026page=2", "html": "<a href='/\?as=application/json&amp;x=1'>", "key": "[0-9a-f]{32}"}$`, text)
	require.Equal(t, resp.ContentLength, int64(len(text)))

	resp, text = do(t, "GET", front+"/"+host+"/?as=", "Range", "bytes=0-")
	require.NotContains(t, fmt.Sprint(resp.Header, text), "-secret", "who asks for a part gets the whole, and what does not say what it is may be a text")

	resp, text = do(t, "GET", front+"/"+host+"/?as=image/png")
	require.Contains(t, text, "-secret", "what is no text passes as it is")
	require.NotContains(t, fmt.Sprint(resp.Header), "-secret")
}

// Pipes hand out one end of pipes, so that a server can run in a bubble of fake time.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p.conns
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error {
	close(p.conns)
	return nil
}
func (p pipes) Addr() net.Addr { return new(net.TCPAddr) }

// A client that sends no more of its body keeps its connection for a minute, whatever the body is for.
func TestABodyThatNeverComesKeepsNoConnection(t *testing.T) {
	config := load(t, strings.ReplaceAll(simple, "http://ORIGIN", "api.example.com"))
	for name, head := range map[string]string{
		"take":    "POST /v1/take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"report":  "POST /v1/report HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"short":   "POST /api.example.com/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"chunked": "POST /api.example.com/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"long":    "POST /api.example.com/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &proxy.Server{Store: new(ration.MemoryStore)}
				require.NoError(t, s.Use(config))
				// The origin reads what it gets.
				s.SetBase(func(r *http.Request) (*http.Response, error) {
					_, err := io.Copy(io.Discard, r.Body)
					return nil, err
				})
				listener := pipes{make(chan net.Conn)}
				server := &http.Server{Handler: s}
				go func() { _ = server.Serve(listener) }()
				client, conn := net.Pipe()
				listener.conns <- conn
				begun := time.Now()
				go func() { _, _ = io.WriteString(client, head) }()
				_ = client.SetReadDeadline(begun.Add(3 * time.Minute))
				_, err := io.ReadAll(client)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.LessOrEqual(t, time.Since(begun), 70*time.Second)
				require.NoError(t, server.Close())
				time.Sleep(time.Hour) // what is left of it
			})
		})
	}
}
