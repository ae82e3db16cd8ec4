package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// In this file are the faults by which data would be lost or wrong.

// A body that cannot be had again was spent by the first attempt: the request would go
// out empty. The refusal comes back to be read, and the fleet keeps the pause.
func TestBodyThatCannotBeHadAgainIsNotSentAgain(t *testing.T) {
	for _, row := range []struct {
		name    string
		length  int64
		getBody func() (io.ReadCloser, error)
	}{
		{"no GetBody, unknown length", -1, nil},
		{"no GetBody, known length", 7, nil},
		{"GetBody fails", 7, (&rationtest.Bodies{Err: errors.New("the file is gone")}).Get},
	} {
		t.Run(row.name, func(t *testing.T) {
			var mu sync.Mutex // protects seen
			var seen []string
			w := newJudgedWire(t, func(w http.ResponseWriter, r *http.Request) {
				content, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				if seen = append(seen, string(content)); len(seen) == 1 {
					w.Header().Set("Retry-After", "5")
					w.WriteHeader(http.StatusTooManyRequests)
					fmt.Fprint(w, "slow down")
				}
			})
			req := rationtest.NewRequest(t, http.MethodPost, w.URL, io.MultiReader(strings.NewReader("content")))
			req.ContentLength, req.GetBody = row.length, row.getBody
			resp, err := w.Client.Do(req)
			require.NoError(t, err)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			require.Equal(t, "slow down", rationtest.Drain(t, resp))
			require.Equal(t, []string{"content"}, seen)
			w.requireBookings(t, 1)
			usage, err := w.Budget.Usage(t.Context(), w.Token)
			require.NoError(t, err)
			require.Greater(t, usage.PausedUntil.Sub(usage.Now), time.Duration(0))
		})
	}
}

func TestRequestIsUnchangedAfterRoundTrip(t *testing.T) {
	refuseOnce := func(n int, req *http.Request) (*http.Response, error) {
		if n == 1 {
			return rationtest.Respond(req, http.StatusTooManyRequests, "", nil), nil
		}
		return rationtest.Respond(req, http.StatusOK, "", nil), nil
	}
	for _, row := range []struct {
		name   string
		attach provider.Attach
		answer func(int, *http.Request) (*http.Response, error)
		err    bool
	}{
		{"bearer", nil, nil, false},
		{"header", provider.HeaderNamed("X-Api-Key"), nil, false},
		{"query", provider.QueryNamed("access_token"), nil, false},
		{"sent again", nil, refuseOnce, false},
		{"base fails", nil, func(int, *http.Request) (*http.Response, error) { return nil, errors.New("broken") }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &ration.Transport{
					Base: rationtest.NewAPI(row.answer), Attach: row.attach, ReplaceAuthorization: true,
					Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), rationtest.Tokens("a", "b")...),
				}
				req := rationtest.NewRequest(t, http.MethodPost, "http://user:pass@api.test/p%2Fq?b=2&a=1&a=%20&access_token=mine", strings.NewReader("content"))
				req.Header = http.Header{"X-Two": {"1", "2"}, "Authorization": {"Basic mine"}, "x-lower": {"kept"}}
				req.Trailer = http.Header{"X-Sum": nil}
				sent := req.Body
				before, header, url := rationtest.Snapshot(req), fmt.Sprintf("%p", req.Header), req.URL
				resp, err := transport.RoundTrip(req)
				require.Equal(t, row.err, err != nil)
				require.Equal(t, before, rationtest.Snapshot(req))
				require.Equal(t, header, fmt.Sprintf("%p", req.Header), "the map itself")
				require.Same(t, url, req.URL)
				require.Equal(t, sent, req.Body)
				if resp != nil {
					require.Equal(t, req.Header, resp.Request.Header)
					require.Equal(t, req.URL, resp.Request.URL)
				}
			})
		})
	}
}

// A countedBody is a request's body that knows how often it was closed: http.Transport
// closes it when it likes.
type countedBody struct {
	io.Reader
	closed atomic.Int64
}

func (b *countedBody) Close() error {
	b.closed.Add(1)
	return nil
}

// On each way that a request can end the caller's own is unchanged, and its body is
// closed.
func TestBodyIsClosedHoweverTheRequestEnds(t *testing.T) {
	spend := func(t *testing.T, w *judgedWire) {
		_, err := w.Budget.Try(t.Context(), w.Token, 100)
		require.NoError(t, err)
	}
	for _, row := range []struct {
		name   string
		before func(t *testing.T, w *judgedWire)
		cancel bool // as soon as the request waits
		want   error
		status int
	}{
		{name: "served", status: http.StatusOK},
		{name: "refused by the provider", status: http.StatusTooManyRequests, before: func(_ *testing.T, w *judgedWire) { w.oracle.limit.Max = 0 }},
		{name: "refused for want of time", want: ration.ErrExhausted, before: func(t *testing.T, w *judgedWire) {
			spend(t, w)
			w.Budget.MaxWait = time.Second
		}},
		{name: "cancelled in the queue", want: context.Canceled, cancel: true, before: spend},
		{name: "cancelled at the provider", want: context.Canceled, cancel: true},
		{name: "the store is down", want: ration.ErrStoreUnavailable, before: func(_ *testing.T, w *judgedWire) {
			store := &rationtest.CutStore{Store: w.Budget.Store}
			store.Cut.Store(true)
			w.Budget.Store, w.Budget.RetryStoreFor = store, time.Millisecond
		}},
		{name: "the provider hangs up", want: io.EOF, before: func(_ *testing.T, w *judgedWire) {
			w.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}},
		{name: "nobody listens", want: errNoRoute, before: func(_ *testing.T, w *judgedWire) {
			w.Base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errNoRoute }
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			arrived := make(chan struct{})
			w := newJudgedWire(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if row.cancel {
					close(arrived)
					<-r.Context().Done()
				}
			})
			if row.before != nil {
				row.before(t, w)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var canceller sync.WaitGroup
			defer canceller.Wait()
			switch {
			case row.cancel && row.before == nil:
				canceller.Go(func() { <-arrived; cancel() })
			case row.cancel:
				time.AfterFunc(10*time.Millisecond, cancel)
			}
			content := &countedBody{Reader: strings.NewReader("content")}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+"/p%2Fq?b=2&a=1&a=%20", content)
			require.NoError(t, err)
			req.Header = http.Header{"X-Two": {"1", "2"}, "X-Mine": {"kept"}}
			before, url := rationtest.Snapshot(req), req.URL
			resp, err := w.Client.Transport.RoundTrip(req)
			require.Equal(t, before, rationtest.Snapshot(req))
			require.Same(t, url, req.URL)
			require.ErrorIs(t, err, row.want)
			if row.want == nil {
				require.Equal(t, row.status, resp.StatusCode)
				rationtest.Drain(t, resp)
			} else {
				require.Nil(t, resp)
			}
			require.Eventually(t, func() bool { return content.closed.Load() > 0 }, 20*time.Second, time.Millisecond)
		})
	}
}

var errNoRoute = errors.New("no route to host")

// What is given up comes as the provider sent it, and is no error.
func TestRefusalThatIsGivenUpIsReadInFull(t *testing.T) {
	page := strings.Repeat("slow down ", 1<<18)
	for name, row := range map[string]struct {
		body io.Reader
		sent int // few: a budget lowers a limit of which much is refused
	}{
		"no body":                     {nil, 4},
		"a body that http can reread": {strings.NewReader("content"), 4},
		"a body that nobody can":      {io.MultiReader(strings.NewReader("content")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			w := newJudgedWire(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "0.01")
				w.Header().Set("X-Request-Id", fmt.Sprint(calls.Add(1)))
				w.Header()["X-Twice"] = []string{"one", "two"}
				w.Header().Set("Trailer", "X-Sum")
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprint(w, page)
				w.Header().Set("X-Sum", "3")
			})
			req := rationtest.NewRequest(t, http.MethodPost, w.URL, row.body)
			resp, err := w.Client.Transport.RoundTrip(req.WithContext(ration.WithRetries(req.Context(), ration.RetryPolicy{
				Decide: func(_ *http.Request, r *ration.Retry) { r.Again = r.Attempts < 4 },
			})))
			require.NoError(t, err)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			require.Equal(t, "429 Too Many Requests", resp.Status)
			require.Equal(t, fmt.Sprint(row.sent), resp.Header.Get("X-Request-Id"), "the last one's")
			require.Equal(t, "0.01", resp.Header.Get("Retry-After"))
			require.Equal(t, []string{"one", "two"}, resp.Header["X-Twice"])
			require.Equal(t, page, rationtest.Drain(t, resp))
			require.Equal(t, http.Header{"X-Sum": {"3"}}, resp.Trailer)
			w.requireBookings(t, row.sent)
		})
	}
}

// A body that breaks off is read for what it says, and breaks off for the caller
// behind the same byte and with the same error.
func TestBodyThatBreaksOffBreaksOffForTheCallerToo(t *testing.T) {
	content := []byte(metaRefusal)
	for i := len(content); i < 1<<20; i++ {
		content = append(content, byte(i*7+i>>8))
	}
	for _, sent := range []int{0, len(metaRefusal), 10_000, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		t.Run(fmt.Sprint(sent), func(t *testing.T) {
			w := newJudgedWire(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", fmt.Sprint(10<<20))
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write(content[:sent])
			})
			for _, sender := range []http.RoundTripper{w.Client.Transport, w.Base} {
				resp, err := sender.RoundTrip(rationtest.NewRequest(t, http.MethodGet, w.URL, nil))
				require.NoError(t, err)
				if sender == w.Base {
					f := presets.Meta().ReadResponse(resp, time.Now())
					require.Equal(t, sent >= len(metaRefusal), f.Refused)
				}
				require.EqualValues(t, 10<<20, resp.ContentLength)
				got, err := io.ReadAll(resp.Body)
				require.Equal(t, io.ErrUnexpectedEOF, err)
				require.Equal(t, content[:sent], got)
				require.NoError(t, resp.Body.Close())
			}
		})
	}
}

// Ten thousand calls leave behind no more than the connections that they share, and
// CloseIdleConnections, which http.Client asks of its outermost transport only, those
// neither.
func TestManyCallsLeaveNothingBehind(t *testing.T) {
	const callers, calls = 4, 2500
	w := rationtest.NewWire(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"page":1}`) })
	w.Budget.Limits = []ration.Limit{ration.PerHour(callers * calls)}
	w.Base.MaxIdleConnsPerHost = callers
	var opened atomic.Int64
	w.Base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		opened.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	before := runtime.NumGoroutine()
	var workers sync.WaitGroup
	for range callers {
		workers.Go(func() {
			for range calls {
				rationtest.Get(t, w.Client, w.URL)
			}
		})
	}
	workers.Wait()
	left, err := w.Budget.Remaining(t.Context(), w.Token)
	require.NoError(t, err)
	require.Zero(t, left)
	// A call may dial while another hands its connection back.
	require.LessOrEqual(t, opened.Load(), int64(2*callers))
	w.Client.CloseIdleConnections()
	requireGoroutines(t, before)
}

func TestCloseIdleConnectionsReachesBase(t *testing.T) {
	api := rationtest.NewAPI(nil)
	client := &http.Client{Transport: &ration.Transport{Base: api}}
	client.CloseIdleConnections()
	require.Equal(t, 1, api.Idled)

	// A Base that keeps no connections is left alone.
	(&ration.Transport{Base: rationtest.RoundTripper(nil)}).CloseIdleConnections()
}

const metaRefusal = `{"error":{"code":17,"type":"OAuthException"}}`

// requireGoroutines fails if there are soon no fewer than that.
func requireGoroutines(t *testing.T, most int) {
	t.Helper()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= most+1 }, 20*time.Second, 5*time.Millisecond, "one is the condition's own")
}
