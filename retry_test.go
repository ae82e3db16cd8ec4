package ration_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

// failing fails the first requests, and serves those behind them.
func failing(first int, err error) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		if n <= first {
			return nil, err
		}
		return rationtest.Served.To(req), nil
	}
}

// What fails is sent again where to send it twice is to send it once, and where it may
// succeed. Each sending is a booking.
func TestAFailureIsRetriedIfThatIsSafeAndMayHelp(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	key := []string{"Idempotency-Key", "k1"}
	for _, row := range []struct {
		name   string
		method string
		header []string
		fails  func(int, *http.Request) (*http.Response, error)
		want   int
	}{
		{"GET 500", http.MethodGet, nil, rationtest.Replying(1, rationtest.Reply{Status: 500}), 2},
		{"GET 502", http.MethodGet, nil, rationtest.Replying(1, rationtest.Reply{Status: 502}), 2},
		{"GET 408", http.MethodGet, nil, rationtest.Replying(1, rationtest.Reply{Status: 408}), 2},
		{"HEAD 504", http.MethodHead, nil, rationtest.Replying(1, rationtest.Reply{Status: 504}), 2},
		{"PUT 500", http.MethodPut, nil, rationtest.Replying(1, rationtest.Reply{Status: 500}), 2},
		{"DELETE 500", http.MethodDelete, nil, rationtest.Replying(1, rationtest.Reply{Status: 500}), 2},
		{"POST 500", http.MethodPost, nil, rationtest.Replying(1, rationtest.Reply{Status: 500}), 1},
		{"PATCH 500", http.MethodPatch, nil, rationtest.Replying(1, rationtest.Reply{Status: 500}), 1},
		{"POST 500 with a key", http.MethodPost, key, rationtest.Replying(1, rationtest.Reply{Status: 500}), 2},
		{"PATCH 500 with a key", http.MethodPatch, []string{"X-Idempotency-Key", "k1"}, rationtest.Replying(1, rationtest.Reply{Status: 500}), 2},
		{"POST 503 that tells the wait", http.MethodPost, nil, rationtest.Replying(1, rationtest.Reply{Status: 503, Body: "", Header: []string{"Retry-After", "5"}}), 1},
		{"POST 503 that tells the wait, with a key", http.MethodPost, key, rationtest.Replying(1, rationtest.Reply{Status: 503, Body: "", Header: []string{"Retry-After", "5"}}), 2},
		{"POST 429", http.MethodPost, nil, rationtest.Replying(1, rationtest.Reply{Status: 429}), 2},
		{"GET 501", http.MethodGet, nil, rationtest.Replying(1, rationtest.Reply{Status: 501}), 1},
		{"GET 404", http.MethodGet, nil, rationtest.Replying(1, rationtest.Reply{Status: 404}), 1},
		{"GET 500 that says no", http.MethodGet, nil, rationtest.Replying(1, rationtest.Reply{Status: 500, Body: "", Header: []string{"X-Should-Retry", "false"}}), 1},
		{"GET reset", http.MethodGet, nil, failing(1, reset), 2},
		{"GET end of file", http.MethodGet, nil, failing(1, io.ErrUnexpectedEOF), 2},
		{"GET closed", http.MethodGet, nil, failing(1, errors.New("http: server closed idle connection")), 2},
		{"GET stream", http.MethodGet, nil, failing(1, errors.New("http2: server sent GOAWAY")), 2},
		{"POST reset", http.MethodPost, nil, failing(1, reset), 1},
		{"POST reset with a key", http.MethodPost, key, failing(1, reset), 2},
		{"GET no such host", http.MethodGet, nil, failing(1, &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}), 1},
		{"GET resolver that fails", http.MethodGet, nil, failing(1, &net.OpError{Op: "dial", Err: &net.DNSError{IsTemporary: true}}), 2},
		{"GET foreign certificate", http.MethodGet, nil, failing(1, &net.OpError{Op: "dial", Err: &tls.CertificateVerificationError{Err: errors.New("x")}}), 1},
		{"GET nonsense", http.MethodGet, nil, failing(1, errors.New("unsupported protocol scheme")), 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const content = "{\"amount\": 7}\x00\xff\r\n"
				api := rationtest.NewAPI(row.fails)
				b, token := rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a")
				transport := &ration.Transport{Base: api, Pool: ration.NewPool(b, token)}
				req := rationtest.NewRequest(t, row.method, "http://api.test/", strings.NewReader(content))
				for i := 0; i < len(row.header); i += 2 {
					req.Header.Set(row.header[i], row.header[i+1])
				}
				resp, err := transport.RoundTrip(req)
				require.Len(t, api.Calls(), row.want)
				rationtest.RequireRemaining(t, b, token, 100-row.want)
				if row.want == 2 {
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, resp.StatusCode)
				}
				for _, c := range api.Calls() {
					require.Equal(t, content, c.Body)
					for i := 0; i < len(row.header); i += 2 {
						require.Equal(t, row.header[i+1], c.Header.Get(row.header[i]))
					}
				}
				if err == nil {
					rationtest.Drain(t, resp)
				}
			})
		})
	}
}

// A body that cannot be had again is not sent again, whatever the key promises.
func TestAFailureWithoutGetBodyIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(rationtest.Replying(1, rationtest.Reply{Status: 500}))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))}
		sent := rationtest.NewBody("content")
		req := rationtest.NewRequest(t, http.MethodPost, "http://api.test/", sent)
		req.Header.Set("Idempotency-Key", "k1")
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, 500, resp.StatusCode)
		require.Len(t, api.Calls(), 1)
		require.Equal(t, 1, sent.Closed)
	})
}

// Between failures are 1, 2, 4, ... seconds and up to half as much again by chance, so
// that a fleet that failed together does not come back together; a minute at most.
func TestPausesBetweenFailuresGrow(t *testing.T) {
	for name, fails := range map[string]func(int, *http.Request) (*http.Response, error){
		"500": rationtest.Replying(100, rationtest.Reply{Status: 500}), "connection": failing(100, io.EOF),
	} {
		t.Run(name, func(t *testing.T) {
			firsts := make(map[time.Duration]bool)
			for range 10 {
				synctest.Test(t, func(t *testing.T) {
					api := rationtest.NewAPI(fails)
					transport := &ration.Transport{Base: api, Retries: ration.RetryPolicy{Max: 8}, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))}
					_, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
					if name == "connection" {
						require.ErrorIs(t, err, io.EOF, "the caller gets the last failure unchanged")
					}
					at := api.Times()
					require.Len(t, at, 1+8)
					for i := range 8 {
						pause, least := at[i+1]-at[i], min(time.Second<<i, 40*time.Second)
						require.GreaterOrEqual(t, pause, least)
						require.LessOrEqual(t, pause, min(time.Second<<i*3/2, time.Minute))
					}
					firsts[at[1]] = true
				})
			}
			require.Greater(t, len(firsts), 5, "they are not spread")
		})
	}
}

// RetryPolicy.Max bounds the count, and Within the time from the first answer; the pauses
// that the store keeps are in that time too.
func TestRetriesOfFailuresAreBounded(t *testing.T) {
	for _, row := range []struct {
		name    string
		says    rationtest.Reply
		retries int
		within  time.Duration
		want    int
		least   time.Duration // how long all takes
		most    time.Duration
	}{
		{"by count", rationtest.Reply{Status: 500}, 0, 0, 1 + 3, 7 * time.Second, 11 * time.Second},
		{"by another count", rationtest.Reply{Status: 500}, 1, 0, 1 + 1, time.Second, 2 * time.Second},
		{"never", rationtest.Reply{Status: 500}, -1, 0, 1, 0, 0},
		{"by time", rationtest.Reply{Status: 500}, 100, 20 * time.Second, 0, 5 * time.Second, 20 * time.Second},
		{"by time while the account is paused", rationtest.Reply{Status: 429, Body: "", Header: []string{"Retry-After", "600"}}, 100, 25 * time.Minute, 3, 20 * time.Minute, 20 * time.Minute},
		{"by a shorter time", rationtest.Reply{Status: 429, Body: "", Header: []string{"Retry-After", "600"}}, 100, 5 * time.Minute, 1, 0, 0},
		{"by six hours", rationtest.Reply{Status: 429, Body: "", Header: []string{"Retry-After", "3500"}}, 100, 0, 1 + 6, 6 * 3500 * time.Second, 6 * 3500 * time.Second},
		{"never a refusal", rationtest.Reply{Status: 429}, -1, 0, 1, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var answers []*rationtest.Body
				row.says.Body = strings.Repeat("as it is ", 1000)
				api := rationtest.NewAPI(rationtest.KeepBodies(&answers, rationtest.Replying(1000, row.says)))
				transport := &ration.Transport{Base: api, Retries: ration.RetryPolicy{Max: row.retries, Within: row.within},
					Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(1000)), ration.NewToken("a"))}
				resp, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
				require.NoError(t, err)
				require.Equal(t, row.says.Status, resp.StatusCode)
				if row.want > 0 {
					require.Len(t, api.Calls(), row.want)
				}
				require.GreaterOrEqual(t, time.Since(api.Begun), row.least)
				require.LessOrEqual(t, time.Since(api.Begun), row.most)
				require.Equal(t, row.says.Body, rationtest.Drain(t, resp), "the last answer is given in full")
				for _, b := range answers {
					require.Equal(t, 1, b.Closed)
				}
			})
		})
	}
}

// A caller that gives up during a pause of its own has the reason that it gave.
func TestCancelDuringAPauseAfterAFailure(t *testing.T) {
	for name, fails := range map[string]func(int, *http.Request) (*http.Response, error){
		"500": rationtest.Replying(100, rationtest.Reply{Status: 500}), "connection": failing(100, io.EOF),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var answers []*rationtest.Body
				api := rationtest.NewAPI(rationtest.KeepBodies(&answers, fails))
				b, token := rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a")
				transport := &ration.Transport{Base: api, Pool: ration.NewPool(b, token)}
				ctx, cancel := context.WithCancelCause(t.Context())
				enough := errors.New("enough of it")
				time.AfterFunc(500*time.Millisecond, func() { cancel(enough) })
				again := &rationtest.Bodies{Content: "content"}
				req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://api.test/", rationtest.NewBody("content"))
				require.NoError(t, err)
				req.GetBody = again.Get
				resp, err := transport.RoundTrip(req)
				require.Nil(t, resp)
				require.ErrorIs(t, err, enough)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 500*time.Millisecond, time.Since(api.Begun))
				for _, b := range append(answers, again.Made...) {
					require.Equal(t, 1, b.Closed)
				}
				rationtest.RequireRemaining(t, b, token, 99)
			})
		})
	}
}

// A deadline that the pause would outlast is not waited for.
func TestAFailureIsReturnedAtOnceIfThePauseIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(rationtest.Replying(100, rationtest.Reply{Status: 500}))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), ration.NewToken("a"))}
		ctx, stop := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer stop()
		resp, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil).WithContext(ctx))
		require.NoError(t, err)
		require.Equal(t, 500, resp.StatusCode)
		require.Zero(t, time.Since(api.Begun))
	})
}

// What no wait helps against is sent once, also where another token is free, and the
// caller has what the provider says.
func TestARequestThatCannotSucceedIsNotRetried(t *testing.T) {
	for _, row := range []struct {
		name, provider string
		says           rationtest.Reply
		reason         provider.Reason
		refused        bool
	}{
		{"no credit", "openai", rationtest.Reply{Status: 429, Body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, Header: append([]string{"Retry-After", "1"}, rationtest.JSON...)}, provider.ReasonBilling, true},
		{"no plan", "generic", rationtest.PaymentRequired, provider.ReasonBilling, true},
		{"too large", "openai", rationtest.Reply{Status: 429, Body: `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 42000.","type":"tokens","code":"rate_limit_exceeded"}}`, Header: rationtest.JSON}, provider.ReasonTooLarge, false},
		{"too large by status", "generic", rationtest.Reply{Status: 413}, provider.ReasonTooLarge, false},
		{"too dear", "shopify", rationtest.Reply{Status: 200, Body: `{"errors":[{"message":"Query cost is 2003","extensions":{"code":"MAX_COST_EXCEEDED","cost":2003}}]}`, Header: rationtest.JSON}, provider.ReasonTooLarge, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := rationtest.Preset(t, row.provider)
				p.Attach = nil
				api := rationtest.NewAPI(rationtest.Replying(100, row.says))
				refused := 0
				client := &http.Client{Transport: &ration.Transport{Base: api, Provider: p,
					Pool:      ration.NewPool(rationtest.NewBudget(ration.PerHour(100)), rationtest.Tokens("a", "b")...),
					OnRefusal: func(*http.Response, ration.Grant) { refused++ }}}
				resp, err := client.Post("http://api.test/", "text/plain", strings.NewReader("content"))
				require.NoError(t, err)
				require.Len(t, api.Calls(), 1)
				require.Equal(t, row.says.Status, resp.StatusCode)
				f, found := ration.FeedbackOf(resp)
				require.True(t, found)
				require.Equal(t, row.reason, f.Reason)
				require.Equal(t, row.says.Body, rationtest.Drain(t, resp))
				require.Equal(t, row.refused, refused == 1)
				require.Zero(t, time.Since(api.Begun))
			})
		})
	}
}
