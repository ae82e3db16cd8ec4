package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/cmd/internal/proxy"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// serve runs a proxy with a configuration, in which ORIGIN is the host of an origin.
func serve(t *testing.T, config string, origin http.HandlerFunc) (*proxy.Server, string, string) {
	t.Helper()
	server := httptest.NewServer(origin)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	s := &proxy.Server{Store: new(ration.MemoryStore)}
	require.NoError(t, s.Use(load(t, strings.ReplaceAll(config, "ORIGIN", host))))
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return s, front.URL, host
}

func load(t *testing.T, text string) *proxy.Config {
	t.Helper()
	t.Setenv("TEST_TOKENS", "a-secret,b-secret")
	file := filepath.Join(t.TempDir(), "ration.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := proxy.Load(file)
	require.NoError(t, err)
	return c
}

const simple = `
budgets:
  api:
    hosts: ["http://ORIGIN"]
    limits: ["1000/1s"]
    tokens: [{env: TEST_TOKENS}]
`

// do sends a request, and returns its answer and the body.
func do(t *testing.T, method, address string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// What the origin says passes as it is, and what the client says of the proxy alone is not sent on.
func TestARequestPassesBothWays(t *testing.T) {
	_, front, host := serve(t, simple, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("Ration-Reason", "the origin's")
		w.Header().Set("X-Connection-Only", "1")
		w.Header().Set("Connection", "X-Connection-Only")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, r.RequestURI, " ", r.Host, " ", r.Header.Get("Authorization"))
		for name := range r.Header {
			if strings.HasPrefix(name, "Ration-") || strings.HasPrefix(name, "X-Forwarded") || name == "X-Hop" || name == "Te" {
				fmt.Fprint(w, " ", name)
			}
		}
	})
	resp, text := do(t, "GET", front+"/"+host+"/a%2fb//c/../d?x=%20y&x", "Ration-Caller", "me", "Ration-Cost", "2", "Connection", "X-Hop", "X-Hop", "1", "X-Forwarded-For", "1.2.3.4")
	require.Equal(t, http.StatusTeapot, resp.StatusCode)
	require.Regexp(t, `^/a%2fb//c/\.\./d\?x=%20y&x `+host+` Bearer [ab]-secret$`, text)
	require.Equal(t, []string{"a=1", "b=2"}, resp.Header.Values("Set-Cookie"))
	require.Empty(t, resp.Header.Get("Ration-Reason"), "what has it is the proxy's own")
	require.Empty(t, resp.Header.Get("X-Connection-Only"))
	require.Equal(t, "0s", resp.Header.Get("Ration-Waited"))
	require.Len(t, resp.Header.Get("Ration-Token"), 32)
	require.NotEmpty(t, resp.Header.Get("Ration-Remaining"))

	through, err := url.Parse(front)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through)}}
	resp, err = client.Get("http://" + strings.ToUpper(host) + "/forward?y")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Regexp(t, `^/forward\?y `+host+` Bearer`, string(body))
}

// No request reaches a host that the configuration does not have, whatever the address looks like.
func TestItIsNoOpenProxy(t *testing.T) {
	var reached atomic.Int64
	_, front, host := serve(t, simple, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	address := strings.TrimPrefix(front, "http://")
	elsewhere := strings.TrimPrefix(other.URL, "http://")
	_, port, err := net.SplitHostPort(host)
	require.NoError(t, err)
	for _, target := range []string{
		"/" + elsewhere + "/", "//" + elsewhere + "/", "/http://" + elsewhere + "/", "/http:%2f%2f" + elsewhere + "/", "//evil/" + host, "/..%2f" + elsewhere, "/%2e%2e/" + elsewhere,
		"http://" + elsewhere + "/", "http://" + host + "@" + elsewhere + "/", "http://user:pass@" + host + "/", "http://" + host + ":80@" + elsewhere + "/",
		"http://[::ffff:127.0.0.1]:" + port + "/", "http://127.1:" + port + "/", "http://2130706433:" + port + "/", "http://localhost:" + port + "/", "http://" + host + ".evil/",
		"http://169.254.169.254/latest/meta-data/", "/169.254.169.254/latest/", "/user@" + host + "/", "/" + host + "%00/", "/" + strings.Replace(host, ".", "%2e", 1) + "/", "/v1/", "*", "/",
	} {
		for _, named := range []string{address, host} {
			conn, err := net.Dial("tcp", address)
			require.NoError(t, err)
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, named)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err, target)
			require.GreaterOrEqual(t, resp.StatusCode, 400, target)
			_ = resp.Body.Close()
			_ = conn.Close()
		}
	}
	require.Zero(t, reached.Load())
	// A Host header that disagrees with an absolute target means nothing.
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", elsewhere, host)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	require.Equal(t, "host", resp.Header.Get("Ration-Reason"))
	require.Zero(t, reached.Load())
}

func TestWhatTheProxyAnswersItselfSaysWhy(t *testing.T) {
	_, front, host := serve(t, strings.Replace(simple, "1000/1s", "1/1h", 1), func(http.ResponseWriter, *http.Request) {})
	for range 2 { // there are two tokens
		resp, _ := do(t, "GET", front+"/"+host+"/")
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	begun := time.Now()
	resp, text := do(t, "GET", front+"/"+host+"/")
	require.Less(t, time.Since(begun), 5*time.Second, "a slot beyond the longest wait is refused at once")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
	require.Equal(t, "quota", resp.Header.Get("Ration-Reason"))
	require.Regexp(t, `^3[56]\d\d$`, resp.Header.Get("Retry-After"))
	require.NotContains(t, text, "secret")

	for _, row := range []struct {
		want   int
		reason string
		header [2]string
	}{
		{400, "authorization", [2]string{"Authorization", "Bearer mine"}},
		{501, "upgrade", [2]string{"Upgrade", "websocket"}},
		{501, "upgrade", [2]string{"Upgrade", "h2c"}},
		{400, "request", [2]string{"Ration-Cost", "many"}},
		{400, "request", [2]string{"Ration-Max-Wait", "10"}},
		{400, "request", [2]string{"Ration-Reserve", "1"}},
		{403, "request", [2]string{"Sec-Fetch-Site", "cross-site"}},
	} {
		resp, _ := do(t, "GET", front+"/"+host+"/", row.header[0], row.header[1])
		require.Equal(t, row.want, resp.StatusCode, row.header)
		require.Equal(t, row.reason, resp.Header.Get("Ration-Reason"), row.header)
	}
	resp, _ = do(t, http.MethodConnect, front)
	require.Equal(t, http.StatusNotImplemented, resp.StatusCode)
}

func TestATokenIsAttachedAsTheFileSays(t *testing.T) {
	for auth, want := range map[string]string{"bearer": "Bearer [ab]-secret", "header:X-Api-Key": "[ab]-secret", "query:key": `x=1&key=[ab]-secret`} {
		var text string
		_, front, host := serve(t, simple+"    auth: "+auth+"\n", func(w http.ResponseWriter, r *http.Request) {
			text = ""
			if auth == "query:key" {
				text = r.URL.RawQuery
			}
			text += r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")
		})
		do(t, "GET", front+"/"+host+"/?x=1", "X-Api-Key", "mine")
		if auth == "header:X-Api-Key" || auth == "query:key" {
			text = strings.TrimSuffix(text, "mine") // of another kind, which is the client's own
		}
		require.Regexp(t, "^"+want, text)
	}
}

func TestASecretIsAskedFor(t *testing.T) {
	_, front, host := serve(t, "secret: of-the-proxy\nauthorization: drop\n"+simple, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"), r.Header.Get("Ration-Secret"))
	})
	for _, given := range []string{"", "wrong"} {
		resp, _ := do(t, "GET", front+"/"+host+"/", "Ration-Secret", given)
		require.Equal(t, http.StatusForbidden, resp.StatusCode)
	}
	resp, text := do(t, "GET", front+"/"+host+"/", "Ration-Secret", "of-the-proxy", "Authorization", "Bearer mine")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Regexp(t, `^Bearer [ab]-secret$`, text, "the client's own is dropped, and the proxy's secret is not sent on")
}

// Two lengths in one request are no two requests.
func TestNothingIsSmuggled(t *testing.T) {
	var paths sync.Map
	_, front, host := serve(t, simple, func(_ http.ResponseWriter, r *http.Request) { paths.Store(r.URL.Path, true) })
	for _, lengths := range []string{"Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: xchunked"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(front, "http://"))
		require.NoError(t, err)
		fmt.Fprintf(conn, "POST /%s/first HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n0\r\n\r\nGET /%s/second HTTP/1.1\r\nHost: other\r\n\r\n", host, lengths, host)
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Second)))
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	_, smuggled := paths.Load("/second")
	require.False(t, smuggled)
}

// What streams is passed on as it comes, for longer than the longest wait for a slot.
func TestStreamsPassAsTheyCome(t *testing.T) {
	next := make(chan struct{})
	_, front, host := serve(t, "max_wait: 200ms\n"+simple, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
			time.Sleep(150 * time.Millisecond)
		}
	})
	resp, err := http.Get(front + "/" + host + "/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		require.True(t, lines.Scan(), lines.Err())
		require.Equal(t, fmt.Sprint("data: ", i), lines.Text())
		lines.Scan()
		next <- struct{}{}
	}
}

// A client that leaves hands its place back.
func TestAClientThatLeavesSpendsNothing(t *testing.T) {
	var served atomic.Int64
	_, front, host := serve(t, strings.NewReplacer("1000/1s", "1/2s", "a-secret,b-secret", "").Replace(simple), func(http.ResponseWriter, *http.Request) { served.Add(1) })
	for range 2 {
		do(t, "GET", front+"/"+host+"/")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer stop()
			req, _ := http.NewRequestWithContext(ctx, "GET", front+"/"+host+"/", nil)
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	all.Wait()
	begun := time.Now()
	resp, _ := do(t, "GET", front+"/"+host+"/")
	require.Equal(t, 200, resp.StatusCode)
	require.Less(t, time.Since(begun), 4*time.Second, "it waits for the slot after the two, and not for twenty")
	require.EqualValues(t, 3, served.Load())
}

func TestAShortBodyIsSentAgain(t *testing.T) {
	var tries atomic.Int64
	_, front, host := serve(t, simple, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if tries.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write(text)
	})
	resp, err := http.Post(front+"/"+host+"/", "text/plain", strings.NewReader("hello"))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
	require.EqualValues(t, 2, tries.Load())
}

// What a request has really used counts in place of what was taken.
func TestUnitsAreReported(t *testing.T) {
	_, front, _ := serve(t, strings.Replace(simple, `["1000/1s"]`, `["1000/1s", "100/1h:unit=tokens"]`, 1), func(http.ResponseWriter, *http.Request) {})
	ask := func(path, said string) (status int, answer map[string]any) {
		resp, err := http.Post(front+path, "application/json", strings.NewReader(said))
		require.NoError(t, err)
		defer resp.Body.Close()
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
		return resp.StatusCode, answer
	}
	var grants []any
	for range 2 { // of each token all
		status, answer := ask("/v1/take", `{"budget": "api", "units": {"tokens": 100}, "max_wait": "1s"}`)
		require.Equal(t, 200, status, answer)
		grants = append(grants, answer["grant"])
	}
	status, answer := ask("/v1/take", `{"budget": "api", "units": {"tokens": 60}, "max_wait": "1s"}`)
	require.Equal(t, 503, status, answer)
	status, answer = ask("/v1/report", fmt.Sprintf(`{"grant": %q, "status": 200, "units": {"token": 40}}`, grants[0]))
	require.Equal(t, 422, status, answer)
	require.Contains(t, answer["detail"], `no limit of budget "api" counts "token"`)
	status, answer = ask("/v1/report", fmt.Sprintf(`{"grant": %q, "status": 200, "units": {"tokens": 40}}`, grants[1]))
	require.Equal(t, 200, status, answer)
	status, answer = ask("/v1/take", `{"budget": "api", "units": {"tokens": 60}, "max_wait": "1s"}`)
	require.Equal(t, 200, status, answer)
}

// Slots are handed out one by one, and what is reported of one holds for all.
func TestSlotsAreTakenAndReported(t *testing.T) {
	_, front, host := serve(t, strings.Replace(simple, "1000/1s", "3/1s", 1)+"    hand_out_tokens: true\n", func(http.ResponseWriter, *http.Request) {})
	take := func(asked string) (*http.Response, map[string]any) {
		resp, err := http.Post(front+"/v1/take", "application/json", strings.NewReader(asked))
		require.NoError(t, err)
		defer resp.Body.Close()
		var answer map[string]any
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
		return resp, answer
	}
	report := func(told string) (*http.Response, map[string]any) {
		resp, err := http.Post(front+"/v1/report", "application/json", strings.NewReader(told))
		require.NoError(t, err)
		defer resp.Body.Close()
		var answer map[string]any
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
		return resp, answer
	}
	begun := time.Now()
	var grants []string
	for range 7 {
		resp, answer := take(`{"budget": "api", "caller": "script"}`)
		require.Equal(t, 200, resp.StatusCode, answer)
		require.Regexp(t, `^Bearer [ab]-secret$`, answer["headers"].(map[string]any)["Authorization"])
		grants = append(grants, answer["grant"].(string))
	}
	require.Greater(t, time.Since(begun), time.Second, "two tokens have six calls in a second")

	_, answer := report(fmt.Sprintf(`{"grant": %q, "status": 200}`, grants[0]))
	require.Equal(t, map[string]any{"retry": false, "wait_ms": 0.0}, answer)
	resp, answer := report(fmt.Sprintf(`{"grant": %q, "status": 200}`, grants[0]))
	require.Equal(t, 404, resp.StatusCode, answer)
	_, answer = report(fmt.Sprintf(`{"grant": %q, "status": 429, "headers": {"Retry-After": "30"}}`, grants[1]))
	require.Equal(t, true, answer["retry"])
	require.Equal(t, 30000.0, answer["wait_ms"])
	_, answer = report(fmt.Sprintf(`{"grant": %q, "status": 0}`, grants[2]))
	require.Equal(t, true, answer["retry"])
	for _, grant := range grants[3:] {
		_, answer = report(fmt.Sprintf(`{"grant": %q, "status": 429, "headers": {"Retry-After": "30"}}`, grant))
		require.Equal(t, true, answer["retry"])
	}
	resp, answer = take(`{"budget": "api", "max_wait": "500ms"}`)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "a refusal that was reported pauses the account: %v", answer)
	require.InDelta(t, 30000, answer["wait_ms"], 2000)

	for _, wrong := range []string{`{"budget": "none"}`, `{"budget": "api", "reserve": 5}`, `{"budget": "api", "cost": -1}`, `{"budgett": "api"}`, `{"budget": "api", "url": "http://evil/"}`, `{`, `{"budget": "api", "max_wait": "x"}`} {
		resp, answer := take(wrong)
		require.GreaterOrEqual(t, resp.StatusCode, 400, wrong)
		require.NotEmpty(t, answer["detail"], wrong)
	}
	_ = host
}

// However the host is written, what is handed out was booked.
func TestATakenSlotIsBooked(t *testing.T) {
	_, front, _ := serve(t, strings.NewReplacer("http://ORIGIN", "api.example.com", "1000/1s", "1/1h").Replace(simple), nil)
	for i, want := range []int{200, 200, 503} { // there are two tokens
		address := []string{"https://api.example.com./x", "http://API.example.com", "https://api.example.com:443/"}[i]
		resp, err := http.Post(front+"/v1/take", "application/json", strings.NewReader(fmt.Sprintf(`{"budget": "api", "url": %q}`, address)))
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, "%s: %s", address, text)
		if want == 200 {
			require.Regexp(t, `"token":"[0-9a-f]{32}"`, string(text))
		}
	}
}

func TestCallersAreCountedAndNoPath(t *testing.T) {
	_, front, host := serve(t, strings.Replace(simple, "1000/1s", "100000/1s", 1), func(http.ResponseWriter, *http.Request) {})
	client := &http.Client{}
	for i := range 500 {
		req, err := http.NewRequest("GET", fmt.Sprintf("%s/%s/path/%d", front, host, i), nil)
		require.NoError(t, err)
		req.Header.Set("Ration-Caller", fmt.Sprint("caller-", i))
		resp, err := client.Do(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
	}
	_, text := do(t, "GET", front+"/metrics")
	require.NotContains(t, text, "path")
	require.Contains(t, text, `ration_proxy_answers_total{budget="api",caller="caller-0",code="2xx"} 1`+"\n")
	require.Contains(t, text, `ration_proxy_answers_total{budget="api",caller="other",code="2xx"} 468`+"\n")
	require.Equal(t, 33, strings.Count(text, "ration_proxy_requests_inside{"))
	resp, _ := do(t, "GET", front+"/healthz")
	require.Equal(t, 200, resp.StatusCode)
}

// Another configuration is taken into use while requests are under way, and loses none.
func TestAnotherConfigurationDropsNoRequest(t *testing.T) {
	s, front, host := serve(t, simple, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(5 * time.Millisecond)
		fmt.Fprint(w, "served")
	})
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var all sync.WaitGroup
	var failed atomic.Int64
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				resp, err := http.Get(front + "/" + host + "/")
				if err != nil || resp.StatusCode != 200 {
					if failed.Add(1) == 1 && err == nil {
						text, _ := io.ReadAll(resp.Body)
						t.Logf("%d: %s", resp.StatusCode, text)
					}
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	for i := 1; ctx.Err() == nil; i++ {
		changed := strings.ReplaceAll(simple, "ORIGIN", host)
		if i%2 == 0 {
			changed = strings.Replace(changed, "tokens: [{env: TEST_TOKENS}]", "private: true\n    tokens: [{env: TEST_TOKENS, label: team}]", 1)
		}
		require.NoError(t, s.Use(load(t, changed)))
		time.Sleep(20 * time.Millisecond)
	}
	all.Wait()
	require.Zero(t, failed.Load())
	require.ErrorContains(t, s.Use(load(t, strings.ReplaceAll(strings.Replace(simple, "1000/1s", "900/1s", 1), "ORIGIN", host))), "raise it")
	require.ErrorContains(t, s.Use(load(t, "listen: 127.0.0.1:1\n"+strings.ReplaceAll(simple, "ORIGIN", host))), "restart")
}

func TestAWrongConfigurationSaysWhatToWrite(t *testing.T) {
	right := strings.ReplaceAll(simple, "ORIGIN", "api.example.com")
	for _, row := range []struct{ old, new, want string }{
		{"budgets:", "budget:", `did you mean "budgets"`},
		{"limits:", "limit:", `[5:5] unknown field "limit": did you mean "limits"?`},
		{`["1000/1s"]`, `["1000 per s"]`, "budgets.api.limits[0]"},
		{`"http://api.example.com"`, `"api.example.com/path"`, "write a host such as api.example.com"},
		{`"http://api.example.com"`, `"v1"`, "without a dot"},
		{"{env: TEST_TOKENS}", "{env: NO_SUCH_VARIABLE}", "the environment has no NO_SUCH_VARIABLE"},
		{"{env: TEST_TOKENS}", "{file: /nowhere}", "/nowhere"},
		{"{env: TEST_TOKENS}", "{env: A, file: B}", "write one of env, file and command"},
		{"budgets:", "listen: 0.0.0.0:8080\nbudgets:", "anybody who reaches it could spend your quota"},
		{"budgets:", "max_wait: 50\nbudgets:", "write a duration such as 50s"},
		{"budgets:", "authorization: keep\nbudgets:", "write refuse or drop"},
		{"budgets:", "redis: ${NO_SUCH_VARIABLE}\nbudgets:", "redis: the environment has no NO_SUCH_VARIABLE"},
		{"budgets:", "secret: ${EMPTY_VARIABLE}\nbudgets:", "secret: EMPTY_VARIABLE is empty in the environment"},
		{"budgets:", "listen: 127.0.0.1:99999\nbudgets:", "write HOST:PORT"},
		{"    limits", "    auth: basic\n    limits", "write bearer, header:NAME or query:NAME"},
		{"    limits", "    preset: githup\n    limits", `"githup" is none`},
		{"  api:", "  a b:", "budgets.a b.name"},
		{right, "", "there is none"},
	} {
		t.Setenv("TEST_TOKENS", "a")
		t.Setenv("EMPTY_VARIABLE", " ")
		file := filepath.Join(t.TempDir(), "ration.yaml")
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(right, row.old, row.new, 1)), 0o600))
		c, err := proxy.Load(file)
		if err == nil {
			err = new(proxy.Server).Use(c)
		}
		require.ErrorContains(t, err, row.want)
	}
}

// The tokens of a file are those that it has now.
func TestTokensOfAFileComeAndGo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("# of the team\nfirst\n"), 0o600))
	config := strings.Replace(simple, "{env: TEST_TOKENS}", fmt.Sprintf("{file: %q}", file), 1)
	s, front, host := serve(t, config, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	_, text := do(t, "GET", front+"/"+host+"/")
	require.Equal(t, "Bearer first", text)
	ctx, stop := context.WithCancel(t.Context())
	var failed atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				resp, err := http.Get(front + "/" + host + "/")
				if err != nil || resp.StatusCode != http.StatusOK {
					failed.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	for i := range 50 { // there is never no token
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "token-%d\n", i), 0o600))
		require.NoError(t, s.Use(load(t, strings.ReplaceAll(config, "ORIGIN", host))))
	}
	stop()
	all.Wait()
	require.Zero(t, failed.Load())
	require.NoError(t, os.WriteFile(file, []byte("second\n"), 0o600))
	require.NoError(t, s.Use(load(t, strings.ReplaceAll(config, "ORIGIN", host))))
	_, text = do(t, "GET", front+"/"+host+"/")
	require.Equal(t, "Bearer second", text)
}

// The published schema has the keys that a configuration may have, and no others.
func TestTheSchemaHasTheKeysOfTheConfiguration(t *testing.T) {
	text, err := os.ReadFile("../../../docs/ration.schema.json")
	require.NoError(t, err)
	type part struct {
		Properties map[string]any  `json:"properties"`
		Additional json.RawMessage `json:"additionalProperties"`
		Defs       map[string]part `json:"$defs"`
	}
	var schema part
	require.NoError(t, json.Unmarshal(text, &schema))
	for name, row := range map[string]struct {
		described part
		config    any
	}{"": {schema, proxy.Config{}}, "tls": {schema.Defs["tls"], proxy.TLS{}}, "budget": {schema.Defs["budget"], proxy.Budget{}}, "token": {schema.Defs["token"], proxy.Token{}}} {
		var keys, described []string
		for field := range reflect.TypeOf(row.config).Fields() {
			keys = append(keys, field.Tag.Get("yaml"))
		}
		for key := range row.described.Properties {
			described = append(described, key)
		}
		require.ElementsMatch(t, keys, described, name)
		require.Equal(t, "false", string(row.described.Additional), name)
	}
}

// Early hints pass, before the response that they announce.
func TestEarlyHintsPass(t *testing.T) {
	_, front, host := serve(t, simple, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "done")
	})
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, header.Get("Link")))
		return nil
	}})
	req, err := http.NewRequestWithContext(ctx, "GET", front+"/"+host+"/", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, []string{"103</style.css>; rel=preload"}, hints)
}

// A token that is rejected while the other has no room does not have the client wait for longer than it may.
func TestARejectedTokenKeepsTheLongestWait(t *testing.T) {
	_, front, host := serve(t, strings.Replace(simple, "1000/1s", "1/1h", 1), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rejected" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	resp, _ := do(t, "GET", front+"/"+host+"/")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	begun := time.Now()
	resp, _ = do(t, "GET", front+"/"+host+"/rejected", "Ration-Max-Wait", "2s")
	require.Less(t, time.Since(begun), 5*time.Second)
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.Empty(t, resp.Header.Get("Ration-Reason"), "it is the origin's own answer")
}

func TestWhoWaitsNotAtAllGetsWhatIsFree(t *testing.T) {
	_, front, host := serve(t, strings.Replace(simple, "1000/1s", "1/1h", 1), func(http.ResponseWriter, *http.Request) {})
	for range 2 {
		resp, text := do(t, "GET", front+"/"+host+"/", "Ration-Max-Wait", "0s")
		require.Equal(t, http.StatusOK, resp.StatusCode, text)
	}
	resp, _ := do(t, "GET", front+"/"+host+"/", "Ration-Max-Wait", "0s")
	require.Equal(t, "quota", resp.Header.Get("Ration-Reason"))
	resp, _ = do(t, http.MethodTrace, front+"/"+host+"/")
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	resp, _ = do(t, "GET", front+"/"+host+"/", "Ration-Cost", "9")
	require.Equal(t, "request", resp.Header.Get("Ration-Reason"), "no limit admits so much")
}

// A client that is slow to send its body holds no slot meanwhile.
func TestASlowClientHoldsNoSlot(t *testing.T) {
	_, front, host := serve(t, strings.Replace(simple, "1000/1s", "1/1h", 1), func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	conn, err := net.Dial("tcp", strings.TrimPrefix(front, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /%s/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345", host)
	for range 2 { // of two tokens
		resp, _ := do(t, "GET", front+"/"+host+"/")
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	fmt.Fprint(conn, "67890")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "quota", resp.Header.Get("Ration-Reason"), "the two others had the slots")
}
