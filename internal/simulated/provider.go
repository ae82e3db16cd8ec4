// Package simulated simulates the providers of ration's demo and tests: APIs that each have a dialect and enforce a quota.
// Instagram is the default dialect, with its 5000 calls per access token in any hour. A provider counts in the way of its
// dialect, or in any other.
//
// It is the judge of the limiter, so it shares no code with it: it imports nothing of ration, and it decides by a log
// of arrivals of its own whether a call is within quota.
package simulated

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ReportPath is where ServeHTTP serves the [Report] as JSON, to anyone and at no cost.
const ReportPath = "/-/report"

// Provider is an HTTP handler that serves the media of its users in pages and refuses, with a 429, the calls of an
// access token beyond Limit in any Window.
//
// The quota is judged by arrival: a call is stamped before anything else happens to it, and Latency comes afterwards.
// The rule is exact and strict. With Limit 5000 and Window one hour, a call that arrives at 13:00:00 counts the calls
// that arrived after 12:00:00 and not one that arrived at 12:00:00 sharp, and it is refused if there are 5000 of them.
// What is promised, whatever the interleaving of concurrent calls: there is no refusal if, and only if, no window of
// any alignment holds more than Limit arrivals. (RefuseFirst and CountRefused change that by choice.) Count chooses
// another rule, which is judged as strictly.
//
// Arrival is the moment at which net/http hands the call over. How long it lay in a socket before, the provider cannot
// see, no more than Instagram can: two calls sent Window apart may arrive closer than that.
//
// An access token comes as "Authorization: Bearer TOKEN" or as the query parameter access_token. There are two styles
// of page, over the same media:
//
//	GET /{user}/media?limit=25&after=CURSOR                 Graph: the next page is paging.next
//	GET /v1/users/{user}/media/recent?count=25&max_id=ID    legacy: the next page is pagination.next_url
//
// Every page with a successor also names it in a Link header. No answer contains an access token: the caller sends it
// anew with each call. A call for anything else is a 404 and costs a call, as malformed calls to Instagram did.
//
// The zero Provider is ready to use, and is Instagram as it was. A Provider is safe for concurrent use; its fields must
// not change after the first call. It keeps some 200 kB per access token at Limit 5000, however long it runs, and four
// times that where Count is not zero.
type Provider struct {
	// Limit is how many calls of one access token may arrive in any Window; zero means 5000.
	Limit int
	// Window is the length of the window; zero means one hour.
	Window time.Duration
	// Count is how they are counted; zero means exactly, in windows of any alignment.
	Count Counting
	// Burst is, for CountGCRA, how many calls may arrive at once after a rest, up to Limit; zero means 1.
	Burst int
	// Resolution is, for CountSubWindows, the length of a sub-window, up to Window; zero means a sixtieth of Window.
	Resolution time.Duration
	// Zone is, for CountFixedWindow, by whose clock windows begin; nil means UTC.
	Zone *time.Location
	// Tokens are the access tokens it knows; any other is answered with a 400. Empty means that every token is good,
	// each with a quota of its own.
	Tokens []string

	// Users is the number of users; zero means 10.
	Users int
	// PagesPerUser is the number of full pages that each user has; zero means 20.
	PagesPerUser int
	// PageSize is the number of media in a page, unless the caller asks for fewer; zero means 25.
	PageSize int

	// Latency says how long the next answer takes, counted from the arrival's stamp. It is called concurrently. A call
	// whose caller leaves meanwhile has still arrived, and counts. Nil means no time at all.
	Latency func() time.Duration

	// CountRefused makes a refused call count against the quota like an accepted one, so that a caller who does not
	// stop is never let in again. False means that only accepted calls count.
	CountRefused bool
	// SendRetryAfter adds to a 429 for a spent quota the seconds, rounded up, until it has room again. False means that
	// a 429 does not say when, as Instagram's does not.
	SendRetryAfter bool
	// RefuseFirst is how many calls, of all known tokens together, are answered with a 429 before the first is judged.
	// They are reported as injected, not as refused. Zero means none.
	RefuseFirst int
	// RefuseFirstFor is the Retry-After of those 429s, rounded up to seconds; zero means that they have none.
	RefuseFirstFor time.Duration

	// judged, for tests, is told every verdict with the stamp it was passed on. Called with no lock held.
	judged func(token string, arrived time.Time, v verdict)

	mu           sync.Mutex // protects what follows
	byToken      map[string]*tally
	tallies      []*tally // in the order of Tokens, or of first sight
	start        time.Time
	unauthorised int
	notFound     int
	injected     int
}

const (
	defaultLimit        = 5000
	defaultWindow       = time.Hour
	defaultUsers        = 10
	defaultPagesPerUser = 20
	defaultPageSize     = 25
)

// ServeHTTP judges the call, takes Latency's time, and answers.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now() // before anything else: not even a lock may stand between a call and its stamp

	if r.URL.Path == ReportPath {
		answer(w, http.StatusOK, p.Report())
		return
	}

	wanted, found := p.find(r)
	token := tokenOf(r)
	v := p.judge(token, arrived, found)
	if p.judged != nil {
		p.judged(token, arrived, v)
	}
	if p.Latency != nil && !sleep(r.Context(), time.Until(arrived.Add(p.Latency()))) {
		return // nobody is left to answer
	}

	if v.counted {
		w.Header().Set("X-Ratelimit-Limit", strconv.Itoa(p.limit()))
		w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(v.remaining))
	}
	if v.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(v.retryAfter.Seconds()))))
	}
	switch {
	case v.outcome == unauthorised:
		fail(w, http.StatusBadRequest, "OAuthAccessTokenException", "The access_token provided is invalid.")
	case v.outcome == refused || v.outcome == injected:
		fail(w, http.StatusTooManyRequests, "OAuthRateLimitException",
			"The maximum number of requests per hour has been exceeded.")
	case !found:
		fail(w, http.StatusNotFound, "APINotFoundError", "there is nothing here")
	default:
		wanted.serve(w, r)
	}
}

// tokenOf is the access token of the call, empty if it has none. The header goes before the query.
func tokenOf(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && token != "" {
		return token
	}
	return r.URL.Query().Get("access_token")
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// meta is the envelope of the legacy API: alone in an error, beside the data in a page.
type meta struct {
	Code         int    `json:"code"`
	ErrorType    string `json:"error_type,omitempty"`
	ErrorMessage string `json:"error_message,omitempty"`
}

func fail(w http.ResponseWriter, status int, errorType, message string) {
	answer(w, status, struct {
		Meta meta `json:"meta"`
	}{meta{status, errorType, message}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // an & in a URL stays readable
	_ = encoder.Encode(body)     // fails only if the caller is gone
}

func (p *Provider) limit() int            { return positiveOr(p.Limit, defaultLimit) }
func (p *Provider) window() time.Duration { return positiveOr(p.Window, defaultWindow) }
func (p *Provider) users() int            { return positiveOr(p.Users, defaultUsers) }
func (p *Provider) pagesPerUser() int     { return positiveOr(p.PagesPerUser, defaultPagesPerUser) }
func (p *Provider) pageSize() int         { return positiveOr(p.PageSize, defaultPageSize) }

// positiveOr is v, or byDefault where v is not positive: a negative limit would make every answer nonsense.
func positiveOr[T int | time.Duration](v, byDefault T) T {
	if v > 0 {
		return v
	}
	return byDefault
}
