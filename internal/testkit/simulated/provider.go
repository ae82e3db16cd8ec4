// Package simulated has the providers for ration's demo and tests: HTTP APIs that enforce a quota, each in the dialect of
// a real provider. The default is Instagram, with its 5000 calls per access token in any hour. A provider counts as its
// dialect does, or as its Count says.
//
// It judges the limiter, so it shares no code with it: it imports nothing of ration, and decides by its own log of
// arrivals whether a call is within quota.
package simulated

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// ReportPath is where ServeHTTP serves the [Report] as JSON, to anyone and at no cost.
const ReportPath = "/-/report"

// Provider is an HTTP handler that serves the media of its users in pages and refuses, as its dialect does, the calls of
// an access token beyond Limit in any Window.
//
// The quota is judged by arrival: a call is stamped before anything else happens to it, and Latency comes afterwards.
// The rule is exact and strict. With Limit 5000 and Window one hour, a call that arrives at 13:00:00 counts the calls
// that arrived after 12:00:00 and not one that arrived at 12:00:00 sharp, and it is refused if there are 5000 of them.
// However concurrent calls interleave, there is no refusal if, and only if, no window of any alignment holds more than
// Limit arrivals. (RefuseFirst, CountRefused and Block change that by choice.) Count and
// Dialect choose another rule, which is judged as strictly.
//
// Arrival is the moment at which net/http calls the handler. The provider cannot see how long the call waited in a
// socket before: two calls sent Window apart may arrive closer than that.
//
// The token comes where the dialect has it, which is "Authorization: Bearer TOKEN" or the query parameter access_token
// with Instagram. All dialects serve the same media, in pages as Instagram's Graph API has them:
//
//	GET /{user}/media?limit=25&after=CURSOR
//
// Every page but the last names the next, as paging.next and in a Link header. No answer contains an access token: the caller sends it
// with each call. A call for anything else is a 404 and spends a unit, as malformed calls to Instagram did.
//
// The zero Provider is ready to use, and is Instagram. A Provider is safe for concurrent use; its fields must not change
// after the first call. It keeps some 200 kB per access token at Limit 5000, however long it runs, and four times that if
// it does not count by the log. It also keeps the arrival of each call that a Block refused.
type Provider struct {
	// Dialect is its protocol; nil means Instagram's.
	Dialect Dialect
	// Limit is how many calls of one access token may arrive in any Window; zero means the dialect's, 5000 for
	// Instagram.
	Limit int
	// Window is the length of the window; zero means the dialect's, one hour for Instagram.
	Window time.Duration
	// Count is how they are counted; zero means as the dialect does: for Instagram exactly, in windows of any
	// alignment.
	Count Counting
	// Burst is, for CountGCRA, how many calls may arrive at once after a rest, up to Limit; zero means 1, or Limit if
	// Count is zero.
	Burst int
	// Resolution is, for CountSubWindows, the length of a sub-window, up to Window; zero means a sixtieth of Window.
	Resolution time.Duration
	// Zone is, for CountFixedWindow, the time zone in which windows begin; nil means UTC.
	Zone *time.Location
	// SecondaryLimit is how many calls of one token may arrive in any SecondaryWindow, whatever is left of the quota. A
	// call beyond it counts against neither. Zero means that there is no such limit.
	SecondaryLimit int
	// SecondaryWindow is its window; zero means one second.
	SecondaryWindow time.Duration
	// Tokens are the valid access tokens; any other is answered as one that was revoked. Empty means that every token is
	// valid. Each token has its own quota.
	Tokens []string

	// Users is the number of users; zero means 10.
	Users int
	// PagesPerUser is the number of full pages that each user has; zero means 20.
	PagesPerUser int
	// PageSize is the number of media in a page, unless the caller asks for fewer; zero means 25.
	PageSize int

	// Latency returns how long the next answer takes, from the arrival's stamp. It is called concurrently. A call whose
	// caller gives up meanwhile has arrived, and counts. Nil means no time.
	Latency func() time.Duration

	// CountRefused makes a refused call count against the quota like an accepted one, so that a caller that does not
	// stop is never accepted again. False means that only accepted calls count.
	CountRefused bool
	// SendRetryAfter adds a Retry-After to a refusal: the seconds, rounded up, until a call would be accepted. False
	// means that only the dialect decides; Instagram's sends none.
	SendRetryAfter bool
	// RefuseFirst is how many calls, of all valid tokens together, are refused before the first is judged, as if the
	// quota were spent. The Report counts them as injected, not as refused. Zero means none.
	RefuseFirst int
	// RefuseFirstFor is the Retry-After of those refusals, rounded up to seconds; zero means none.
	RefuseFirstFor time.Duration

	// judged, for tests, is called with every verdict and the stamp of its call, with no lock held.
	judged func(token string, arrived time.Time, v verdict)

	mu           sync.Mutex // protects what follows
	byToken      map[string]*tally
	tallies      []*tally // in the order of Tokens, or of their first calls
	start        time.Time
	last         time.Time // arrival of a call that was not one of Spend
	block        block     // of all tokens
	unauthorised int
	notFound     int
	injected     int
}

const (
	defaultUsers        = 10
	defaultPagesPerUser = 20
	defaultPageSize     = 25
)

// ServeHTTP judges the call, takes Latency's time, and answers.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now() // before anything else, even a lock, can delay the stamp

	if r.URL.Path == ReportPath {
		answer(w, http.StatusOK, p.Report())
		return
	}

	wanted, found := p.find(r)
	token := p.dialect().token(r)
	v := p.judge(token, arrived, found)
	if p.judged != nil {
		p.judged(token, arrived, v)
	}
	if p.Latency != nil && !sleep(r.Context(), time.Until(arrived.Add(p.Latency()))) {
		return // the caller is gone
	}

	if v.retryAfter > 0 {
		w.Header().Set("Retry-After", wholeSeconds(v.retryAfter))
	}
	dialect, s := p.dialect(), p.quotaState(v, arrived)
	if v.why != KindDead {
		dialect.setHeaders(w.Header(), s)
	}
	if s.why == "" && !found {
		s.why = missing
	}
	if s.why == "" {
		wanted.serve(w, r)
		return
	}
	status, body := dialect.fail(w.Header(), s)
	answer(w, status, body)
}

// quotaState returns what the answer to a call may say.
func (p *Provider) quotaState(v verdict, arrived time.Time) quotaState {
	s := quotaState{user: v.user, arrived: arrived, why: v.why, counted: v.counted, limit: p.limit(), most: p.limit(),
		window: p.window(), remaining: v.remaining, full: v.full, next: v.next}
	if p.count() == CountGCRA {
		s.most = p.burst()
	}
	if s.full <= 0 {
		s.full = s.window // no window is open: if a call began one now it would end then
	}
	return s
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

func answer(w http.ResponseWriter, status int, body any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // an & in a URL stays readable
	_ = encoder.Encode(body)     // fails only if the caller is gone
}

func (p *Provider) dialect() Dialect {
	if p.Dialect == nil {
		return instagramDialect{}
	}
	return p.Dialect
}

func (p *Provider) limit() int            { return positiveOr(p.Limit, p.dialect().usual().limit) }
func (p *Provider) window() time.Duration { return positiveOr(p.Window, p.dialect().usual().window) }
func (p *Provider) users() int            { return positiveOr(p.Users, defaultUsers) }
func (p *Provider) pagesPerUser() int     { return positiveOr(p.PagesPerUser, defaultPagesPerUser) }
func (p *Provider) pageSize() int         { return positiveOr(p.PageSize, defaultPageSize) }

// positiveOr returns v, or byDefault if v is not positive.
func positiveOr[T int | time.Duration](v, byDefault T) T {
	if v > 0 {
		return v
	}
	return byDefault
}
