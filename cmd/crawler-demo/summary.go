package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration"
)

// A summary is what came of a crawl. Its JSON is what -json prints.
type summary struct {
	Verdict     string        `json:"verdict"`
	Requests    int           `json:"requests"` // calls that were sent, refused ones among them
	OK          int           `json:"ok"`       // URLs that were answered for good, with a 404 or a 401 too
	Refused     int           `json:"refused"`  // calls, retried ones included
	Failed      int           `json:"failed"`   // URLs that were not fetched: another run tries them again
	Left        int           `json:"left"`     // URLs that were not tried
	Earlier     int           `json:"earlier"`  // URLs that earlier runs have fetched
	Interrupted bool          `json:"interrupted"`
	Elapsed     float64       `json:"elapsed_s"`
	QuotaUsed   float64       `json:"quota_used"` // of what the provider allowed: see tokenQuota
	StoreCalls  int64         `json:"store_calls"`
	PerCall     float64       `json:"commands_per_call"`
	Fairness    float64       `json:"fairness"` // see jain
	LateP50     float64       `json:"late_p50_ms"`
	LateP99     float64       `json:"late_p99_ms"`
	MachineLate float64       `json:"machine_late_ms,omitempty"` // at worst, in the demo
	Waiting     float64       `json:"waiting"`                   // the share of their time that workers waited for slots
	Limits      []string      `json:"limits"`
	Processes   int           `json:"processes"`
	Workers     int           `json:"workers"`
	Statuses    map[int]int   `json:"statuses"` // of the URLs that were fetched
	Tokens      []tokenReport `json:"tokens"`
	Events      eventSummary  `json:"events"`
	Judge       *judgement    `json:"judge,omitempty"`
	Out         string        `json:"out,omitempty"`
	Plot        string        `json:"plot,omitempty"`

	plan     plan
	exit     int
	deciding ration.Limit // of the crawl's limits
	allowed  int          // calls, to all tokens
	begin    time.Time    // of the first call
	span     time.Duration
}

// A tokenReport is what was sent with one token.
type tokenReport struct {
	Token       string `json:"token"` // ID
	Calls       int    `json:"calls"`
	Refused     int    `json:"refused"`
	Allowed     int    `json:"allowed"`       // calls, by the provider
	Limit       string `json:"limit"`         // the one of the limits that decides
	MaxInWindow int    `json:"max_in_window"` // by when the calls were sent
}

// A judgement is what the demo's provider counted.
type judgement struct {
	Accepted    int `json:"accepted"`
	Refused     int `json:"refused"`
	MaxInWindow int `json:"max_in_window"` // by when the calls arrived
}

// demoQuota is the share of the quota, less the margin, that the demo must use to
// pass.
const demoQuota = 0.98

// leastQuota is the share of what the demo's provider admits below which a demo does not pass: the
// margin then keeps more free than the fleet uses it for.
const leastQuota = 0.75

// summarise counts up a crawl that has ended, by an interruption or an error
// perhaps.
func (c *crawl) summarise(interrupted bool, failed error) *summary {
	t, p := c.stats, c.plan
	t.sorted()
	first, span := t.span()
	if p.lasting > 0 && !interrupted && failed == nil { // what was not sent in time counts
		span = max(span, c.ends.Sub(time.UnixMicro(first)))
	}
	begin := time.UnixMicro(first)
	most := 0
	for i := range t.byToken {
		of := &t.byToken[i]
		of.quota = t.quotaOf(*of, p.limits, begin, span)
		most += of.quota.calls
	}
	_, deciding := allowed(p.limits, begin, span)
	s := &summary{
		Requests: t.requests, OK: t.fetched, Refused: t.refused, Failed: t.failed,
		Left: len(c.queue), Earlier: t.before, Interrupted: interrupted,
		Elapsed:  t.elapsed().Seconds(),
		Fairness: jain(t.byWorker),
		LateP50:  float64(percentile(t.late, 50)) / 1000,
		LateP99:  float64(percentile(t.late, 99)) / 1000,
		Limits:   p.limitsText(), Processes: p.processes, Workers: p.workers,
		Statuses: t.statuses, Events: t.events, Out: p.out,
		plan: p, deciding: deciding, allowed: most, begin: begin, span: span,
	}
	if t.requests > 0 && most > 0 {
		s.QuotaUsed = float64(t.requests-t.refused) / float64(most)
	}
	if s.Elapsed > 0 {
		s.Waiting = float64(t.waited) / 1e6 / (s.Elapsed * float64(p.workers))
	}
	s.StoreCalls = c.plan.commands
	for _, m := range c.groups {
		s.StoreCalls += m.commands
	}
	s.PerCall = float64(s.StoreCalls) / float64(max(t.requests, 1))
	for _, of := range t.byToken {
		r := tokenReport{Token: of.token.ID(), Calls: len(of.sent), Refused: of.refused, Allowed: of.quota.calls, Limit: of.quota.deciding.String()}
		if len(of.sent) > 0 {
			r.MaxInWindow = slices.Max(inWindow(of.sent, of.quota.deciding.Window))
		}
		s.Tokens = append(s.Tokens, r)
	}
	s.MachineLate = float64(c.machineLate().Microseconds()) / 1000
	s.judge(failed)
	return s
}

// judge comes to the verdict.
func (s *summary) judge(failed error) {
	maxed := s.plan.max > 0 && s.OK >= s.plan.max
	complete := failed == nil && !s.Interrupted && s.Failed == 0 && (s.Left == 0 || maxed)
	s.exit = exitNotDone
	switch {
	case s.Interrupted:
		s.exit = exitInterrupted
	case complete:
		s.exit = exitDone
	}
	if s.plan.judge != nil {
		s.judgeDemo(failed)
		return
	}
	var b strings.Builder
	switch {
	case failed != nil:
		fmt.Fprintf(&b, "STOPPED: %s. ", strings.TrimSuffix(oneLine(failed), "."))
	case s.Interrupted:
		b.WriteString("INTERRUPTED: ")
	case complete:
		b.WriteString("DONE: ")
	default:
		b.WriteString("NOT DONE: ")
	}
	fmt.Fprintf(&b, "%s fetched", count(s.OK, "URL"))
	if text := s.errorsText(); text != "" {
		fmt.Fprintf(&b, " (%s: -retry-failed fetches them again)", text)
	}
	fmt.Fprintf(&b, ", %d refused", s.Refused)
	if s.Earlier > 0 {
		fmt.Fprintf(&b, ", %d fetched before", s.Earlier)
	}
	if s.Failed > 0 {
		fmt.Fprintf(&b, ", %d failed", s.Failed)
	}
	if s.Left > 0 {
		fmt.Fprintf(&b, ", %d left", s.Left)
	}
	if s.Failed+s.Left > 0 {
		if s.Out != "" {
			b.WriteString("; run the same command again to fetch what is missing")
		} else {
			b.WriteString("; with -out FILE.jsonl another run would go on from here")
		}
	}
	s.Verdict = b.String()
}

// errorsText counts the errors among what was fetched, by status.
func (s *summary) errorsText() string {
	var all []string
	for _, status := range slices.Sorted(maps.Keys(s.Statuses)) {
		if status >= 400 {
			all = append(all, fmt.Sprintf("%d answered %d %s", s.Statuses[status], status, http.StatusText(status)))
		}
	}
	return strings.Join(all, ", ")
}

// judgeDemo takes the provider's word, and compares it with the crawler's own. What a busy
// machine can be the cause of is held against nobody if the machine was busy.
func (s *summary) judgeDemo(failed error) {
	r := s.plan.judge.Report()
	s.Judge = &judgement{Accepted: r.Accepted, Refused: r.Refused, MaxInWindow: r.MaxInWindow}
	s.Left = 0 // its pages have no end
	var why, late []string
	if failed != nil {
		why = append(why, oneLine(failed))
	}
	if s.Failed > 0 {
		why = append(why, count(s.Failed, "page")+" not fetched")
	}
	if r.Accepted+r.Refused != s.Requests || r.Unauthorised > 0 || r.NotFound > 0 {
		why = append(why, fmt.Sprintf("the provider counted %d calls, %d without a token and %d for nothing; the crawler counted %d",
			r.Accepted+r.Refused, r.Unauthorised, r.NotFound, s.Requests))
	}
	if r.Refused > 0 {
		late = append(late, fmt.Sprintf("%d refused", r.Refused))
	}
	if s.marginUsed() < demoQuota {
		late = append(late, fmt.Sprintf("only %.1f %% of the quota used, %.1f %% of what the margin leaves of it", 100*s.QuotaUsed, 100*s.marginUsed()))
		if text := s.tooFew(); text != "" {
			late = append(late, text)
		}
	} else if s.QuotaUsed < leastQuota {
		why = append(why, fmt.Sprintf("%.1f %% of what the provider admits used: the margin of %v keeps the rest free, and a shorter -margin or, with gcra, a burst does not",
			100*s.QuotaUsed, demoMarginOf(s.deciding)))
	}
	used := fmt.Sprintf("%d refused, %.1f %% of the quota used", r.Refused, 100*s.QuotaUsed)
	s.exit = exitNotDone
	switch {
	case s.Interrupted:
		s.Verdict, s.exit = "INTERRUPTED: "+used, exitInterrupted
	case len(why) == 0 && len(late) > 0 && s.MachineLate > s.tooLate():
		s.Verdict, s.exit = fmt.Sprintf("TOO BUSY: this machine was too busy to judge, for it was up to %.0f ms late: %s",
			s.MachineLate, strings.Join(late, "; ")), exitTooBusy
	case len(why)+len(late) > 0:
		s.Verdict = "FAIL: " + strings.Join(append(why, late...), "; ")
	default:
		s.Verdict, s.exit = "PASS: "+used, exitDone
	}
}

// leastWaiting is the share of their time below which workers that wait for slots are too few.
const leastWaiting = 0.05

// tooFew says that more workers would have used more of the quota, if so.
func (s *summary) tooFew() string {
	if s.Waiting >= leastWaiting {
		return ""
	}
	enough := min(mostWorkers, int(math.Ceil(1.5*float64(s.Workers)/max(s.marginUsed(), 0.01))))
	return fmt.Sprintf("%s waited for a slot %.0f %% of the time, so more would use it: -workers %d",
		count(s.Workers, "worker"), 100*s.Waiting, enough)
}

// tooLate is how late, in milliseconds, the machine may be and still judge: half of the margin.
// What was measured is waking and the way alone, and a call that is late by both uses up the whole.
func (s *summary) tooLate() float64 {
	return float64(demoMarginOf(s.deciding).Microseconds()) / 2000
}

// marginUsed is the share of what the margin leaves of the demo's quota that was
// used: with a window of a second the margin is much of it.
func (s *summary) marginUsed() float64 {
	reached := admits(s.deciding, demoMarginOf(s.deciding), s.begin, s.span) * len(s.Tokens)
	return float64(s.Requests-s.Refused) / float64(max(reached, 1))
}

func (s *summary) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(s)
}

// text is the summary for people.
func (s *summary) text(t *statistics) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s"+format+"\n", append([]any{name}, args...)...)
	}
	if s.Requests > 0 {
		b.WriteByte('\n')
		row("fetched", "%s in %s", count(s.OK, "URL"), seconds(s.Elapsed))
		if text := s.errorsText(); text != "" {
			row("errors", "%s", text)
		}
		row("calls", "%d, of which %d were refused", s.Requests, s.Refused)
		by := s.deciding.String() + " allows"
		if slices.ContainsFunc(t.byToken, func(of tokenStatistics) bool { return of.quota.own }) {
			by = "the provider allowed"
		}
		row("quota used", "%.1f %%: %d of the %d calls that %s %s in %s",
			100*s.QuotaUsed, s.Requests-s.Refused, s.allowed, by, count(len(s.Tokens), "token"), seconds(s.span.Seconds()))
		store := "calls of the log in memory"
		if s.plan.redis != "" {
			store = "Redis commands"
		}
		row("store", "%d %s, %.3f for each call", s.StoreCalls, store, s.PerCall)
		row("fairness", "%.3f between %s (Jain's index: 1 is equal)", s.Fairness, count(s.Workers, "worker"))
		lateness := fmt.Sprintf("%.1f ms behind the slot at p50, %.1f ms at p99", s.LateP50, s.LateP99)
		if s.Judge != nil {
			lateness += fmt.Sprintf("; this machine was up to %.1f ms late", s.MachineLate)
		}
		row("lateness", "%s", lateness)
		for i, of := range s.Tokens {
			deciding := t.byToken[i].quota.deciding
			text := fmt.Sprintf("%s: %d calls, %d refused, at most %d in any %v",
				short(of.Token), of.Calls, of.Refused, of.MaxInWindow, deciding.Window)
			if isExact(deciding) { // any other algorithm may let more through
				text += fmt.Sprintf(" where %d are allowed", deciding.Max)
			}
			row("token", "%s", text)
		}
		for _, n := range s.Events.Quarantined {
			row("quarantine", "%s: %s", short(n.Token), n.Quarantined)
		}
		for _, n := range s.Events.Limits {
			row("learned", "%s: %s", short(n.Token), strings.Join(n.Limits, " and "))
		}
		if s.Events.ExternalUsage > 0 {
			row("external", "other clients have spent %d units", s.Events.ExternalUsage)
		}
		if s.Events.StoreDown > 0 {
			row("outage", "the store did not answer for %s", seconds(s.Events.StoreDown))
		}
		if text := s.Events.otherText(); text != "" {
			row("events", "%s", text)
		}
		if s.Judge != nil {
			row("provider", "counted %d calls and refused %d; at most %d of a token arrived in any %v", s.Judge.Accepted,
				s.Judge.Refused, s.Judge.MaxInWindow, s.deciding.Window)
		}
		if s.span > 0 {
			b.WriteString("\n" + s.terminalPlot(t) + "\n\n")
		}
	}
	if s.Plot != "" {
		row("plot", "%s", s.Plot)
	}
	b.WriteString(s.Verdict + "\n")
	return b.String()
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }
