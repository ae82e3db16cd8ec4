package simulated

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const firstPage = "http://example.com/17841400000000001/media"

// call makes a GET with a token, unless that is empty.
func call(h http.Handler, url, token string) *httptest.ResponseRecorder {
	return callIn(context.Background(), h, url, token)
}

func callIn(ctx context.Context, h http.Handler, url, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// fullest returns the largest number of arrivals in any window that begins at one of them, by brute force.
func fullest(arrivals []time.Time, window time.Duration) int {
	largest := 0
	for _, begin := range arrivals {
		n := 0
		for _, arrival := range arrivals {
			if !arrival.Before(begin) && arrival.Sub(begin) < window {
				n++
			}
		}
		largest = max(largest, n)
	}
	return largest
}

// record keeps every accepted arrival, by token.
func record(p *Provider) map[string][]time.Time {
	var mu sync.Mutex
	arrivals := make(map[string][]time.Time)
	p.judged = func(token string, arrived time.Time, v verdict) {
		mu.Lock()
		defer mu.Unlock()
		if v.outcome == accepted {
			arrivals[token] = append(arrivals[token], arrived)
		}
	}
	return arrivals
}

// moment is a row of a timeline: a call at that time, the status it gets, and the headers.
type moment struct {
	at         time.Duration
	status     int
	remaining  string
	retryAfter string
}

func run(t *testing.T, p *Provider, moments []moment) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for i, m := range moments {
			time.Sleep(time.Until(start.Add(m.at)))
			w := call(p, firstPage, "secret")
			limit := ""
			if m.remaining != "" {
				limit = strconv.Itoa(p.limit())
			}
			require.Equal(t, m.status, w.Code, "call %d", i)
			require.Equal(t, m.remaining, w.Header().Get("X-Ratelimit-Remaining"), "call %d", i)
			require.Equal(t, limit, w.Header().Get("X-Ratelimit-Limit"), "call %d", i)
			require.Equal(t, m.retryAfter, w.Header().Get("Retry-After"), "call %d", i)
		}
	})
}

func TestCallExactlyAWindowLaterNoLongerCountsTheEarlier(t *testing.T) {
	p := &Provider{Limit: 3, Window: 10 * time.Second}
	run(t, p, []moment{
		{0, 200, "2", ""},
		{0, 200, "1", ""},
		{4 * time.Second, 200, "0", ""},
		{4 * time.Second, 429, "", ""},
		{10*time.Second - 1, 429, "", ""},
		{10 * time.Second, 200, "1", ""},
		{10 * time.Second, 200, "0", ""},
		{14*time.Second - 1, 429, "", ""},
		{14 * time.Second, 200, "0", ""},
		{20 * time.Second, 200, "1", ""},
		{time.Hour, 200, "2", ""},
	})
	report := p.Report()
	require.Equal(t, 8, report.Accepted)
	require.Equal(t, 3, report.Refused)
	require.Equal(t, 3, report.MaxInWindow)
}

func TestRefusedCallsCountOnlyByChoice(t *testing.T) {
	p := &Provider{Limit: 2, Window: 10 * time.Second, CountRefused: true}
	run(t, p, []moment{
		{0, 200, "1", ""},
		{0, 200, "0", ""},
		{9 * time.Second, 429, "0", ""},
		{10 * time.Second, 200, "0", ""}, // the refused one at 9 s counts
		{11 * time.Second, 429, "0", ""},
		{19 * time.Second, 429, "0", ""},
		{20 * time.Second, 429, "0", ""}, // 11 s and 19 s
		{40 * time.Second, 200, "1", ""},
	})
	report := p.Report()
	require.Equal(t, 4, report.Accepted)
	require.Equal(t, 4, report.Refused)
	require.Equal(t, 2, report.MaxInWindow, "only accepted calls are in it")
}

func TestRetryAfterIsWhenTheNextCallIsAdmitted(t *testing.T) {
	run(t, &Provider{Limit: 2, Window: 10 * time.Second, SendRetryAfter: true}, []moment{
		{0, 200, "1", ""},
		{3 * time.Second, 200, "0", ""},
		{4 * time.Second, 429, "", "6"},
		{4*time.Second + 1, 429, "", "6"},
		{10*time.Second - 1, 429, "", "1"},
		{10 * time.Second, 200, "0", ""},
		{11 * time.Second, 429, "", "2"},
		{13 * time.Second, 200, "0", ""},
	})
	run(t, &Provider{Limit: 2, Window: 10 * time.Second, SendRetryAfter: true, CountRefused: true}, []moment{
		{0, 200, "1", ""},
		{3 * time.Second, 200, "0", ""},
		{4 * time.Second, 429, "0", "9"},
		{13 * time.Second, 200, "0", ""},
	})
}

func TestFirstCallsAreRefusedOnDemand(t *testing.T) {
	p := &Provider{Limit: 1, Window: 10 * time.Second, RefuseFirst: 2, RefuseFirstFor: 1500 * time.Millisecond}
	run(t, p, []moment{
		{0, 429, "", "2"},
		{0, 429, "", "2"},
		{0, 200, "0", ""},
		{0, 429, "", ""},
	})
	report := p.Report()
	require.Equal(t, 2, report.Injected)
	require.Equal(t, 1, report.Refused)
	require.Equal(t, 1, report.Accepted)
	require.Equal(t, 2, report.Tokens[0].Injected)
}

func TestInjectedRefusalsCountOnlyByChoice(t *testing.T) {
	p := &Provider{Limit: 2, Window: 10 * time.Second, RefuseFirst: 1, CountRefused: true}
	run(t, p, []moment{
		{0, 429, "1", ""},
		{0, 200, "0", ""},
		{0, 429, "0", ""},
	})
	require.Equal(t, 1, p.Report().MaxInWindow, "only accepted calls are in it")
	require.Equal(t, 1, p.Report().Tokens[0].MaxInWindow)
}

func TestArrivalCountsAndNotTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limit: 1, Window: 10 * time.Second}
		p.Latency = func() time.Duration { return 7 * time.Second }
		start := time.Now()
		require.Equal(t, 200, call(p, firstPage, "secret").Code)
		require.Equal(t, 7*time.Second, time.Since(start))
		time.Sleep(3 * time.Second)
		require.Equal(t, 200, call(p, firstPage, "secret").Code, "10 s after the arrival, 3 s after the answer")
		require.Equal(t, start, p.Report().Tokens[0].First)
		require.Equal(t, start.Add(10*time.Second), p.Report().Tokens[0].Last)
	})
}

func TestCallWhoseCallerLeftCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limit: 1, Latency: func() time.Duration { return time.Minute }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.Empty(t, callIn(ctx, p, firstPage, "secret").Body.String())
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, 429, call(p, firstPage, "secret").Code)
	})
}

func TestTokensHaveTheirOwnQuota(t *testing.T) {
	p := &Provider{Limit: 1, Tokens: []string{"one", "two", "one"}}
	require.Equal(t, 200, call(p, firstPage, "two").Code)
	require.Equal(t, 429, call(p, firstPage, "two").Code)
	require.Equal(t, 200, call(p, firstPage+"?access_token=one", "").Code)
	require.Equal(t, 429, call(p, firstPage+"?access_token=two", "one").Code, "the header goes before the query")

	for _, unknown := range []string{"", "three"} {
		w := call(p, firstPage, unknown)
		require.Equal(t, 400, w.Code)
		require.JSONEq(t, `{"meta":{"code":400,"error_type":"OAuthAccessTokenException",
			"error_message":"The access_token provided is invalid."}}`, w.Body.String())
		require.Empty(t, w.Header().Get("X-Ratelimit-Remaining"))
	}

	report := p.Report()
	require.Equal(t, 2, report.Unauthorised)
	require.Len(t, report.Tokens, 2, "in the order of Tokens")
	require.Equal(t, []int{1, 1}, []int{report.Tokens[0].Accepted, report.Tokens[0].Refused})
	require.Equal(t, []int{1, 1}, []int{report.Tokens[1].Accepted, report.Tokens[1].Refused})
}

func TestNoTokenIsNeverGood(t *testing.T) {
	p := new(Provider)
	require.Equal(t, 400, call(p, firstPage, "").Code)
	require.Equal(t, 200, call(p, firstPage, "any").Code)
	require.Equal(t, 1, p.Report().Unauthorised)
}

func TestRefusalSpeaksLikeInstagram(t *testing.T) {
	p := &Provider{Limit: 1}
	w := call(p, firstPage, "secret")
	require.Equal(t, "1", w.Header().Get("X-Ratelimit-Limit"))
	w = call(p, firstPage, "secret")
	require.Equal(t, 429, w.Code)
	require.Equal(t, "application/json; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, `{"meta":{"code":429,"error_type":"OAuthRateLimitException",`+
		`"error_message":"The maximum number of requests per hour has been exceeded."}}`+"\n", w.Body.String())
}
