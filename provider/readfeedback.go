package provider

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
)

// Read returns what an answer says. It reads no clock and changes nothing: the same
// answer always says the same. Nothing is asked of the machine, other than the time
// zone of a sign that names one. A nil Provider reads as the zero one, which knows
// the headers and codes that most APIs use.
//
// What contradicts itself is believed in this order. Whether it was refused: the
// provider's signs, the usual codes in a body, the status. For how long: Retry-After,
// or its twin in milliseconds; a delay in the body; the latest reset of the windows
// that are exhausted; what is known of the provider. Fields of an answer that a cache
// sent, with a positive Age, are not believed at all, and a header that begins with
// "Beta-" is a rehearsal.
//
// Values that no provider means are bounded: a number with an exponent, not finite,
// above 10^12 or, where it is not overdrawn, negative says nothing, and so does a date
// that has passed, a header of more than 8 KiB, and one that is there twice with
// different values, other than Retry-After, of which the longest counts. Waits end
// after 7 days, holds after 24 hours. Read does not panic, whatever the answer.
func (p *Provider) Read(a Response) Feedback {
	if p == nil {
		p = new(Provider)
	}
	var f Feedback
	sign, by := p.meaning(&a)
	if sign != nil {
		f.Reason, f.Scope, f.ReasonBy = sign.Reason, sign.Scope, by
		f.MinWait, f.MaxWait = sign.MinWait, sign.MaxWait
	}
	f.readDelay(&a, p, sign)
	if !a.Cached() || f.Reason.Refuses() {
		f.Windows = p.windows(&a, f.Reason.Refuses())
	}
	f.refuseIfSpent(&a)
	if p.Adjust != nil {
		p.Adjust(&a, &f)
	}
	if f.Windows = f.Windows[:min(len(f.Windows), MaxWindows)]; len(f.Windows) == 0 {
		f.Windows = nil
	}
	f.conclude(&a, p)
	return f
}

// refuseIfSpent takes a 403 without a word for a refusal if a window is exhausted:
// the drafts leave the status to the server.
func (f *Feedback) refuseIfSpent(a *Response) {
	if a.Status != 403 || f.Reason != "" || len(a.All(wordFields)) > 0 {
		return
	}
	if i := slices.IndexFunc(f.Windows, func(w Window) bool { return w.Exhausted() }); i >= 0 {
		f.Reason, f.ReasonBy = ReasonQuota, f.Windows[i].By
	}
}

// readDelay reads what the body says of the wait, and what the sign does.
func (f *Feedback) readDelay(a *Response, p *Provider, sign *MatchRule) {
	if !f.Reason.Refuses() || f.Reason == ReasonBilling {
		return
	}
	for _, path := range p.WaitFields {
		for _, value := range a.All(path) {
			if delay := ParseReset(value, ResetAny, a.Now()); delay.Known && delay.Value > f.Wait.Value {
				f.Wait, f.WaitBy = delay, "the body's "+path
			}
		}
	}
	if f.Wait.Known {
		return
	}
	if delay := delayInWords(a); delay.Known {
		f.Wait, f.WaitBy = delay, "the body's words"
	} else if sign != nil && sign.Midnight != "" {
		f.Wait, f.WaitBy = Midnight(sign.Midnight, a.Now()), "midnight in "+sign.Midnight
	}
}

// "Please try again in 6m0.5s", "retry after 26 seconds", "wait 5 minutes".
var delayWords = regexp.MustCompile(`(?:try again|retry|wait|break) (?:in |after |for |at least )?((?:[0-9]{1,6}(?:\.[0-9]{1,12})?(?:ms|h|m|s))+|[0-9]{1,6}(?:\.[0-9]{1,12})? ?(?:ms|milliseconds?|secs?|seconds?|minutes?|mins?|hours?))\b`)

func delayInWords(a *Response) Optional[time.Duration] {
	if len(a.Body) == 0 || a.isHTML() {
		return Optional[time.Duration]{}
	}
	found := delayWords.FindStringSubmatch(a.Text())
	if found == nil {
		return Optional[time.Duration]{}
	}
	if d, err := time.ParseDuration(found[1]); err == nil && d > 0 {
		return Some(min(d, limit.MaxWindow))
	}
	number := strings.TrimRight(found[1], " abcdefghijklmnopqrstuvwxyz")
	n, ok := ParseNumber(number)
	if !ok || n <= 0 {
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
	return Some(Seconds(n))
}

// conclude makes of the reason and the windows what they come to.
func (f *Feedback) conclude(a *Response, p *Provider) {
	f.Refused = f.Reason.Refuses()
	f.DeadToken = f.Reason == ReasonDeadToken
	f.Retryable = f.retryable(a)
	binding := f.Binding()
	if binding != nil {
		f.Limit, f.Remaining = binding.Limit, binding.Remaining
		if f.Scope == "" && f.Reason == ReasonQuota && binding.Exhausted() {
			f.Scope = binding.Scope
		}
		if f.Object == "" && f.Scope != "" {
			f.Object = binding.Object
		}
	}
	f.RemainingPercent = f.leastPercent()
	if f.Refused {
		f.Cooldown, f.CooldownBy = Optional[time.Duration]{}, ""
		f.decideWait(a, p, binding)
		return
	}
	f.Wait, f.WaitBy, f.MinWait, f.MaxWait = Optional[time.Duration]{}, "", 0, 0
	f.decideHold(a)
}

func (f *Feedback) retryable(a *Response) bool {
	for _, name := range []string{"X-Should-Retry", "Stripe-Should-Retry"} {
		if retry, err := strconv.ParseBool(a.Header.Get(name)); err == nil && a.Status >= 400 && f.Reason != ReasonBilling {
			return retry
		}
	}
	switch {
	case f.Refused:
		return f.Reason != ReasonBilling
	case f.Reason == ReasonLock:
		return true
	case f.Reason != "":
		return false
	}
	return a.Status == 408 || a.Status == 425 || a.Status >= 500 && a.Status != 501 && a.Status != 505
}

// decideWait takes what is believed first.
func (f *Feedback) decideWait(a *Response, p *Provider, binding *Window) {
	if f.Reason == ReasonBilling {
		f.Wait, f.WaitBy = Optional[time.Duration]{}, ""
		return
	}
	retry, by := retryHeader(a.Header, a.Now())
	switch {
	case retry.Known:
		f.Wait, f.WaitBy = retry, by
	case f.Wait.Known:
	default:
		f.Wait, f.WaitBy = f.waitForWindows(a, p)
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
		f.MinWait = time.Second // no refusal is answered by a hot loop
	}
	if f.MaxWait > 0 {
		f.MinWait = min(f.MinWait, f.MaxWait)
	}
}

// waitForWindows returns the latest of the resets of those that refused: those that
// the body names as violated, or else those that are exhausted. A window that has
// something left is another than the one that refused, and its reset says nothing,
// unless nothing is known of what it has left.
func (f *Feedback) waitForWindows(a *Response, p *Provider) (wait Optional[time.Duration], by string) {
	if f.Reason == ReasonConcurrency || f.Reason == ReasonSecondary || f.Reason == ReasonOverload || f.Reason == ReasonBan {
		return wait, "" // no window refused
	}
	violated := a.All("violated-policies[]")
	latest := func(of func(w *Window) bool) bool {
		for i := range f.Windows {
			w := &f.Windows[i]
			if !of(w) || !w.Reset.Known {
				continue
			}
			if reset := w.more(); reset > wait.Value || !wait.Known {
				wait, by = Some(reset), w.toldReset()
			}
		}
		return wait.Known
	}
	if latest(func(w *Window) bool { return w.Name != "" && slices.Contains(violated, w.Name) }) {
		return wait, by
	}
	if latest((*Window).Exhausted) {
		return wait, by
	}
	if slices.ContainsFunc(f.Windows, func(w Window) bool { return w.Exhausted() }) {
		return wait, by // by one that does not tell when
	}
	_ = latest(func(w *Window) bool { return p.LatestReset || !w.Remaining.Known && !w.UsedPercent.Known })
	return wait, by
}

// more is when the window has a unit again. A bucket that fills all the time has
// one long before it is full: after its share, and a second more than that is not
// asked for at least, or it is full by then.
func (w *Window) more() time.Duration {
	if !w.Refills {
		return w.Reset.Value
	}
	share := time.Second
	switch missing := w.Limit.Value - w.Remaining.Value; {
	case w.Rate > 0:
		share = max(share, Seconds(1/w.Rate))
	case w.Limit.Known && missing > 0:
		share = max(share, w.Reset.Value/time.Duration(missing))
	default:
		return w.Reset.Value
	}
	return min(share, w.Reset.Value)
}

// decideHold holds the next request back if a window is empty now.
func (f *Feedback) decideHold(a *Response) {
	hold, by := f.Cooldown, f.CooldownBy
	for i := range f.Windows {
		if w := &f.Windows[i]; w.Exhausted() && w.Unit != ConcurrentUnit && w.Reset.Known {
			if more := w.more(); more > hold.Value || !hold.Known {
				hold, by = Some(more), w.toldReset()
			}
		}
	}
	switch why := f.notHeld(a, hold.Known); {
	case why != "":
		f.Cooldown, f.CooldownBy = Some(time.Duration(0)), why
	case hold.Known:
		f.Cooldown, f.CooldownBy = Some(min(hold.Value, longestHold)), by
	}
}

// notHeld returns why signs of an empty window do not count, if there are any.
func (f *Feedback) notHeld(a *Response, hold bool) string {
	switch {
	case a.Status >= 300 && a.Status < 400 && a.Status != 304 && hold:
		return "a redirect may be followed"
	case a.Status >= 400 || hold && !a.Cached():
		return ""
	case a.Cached() && sends(a, func(name, _ string) bool { return isLimitHeader(name) }):
		return "a cache sent it"
	case sends(a, isRehearsal):
		return "a rehearsal"
	case sends(a, func(name, value string) bool {
		return isLimitHeader(name) && strings.Contains(name, "reset") && strings.TrimSpace(value) == "0"
	}):
		return "a reset of 0"
	}
	return ""
}

// sends reports whether the answer has such a header, whose name is in lower case.
func sends(a *Response, such func(name, value string) bool) bool {
	for name, values := range a.Header {
		if len(values) > 0 && such(strings.ToLower(name), values[0]) {
			return true
		}
	}
	return false
}

func isLimitHeader(name string) bool {
	name = strings.TrimPrefix(name, "x-")
	return strings.HasPrefix(name, "ratelimit") || strings.HasPrefix(name, "rate-limit")
}

// isRehearsal reports whether a header is one of those by which a provider shows
// what it will send one day.
func isRehearsal(name, _ string) bool {
	rest, found := strings.CutPrefix(strings.TrimPrefix(name, "x-"), "beta-")
	return found && (isLimitHeader(rest) || rest == "retry-after")
}

func statusName(status int) string { return "status " + strconv.Itoa(status) }
