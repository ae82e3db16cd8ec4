package ration_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A wire is a server on loopback, and a client that spends 100 an hour on it.
type wire struct {
	*httptest.Server
	budget *ration.Budget
	token  ration.Token
	client *http.Client
	base   *http.Transport
}

func newWire(t *testing.T, handler http.HandlerFunc) *wire {
	w := &wire{Server: httptest.NewServer(handler), budget: newBudget(ration.PerHour(100)), token: ration.NewToken("SECRET"), base: new(http.Transport)}
	t.Cleanup(w.Close)
	t.Cleanup(w.base.CloseIdleConnections)
	w.client = &http.Client{Transport: &ration.Transport{Base: w.base, Pool: ration.NewPool(w.budget, w.token)}}
	return w
}

func (w *wire) requireSpent(t *testing.T, want int) {
	t.Helper()
	left, err := w.budget.Remaining(t.Context(), w.token)
	require.NoError(t, err)
	require.Equal(t, want, 100-left)
}

// What comes back is what a client without ration would have, for one booking.
func TestResponseIsThatOfTheProvider(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", "Sat, 01 Jan 2000 00:00:00 GMT")
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/304":
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(http.StatusNotModified)
		case "/chunks":
			w.Header().Set("Trailer", "X-Sum")
			for i := range 3 {
				fmt.Fprint(w, i)
				w.(http.Flusher).Flush()
			}
			w.Header().Set("X-Sum", "3")
		default:
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Length", fmt.Sprint(r.ContentLength, r.TransferEncoding, r.Header.Get("User-Agent")))
			fmt.Fprintf(w, "%s %s", r.Method, body)
		}
	}
	for _, row := range []struct {
		method, path string
		body         func() io.Reader
	}{
		{"GET", "/", nil},
		{"HEAD", "/", nil},
		{"GET", "/204", nil},
		{"GET", "/304", nil},
		{"GET", "/chunks", nil},
		{"POST", "/", func() io.Reader { return http.NoBody }},
		{"POST", "/", func() io.Reader { return strings.NewReader("content") }},
		{"POST", "/", func() io.Reader { return io.MultiReader(strings.NewReader("of unknown length")) }},
		{"DELETE", "/", nil},
	} {
		t.Run(row.method+row.path, func(t *testing.T) {
			w := newWire(t, handler)
			fetch := func(client *http.Client) (*http.Response, string) {
				var content io.Reader
				if row.body != nil {
					content = row.body()
				}
				resp, err := client.Do(newRequest(t, row.method, w.URL+row.path, content))
				require.NoError(t, err)
				body := drain(t, resp)
				resp.Body, resp.Request = nil, nil
				return resp, body
			}
			plain, plainBody := fetch(&http.Client{Transport: w.base})
			resp, body := fetch(w.client)
			require.Equal(t, plain, resp)
			require.Equal(t, plainBody, body)
			w.requireSpent(t, 1)
		})
	}
}

func TestUpgradedConnectionCanBeWritten(t *testing.T) {
	w := newWire(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, line)
		_ = rw.Flush()
	})
	req := newRequest(t, http.MethodGet, w.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := w.client.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	stream, writable := resp.Body.(io.ReadWriteCloser)
	require.True(t, writable)
	defer stream.Close()
	fmt.Fprintln(stream, "hello")
	line, err := bufio.NewReader(stream).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	w.requireSpent(t, 1)
}

// The caller's own trace is called beside the Transport's.
func TestEarlyHintsReachTheCallersTrace(t *testing.T) {
	w := newWire(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "page")
	})
	var hints []int
	connected := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected++ },
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			hints = append(hints, code)
			return nil
		},
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
	require.NoError(t, err)
	resp, err := w.client.Do(req)
	require.NoError(t, err)
	require.Equal(t, "page", drain(t, resp))
	require.Equal(t, []int{http.StatusEarlyHints}, hints)
	require.Equal(t, 1, connected)
	w.requireSpent(t, 1)
}

func TestBodyThatBreaksOffBreaksOffForTheCallerToo(t *testing.T) {
	const sent = 1 << 20
	w := newWire(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(10<<20))
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(make([]byte, sent))
	})
	resp, err := w.client.Get(w.URL)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Len(t, body, sent)
}

// A connection that was never had sent nothing: the grant is handed back.
func TestGrantIsHandedBackWhereNoConnectionWasHad(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		w := newWire(t, nil)
		w.Close()
		_, err := w.client.Get(w.URL)
		require.ErrorContains(t, err, "connection refused")
		w.requireSpent(t, 0)
	})
	t.Run("nobody listens, default base", func(t *testing.T) {
		w := newWire(t, nil)
		w.Close()
		_, err := (&http.Client{Transport: &ration.Transport{Pool: ration.NewPool(w.budget, w.token)}}).Get(w.URL)
		require.ErrorContains(t, err, "connection refused")
		w.requireSpent(t, 0)
	})
	t.Run("no handshake", func(t *testing.T) {
		w := newWire(t, nil)
		_, err := w.client.Get(strings.Replace(w.URL, "http:", "https:", 1))
		require.Error(t, err)
		w.requireSpent(t, 0)
	})
	t.Run("cancelled while dialling", func(t *testing.T) {
		w := newWire(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		w.base.DialContext = func(dialling context.Context, _, _ string) (net.Conn, error) {
			cancel()
			<-dialling.Done()
			return nil, dialling.Err()
		}
		content := newBody("content")
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, content)
		require.NoError(t, err)
		_, err = w.client.Do(req)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, content.closed)
		w.requireSpent(t, 0)
	})
	t.Run("second try after a refusal", func(t *testing.T) {
		var once sync.Once
		var w *wire
		w = newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
			once.Do(func() { w.Listener.Close() })
			rw.Header().Set("Connection", "close")
			rw.Header().Set("Retry-After", "0")
			rw.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := w.client.Get(w.URL)
		require.ErrorContains(t, err, "connection refused")
		w.requireSpent(t, 1)
	})
}

// A request that was, perhaps, written has, perhaps, arrived.
func TestRequestOnAConnectionThatBrokeStaysCharged(t *testing.T) {
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	t.Run("HTTP/1.1", func(t *testing.T) {
		w := newWire(t, abort)
		_, err := w.client.Post(w.URL, "text/plain", strings.NewReader("content"))
		require.ErrorIs(t, err, io.EOF)
		w.requireSpent(t, 1)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		w := newWire(t, nil)
		server := httptest.NewUnstartedServer(http.HandlerFunc(abort))
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		client := &http.Client{Transport: &ration.Transport{Base: server.Client().Transport, Pool: ration.NewPool(w.budget, w.token)}}
		for range 2 { // on a new connection, and on one that is there
			_, err := client.Post(server.URL, "text/plain", strings.NewReader("content"))
			require.ErrorContains(t, err, "stream error")
		}
		w.requireSpent(t, 2)
	})
	t.Run("cancelled while the provider thinks", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWire(t, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
		require.NoError(t, err)
		_, err = w.client.Do(req)
		require.ErrorIs(t, err, context.Canceled)
		w.requireSpent(t, 1)
	})
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	w := newWire(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })
	var opened atomic.Int64
	w.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		opened.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	w.budget.Limits = []ration.Limit{ration.PerHour(10_000)}
	for range 1000 {
		get(t, w.client, w.URL)
	}
	require.Equal(t, int64(1), opened.Load())
}

func TestManyCallersShareTheTokensOnTheWire(t *testing.T) {
	var mu sync.Mutex // protects seen
	seen := make(map[string]int)
	w := newWire(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Header.Get("Authorization")]++
	})
	w.budget.Limits = []ration.Limit{ration.PerHour(160)}
	pool := ration.NewPool(w.budget, tokens("a", "b", "c", "d")...)
	client := &http.Client{Transport: &ration.Transport{Base: w.base, Pool: pool}, Timeout: time.Minute}
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for range 20 {
				get(t, client, w.URL)
			}
		})
	}
	workers.Wait()
	_, err := client.Get(w.URL)
	require.ErrorIs(t, err, ration.ErrExhausted)
	require.Equal(t, map[string]int{"Bearer a": 160, "Bearer b": 160, "Bearer c": 160, "Bearer d": 160}, seen)
}
