package faults_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// In this file is what of HTTP is rare, and must be as it is without a Transport: the
// same answer, for one booking.

// newHTTP2Wire is newJudgedWire over TLS and HTTP/2.
func newHTTP2Wire(t *testing.T, handler http.HandlerFunc) *judgedWire {
	o := newOracle(ration.PerHour(100))
	w := &judgedWire{&rationtest.Wire{Server: httptest.NewUnstartedServer(o.judges(handler)), Budget: rationtest.NewBudget(o.limit), Token: ration.NewToken("SECRET")}, o}
	w.EnableHTTP2 = true
	w.StartTLS()
	t.Cleanup(w.Close)
	w.Base = w.Server.Client().Transport.(*http.Transport)
	w.Client = &http.Client{Transport: &ration.Transport{Base: w.Base, Pool: ration.NewPool(w.Budget, w.Token)}}
	return w
}

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
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"data":[]}`)
		default:
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Length", fmt.Sprint(r.ContentLength, r.TransferEncoding, r.Header.Get("User-Agent")))
			fmt.Fprintf(w, "%s %s", r.Method, body)
		}
	}
	for protocol, start := range map[string]func(*testing.T, http.HandlerFunc) *judgedWire{"HTTP/1.1": newJudgedWire, "HTTP/2": newHTTP2Wire} {
		for _, row := range []struct {
			method, path string
			body         func() io.Reader
		}{
			{"GET", "/", nil},
			{"HEAD", "/", nil},
			{"HEAD", "/json", nil},
			{"GET", "/204", nil},
			{"GET", "/304", nil},
			{"GET", "/chunks", nil},
			{"GET", "/json", nil},
			{"POST", "/", func() io.Reader { return http.NoBody }},
			{"POST", "/204", func() io.Reader { return strings.NewReader("content") }},
			{"POST", "/", func() io.Reader { return strings.NewReader("content") }},
			{"POST", "/", func() io.Reader { return io.MultiReader(strings.NewReader("of unknown length")) }},
			{"DELETE", "/", nil},
		} {
			t.Run(protocol+" "+row.method+row.path, func(t *testing.T) {
				w := start(t, handler)
				fetch := func(client *http.Client) (*http.Response, string) {
					var content io.Reader
					if row.body != nil {
						content = row.body()
					}
					resp, err := client.Do(rationtest.NewRequest(t, row.method, w.URL+row.path, content))
					require.NoError(t, err)
					bodiless := resp.Body == http.NoBody
					body := rationtest.Drain(t, resp)
					resp.Body, resp.Request, resp.TLS = nil, nil, nil
					return resp, fmt.Sprint(bodiless, body)
				}
				plain, plainBody := fetch(&http.Client{Transport: w.Base})
				resp, body := fetch(w.Client)
				require.Equal(t, plain, resp)
				require.Equal(t, plainBody, body)
				w.requireBookings(t, 1)
			})
		}
	}
}

func TestUpgradedConnectionCanBeWritten(t *testing.T) {
	w := newJudgedWire(t, func(w http.ResponseWriter, _ *http.Request) {
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
	req := rationtest.NewRequest(t, http.MethodGet, w.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := w.Client.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	stream, writable := resp.Body.(io.ReadWriteCloser)
	require.True(t, writable)
	defer stream.Close()
	fmt.Fprintln(stream, "hello")
	line, err := bufio.NewReader(stream).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	w.requireBookings(t, 1)
}

// The caller's own trace is called beside the Transport's.
func TestEarlyHintsReachTheCallersTrace(t *testing.T) {
	w := newJudgedWire(t, func(w http.ResponseWriter, _ *http.Request) {
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
	resp, err := w.Client.Do(req)
	require.NoError(t, err)
	require.Equal(t, "page", rationtest.Drain(t, resp))
	require.Equal(t, []int{http.StatusEarlyHints}, hints)
	require.Equal(t, 1, connected)
	w.requireBookings(t, 1)
}

// With Expect: 100-continue the provider may answer before it has the body, which is
// then not sent.
func TestExpectContinue(t *testing.T) {
	for _, row := range []struct {
		name    string
		refuses int   // the status of the first answer; 0: it asks for the body
		status  int   // of the last
		read    int64 // how often the body was sent
		arrived int
	}{
		{"continue", 0, http.StatusOK, 1, 1},
		{"the expectation fails", http.StatusExpectationFailed, http.StatusExpectationFailed, 0, 1},
		{"refusal", http.StatusTooManyRequests, http.StatusOK, 1, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			var calls atomic.Int64
			w := newJudgedWire(t, func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == 1 && row.refuses > 0 {
					w.Header().Set("Retry-After", "0.01")
					w.WriteHeader(row.refuses)
					return
				}
				_, _ = io.Copy(w, r.Body)
			})
			w.Base.ExpectContinueTimeout = time.Minute
			sent := new(atomic.Int64)
			content := func() (io.ReadCloser, error) { return &sentBody{strings.NewReader("content"), sent}, nil }
			req := rationtest.NewRequest(t, http.MethodPut, w.URL, nil)
			req.Body, _ = content()
			req.GetBody, req.ContentLength = content, 7
			req.Header.Set("Expect", "100-continue")
			resp, err := w.Client.Do(req)
			require.NoError(t, err)
			require.Equal(t, row.status, resp.StatusCode)
			require.Equal(t, strings.Repeat("content", int(row.read)), rationtest.Drain(t, resp))
			require.Equal(t, row.read, sent.Load())
			w.requireBookings(t, row.arrived)
		})
	}
}

// A sentBody counts how often it was read to its end.
type sentBody struct {
	io.Reader
	sent *atomic.Int64
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.sent.Add(1)
	}
	return n, err
}

func (b *sentBody) Close() error { return nil }
