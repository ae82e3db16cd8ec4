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
// What is promised, whatever the interleaving of concurrent calls: there is no refusal if, and only if, no window of
// any alignment holds more than Limit arrivals. (RefuseFirst, CountRefused and Block change that by choice.) Count and
// Dialect choose another rule, which is judged as strictly.
//
// Arrival is the moment at which net/http hands the call over. How long it lay in a socket before, the provider cannot
// see, no more than Instagram can: two calls sent Window apart may arrive closer than that.
//
// The token comes where the dialect has it, which is "Authorization: Bearer TOKEN" or the query parameter access_token
// with Instagram. All dialects serve the same media, in two styles of page:
//
//	GET /{user}/media?limit=25&after=CURSOR                 Graph: the next page is paging.next
//	GET /v1/users/{user}/media/recent?count=25&max_id=ID    legacy: the next page is pagination.next_url
//
// Every page with a successor also names it in a Link header. No answer contains an access token: the caller sends it
// anew with each call. A call for anything else is a 404 and costs a call, as malformed calls to Instagram did.
//
// The zero Provider is ready to use, and is Instagram as it was. A Provider is safe for concurrent use; its fields must
// not change after the first call. It keeps some 200 kB per access token at Limit 5000, however long it runs, and four
// times that where it does not count by the log; and of each call that a Block refused its arrival.
type Provider struct {
	// Dialect is how it speaks; nil means like Instagram.
	Dialect Dialect
	// Limit is how many calls of one access token may arrive in any Window; zero means the dialect's, 5000 of Instagram.
	Limit int
	// Window is the length of the window; zero means the dialect's, one hour of Instagram.
	Window time.Duration
	// Count is how they are counted; zero means as the dialect does, exactly and in windows of any alignment with
	// Instagram.
	Count Counting
	// Burst is, for CountGCRA, how many calls may arrive at once after a rest, up to Limit; zero means 1, or Limit where
	// Count is zero.
	Burst int
	// Resolution is, for CountSubWindows, the length of a sub-window, up to Window; zero means a sixtieth of Window.
	Resolution time.Duration
	// Zone is, for CountFixedWindow, by whose clock windows begin; nil means UTC.
	Zone *time.Location
	// SecondaryLimit is how many calls of one token may arrive in any SecondaryWindow, beside the quota and whatever is
	// left of it. A call beyond it counts against neither. Zero means that there is no such limit.
	SecondaryLimit int
	// SecondaryWindow is its window; zero means one second.
	SecondaryWindow time.Duration
	// Tokens are the access tokens it knows; any other is answered as one that was revoked. Empty means that every token
	// is good, each with a quota of its own.
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
	// SendRetryAfter adds to a refusal the seconds, rounded up, until there is room again. False means that it says when
	// as the dialect does, and Instagram's does not.
	SendRetryAfter bool
	// RefuseFirst is how many calls, of all known tokens together, are refused before the first is judged, as if the
	// quota were spent. They are reported as injected, not as refused. Zero means none.
	RefuseFirst int
	// RefuseFirstFor is the Retry-After of those refusals, rounded up to seconds; zero means that they have none.
	RefuseFirstFor time.Duration

	// judged, for tests, is told every verdict with the stamp it was passed on. Called with no lock held.
	judged func(token string, arrived time.Time, v verdict)

	mu           sync.Mutex // protects what follows
	byToken      map[string]*tally
	tallies      []*tally // in the order of Tokens, or of first sight
	start        time.Time
	last         time.Time // arrival of a call that was no stranger's
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
	arrived := time.Now() // before anything else: not even a lock may stand between a call and its stamp

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
		return // nobody is left to answer
	}

	if v.retryAfter > 0 {
		w.Header().Set("Retry-After", wholeSeconds(v.retryAfter))
	}
	speaks, s := p.dialect(), p.standing(v, arrived)
	if v.why != KindDead {
		speaks.tell(w.Header(), s)
	}
	if s.why == "" && !found {
		s.why = missing
	}
	if s.why == "" {
		wanted.serve(w, r)
		return
	}
	status, body := speaks.fail(w.Header(), s)
	answer(w, status, body)
}

// standing is what the answer to a call may say.
func (p *Provider) standing(v verdict, arrived time.Time) standing {
	s := standing{user: v.user, arrived: arrived, why: v.why, counted: v.counted, limit: p.limit(), most: p.limit(),
		window: p.window(), remaining: v.remaining, full: v.full, next: v.next}
	if p.count() == CountGCRA {
		s.most = p.burst()
	}
	if s.full <= 0 {
		s.full = s.window // no window is open: one that a call began now would end then
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

// positiveOr is v, or byDefault where v is not positive: a negative limit would make every answer nonsense.
func positiveOr[T int | time.Duration](v, byDefault T) T {
	if v > 0 {
		return v
	}
	return byDefault
}
