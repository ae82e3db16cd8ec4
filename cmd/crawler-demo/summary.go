package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/stall"
)

// A summary is what came of a crawl. Its JSON is what -json prints.
type summary struct {
	Verdict     string        `json:"verdict"`
	Requests    int           `json:"requests"` // calls that were sent, refused ones among them
	OK          int           `json:"ok"`       // URLs whose answer is kept, a 404 too
	Refused     int           `json:"refused"`  // calls, retried ones included
	Failed      int           `json:"failed"`   // URLs that were not fetched: another run tries them again
	Left        int           `json:"left"`     // URLs that were not tried
	Earlier     int           `json:"earlier"`  // URLs that earlier runs have fetched
	Interrupted bool          `json:"interrupted"`
	Elapsed     float64       `json:"elapsed_s"`
	QuotaUsed   float64       `json:"quota_used"` // of what the limits admit
	Commands    int64         `json:"redis_commands"`
	Limits      []string      `json:"limits"`
	Processes   int           `json:"processes"`
	Workers     int           `json:"workers"`
	Statuses    map[int]int   `json:"statuses"` // of the URLs that were fetched
	Tokens      []tokenReport `json:"tokens"`
	Events      eventReport   `json:"events"`
	Judge       *judgement    `json:"judge,omitempty"`
	Out         string        `json:"out,omitempty"`
	Plot        string        `json:"plot,omitempty"`

	plan     plan
	exit     int
	deciding ration.Limit // of the crawl's limits
	admitted int          // calls, of all tokens
	begin    time.Time    // of the first call
	span     time.Duration
}

// A tokenReport is what was sent with one token.
type tokenReport struct {
	Token       string `json:"token"` // ID
	Calls       int    `json:"calls"`
	Refused     int    `json:"refused"`
	MaxInWindow int    `json:"max_in_window"` // by when the calls were sent
}

// An eventReport counts the events of all processes.
type eventReport struct {
	Kinds    map[string]int `json:"kinds,omitempty"`
	External int            `json:"external_usage,omitempty"` // units that other clients have spent
}

// A judgement is what the demo's provider counted.
type judgement struct {
	Accepted    int `json:"accepted"`
	Refused     int `json:"refused"`
	MaxInWindow int `json:"max_in_window"` // by when the calls arrived
}

// demoQuota is the share of the quota, less the margin, that the demo must use to pass.
const demoQuota = 0.98

// summarise counts up a crawl that has ended, by an interruption or an error
// perhaps.
func (c *crawl) summarise(interrupted bool, failed error, late time.Duration) *summary {
	t, p := c.stats, c.plan
	t.sorted()
	first, span := t.span()
	if p.lasting > 0 && !interrupted && failed == nil { // what was not sent in time counts
		span = max(span, c.ends.Sub(time.UnixMicro(first)))
	}
	begin := time.UnixMicro(first)
	s := &summary{
		Requests: t.requests, OK: t.fetched, Refused: t.refused, Failed: t.failed,
		Left: len(c.queue), Earlier: t.before, Interrupted: interrupted,
		Elapsed:  t.elapsed().Seconds(),
		Commands: p.commands,
		Limits:   p.limitsText(), Processes: p.processes, Workers: p.workers,
		Statuses: t.statuses, Events: eventReport{t.events, t.external}, Out: p.out,
		plan: p, deciding: deciding(p.limits, begin, span), begin: begin, span: span,
	}
	for _, m := range c.groups {
		s.Commands += m.commands
	}
	if t.requests > 0 {
		s.admitted = len(t.byToken) * admits(covering(p.limits), begin, span)
		s.QuotaUsed = float64(t.requests-t.refused) / float64(s.admitted)
	}
	for _, of := range t.byToken {
		r := tokenReport{Token: of.token.ID(), Calls: len(of.sent), Refused: of.refused}
		if len(of.sent) > 0 {
			r.MaxInWindow = slices.Max(inWindow(of.sent, s.deciding.Window))
		}
		s.Tokens = append(s.Tokens, r)
	}
	if p.judge != nil {
		s.judgeDemo(failed, late)
	} else {
		s.judgeCrawl(failed)
	}
	return s
}

// judgeCrawl comes to the verdict of a crawl.
func (s *summary) judgeCrawl(failed error) {
	maxed := s.plan.max > 0 && s.OK >= s.plan.max
	var b strings.Builder
	s.exit = exitNotDone
	switch {
	case failed != nil:
		fmt.Fprintf(&b, "STOPPED: %s. ", strings.TrimSuffix(oneLine(failed), "."))
	case s.Interrupted:
		b.WriteString("INTERRUPTED: ")
		s.exit = exitInterrupted
	case s.Failed == 0 && (s.Left == 0 || maxed):
		b.WriteString("DONE: ")
		s.exit = exitDone
	default:
		b.WriteString("NOT DONE: ")
	}
	fmt.Fprintf(&b, "%s fetched, %d refused", count(s.OK, "URL"), s.Refused)
	for _, part := range []struct {
		n    int
		what string
	}{{s.Earlier, "fetched before"}, {s.Failed, "failed"}, {s.Left, "left"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, ", %d %s", part.n, part.what)
		}
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

// judgeDemo takes the provider's word, and compares it with the crawler's own. What a busy
// machine can be the cause of is held against nobody if the machine was late.
func (s *summary) judgeDemo(failed error, machineLate time.Duration) {
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
	reachable := len(s.Tokens) * admits([]ration.Limit{withMargin(s.deciding, s.plan.margin)}, s.begin, s.span)
	if used := float64(s.Requests-s.Refused) / float64(max(reachable, 1)); used < demoQuota {
		late = append(late, fmt.Sprintf("only %.1f %% of the quota used, %.1f %% of what the margin leaves of it", 100*s.QuotaUsed, 100*used))
	}
	used := fmt.Sprintf("%d refused, %.1f %% of the quota used", r.Refused, 100*s.QuotaUsed)
	s.exit = exitNotDone
	switch {
	case s.Interrupted:
		s.Verdict, s.exit = "INTERRUPTED: "+used, exitInterrupted
	case len(why) == 0 && len(late) > 0 && machineLate > s.plan.margin/2:
		s.Verdict, s.exit = fmt.Sprintf("TOO BUSY: this machine was up to %v late, too busy to judge: %s",
			machineLate.Round(time.Millisecond), strings.Join(late, "; ")), exitTooBusy
	case len(why)+len(late) > 0:
		s.Verdict = "FAIL: " + strings.Join(append(why, late...), "; ")
	default:
		s.Verdict, s.exit = "PASS: "+used, exitDone
	}
}

// A wakeProbe measures how late this process wakes at worst: a machine whose goroutines wake late has calls arrive late,
// through nobody's fault. It does not depend on the code that is judged.
type wakeProbe struct{ worst atomic.Int64 }

// run measures until done.
func (p *wakeProbe) run(done <-chan struct{}) {
	stall.Probe(done, 10*time.Millisecond, func(due, now time.Time) { p.worst.Store(max(p.worst.Load(), int64(now.Sub(due)))) })
}

func (s *summary) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(s)
}

// text is the summary for people.
func (s *summary) text() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s"+format+"\n", append([]any{name}, args...)...)
	}
	if s.Requests > 0 {
		b.WriteByte('\n')
		row("fetched", "%s in %.1f s", count(s.OK, "URL"), s.Elapsed)
		for _, status := range slices.Sorted(maps.Keys(s.Statuses)) {
			if status >= 400 {
				row("errors", "%d answered %d %s", s.Statuses[status], status, http.StatusText(status))
			}
		}
		row("calls", "%d, of which %d were refused", s.Requests, s.Refused)
		row("quota used", "%.1f %%: %d of the %d calls that %s allows %s in %.1f s", 100*s.QuotaUsed, s.Requests-s.Refused,
			s.admitted, s.deciding, count(len(s.Tokens), "token"), s.span.Seconds())
		if s.plan.redis != "" {
			row("Redis", "%d commands, %.3f for each call", s.Commands, float64(s.Commands)/float64(s.Requests))
		}
		for _, of := range s.Tokens {
			text := fmt.Sprintf("%s: %d calls, %d refused, at most %d in any %v", short(of.Token), of.Calls, of.Refused, of.MaxInWindow, s.deciding.Window)
			if isExact(s.deciding) { // any other algorithm may let more through
				text += fmt.Sprintf(" where %d are allowed", s.deciding.Max)
			}
			row("token", "%s", text)
		}
		for _, kind := range slices.Sorted(maps.Keys(s.Events.Kinds)) {
			row("event", "%s %d", kind, s.Events.Kinds[kind])
		}
		if s.Judge != nil {
			row("provider", "counted %d calls and refused %d; at most %d of a token arrived in any %v", s.Judge.Accepted,
				s.Judge.Refused, s.Judge.MaxInWindow, s.deciding.Window)
		}
		b.WriteByte('\n')
	}
	if s.Plot != "" {
		row("plot", "%s", s.Plot)
	}
	b.WriteString(s.Verdict + "\n")
	return b.String()
}
