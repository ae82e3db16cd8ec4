package provider

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
)

// longestWait is longer than the longest ban that is documented, of 3 days.
const longestWait = 7 * 24 * time.Hour

// readWait reads the wait that the body of a refusal has, or that its rule names.
func (f *Feedback) readWait(r *Response, p *Provider, rule *MatchRule) {
	if !f.Reason.Refuses() || f.Reason == ReasonBilling {
		return
	}
	for _, path := range p.WaitFields {
		for _, value := range r.Fields(path) {
			if wait, known := header.Reset(value, r.ServerTime()); known && wait > f.Wait.Value {
				f.Wait, f.WaitBy = Some(wait), "the body's "+path
			}
		}
	}
	if f.Wait.Known {
		return
	}
	if wait := waitInWords(r); wait.Known {
		f.Wait, f.WaitBy = wait, inWords
	} else if rule != nil && rule.Midnight != "" {
		f.Wait, f.WaitBy = OptionalOf(header.Midnight(rule.Midnight, r.ServerTime())), "midnight in "+rule.Midnight
	}
}

// "Please try again in 6m0.5s", "retry after 26 seconds", "wait 5 minutes".
var waitWords = regexp.MustCompile(`(?:try again|retry|wait|break) (?:in |after |for |at least )?((?:[0-9]{1,6}(?:\.[0-9]{1,12})?(?:ms|h|m|s))+|[0-9]{1,6}(?:\.[0-9]{1,12})? ?(?:ms|milliseconds?|secs?|seconds?|minutes?|mins?|hours?))\b`)

// waitInWords returns the wait that the words of a body ask for.
func waitInWords(r *Response) Optional[time.Duration] {
	if len(r.Body) == 0 || r.isHTML() {
		return Optional[time.Duration]{}
	}
	found := waitWords.FindStringSubmatch(r.Text())
	if found == nil {
		return Optional[time.Duration]{}
	}
	if d, err := time.ParseDuration(found[1]); err == nil && d > 0 {
		return Some(min(d, limit.MaxWindow))
	}
	number := strings.TrimRight(found[1], " abcdefghijklmnopqrstuvwxyz")
	n, known := header.Number(number)
	if !known || n <= 0 {
		return Optional[time.Duration]{}
	}
	switch unit := strings.TrimSpace(found[1][len(number):]); {
	case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "milli"):
		n /= 1000
	case strings.HasPrefix(unit, "m"):
		n *= 60
	case strings.HasPrefix(unit, "h"):
		n *= 3600
	}
	return Some(header.Seconds(n))
}

// decideWait sets the wait of a refusal, or its bounds.
func (f *Feedback) decideWait(r *Response, p *Provider, binding *Window) {
	if f.Reason == ReasonBilling {
		f.Wait, f.WaitBy = Optional[time.Duration]{}, ""
		return
	}
	if wait, by := header.RetryAfter(r.Header, r.ServerTime()); by != "" {
		f.Wait, f.WaitBy = Some(wait), by
	} else if !f.Wait.Known {
		f.Wait, f.WaitBy = f.waitForWindows(r, p)
	}
	if f.Wait.Known {
		f.Wait.Value = min(f.Wait.Value, longestWait)
		f.MinWait, f.MaxWait = 0, 0
		return
	}
	f.WaitBy = ""
	if f.MaxWait == 0 && binding != nil && binding.Exhausted() {
		f.MaxWait = min(binding.Length.Value, longestWait)
	}
	if f.MinWait == 0 {
		f.MinWait = time.Second // a refusal must not cause a hot loop
	}
	if f.MaxWait > 0 {
		f.MinWait = min(f.MinWait, f.MaxWait)
	}
}

// waitForWindows returns the latest reset of the windows that refused: those that the body
// names as violated, or else those that are exhausted. A window that has something left did
// not refuse, so its reset says nothing, unless it is unknown what the window has left.
func (f *Feedback) waitForWindows(r *Response, p *Provider) (wait Optional[time.Duration], by string) {
	if f.Reason == ReasonConcurrency || f.Reason == ReasonSecondary || f.Reason == ReasonOverload || f.Reason == ReasonBan || len(f.Windows) == 0 {
		return wait, "" // no window refused
	}
	violated := r.Fields("violated-policies[]")
	wait, by = f.latestReset(func(w *Window) bool { return w.Name != "" && slices.Contains(violated, w.Name) })
	if !wait.Known {
		wait, by = f.latestReset((*Window).Exhausted)
	}
	if wait.Known || slices.ContainsFunc(f.Windows, func(w Window) bool { return w.Exhausted() }) {
		return wait, by // unknown if a window refused that does not say when it resets
	}
	return f.latestReset(func(w *Window) bool { return p.LatestReset || !w.Remaining.Known && !w.UsedPercent.Known })
}

// latestReset returns the latest time until such a window has a unit again, and the header
// that says it.
func (f *Feedback) latestReset(such func(*Window) bool) (latest Optional[time.Duration], by string) {
	for i := range f.Windows {
		w := &f.Windows[i]
		if !such(w) || !w.Reset.Known {
			continue
		}
		if more := w.untilMore(); more > latest.Value || !latest.Known {
			latest, by = Some(more), w.resetBy()
		}
	}
	return latest, by
}
