package provider

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
)

const (
	// defaultMaxBody is how many bytes of a body are read: refusals are short.
	defaultMaxBody = 64 << 10
	// smallBody is the longest body of a successful response that is read of any provider.
	smallBody = 4 << 10
)

// ReadResponse reads a response as [Provider.Read] does; arrived is when it came. It reads
// the beginning of the body if that may say something, and puts it back: the caller then
// reads the same bytes, and the same error after the same byte.
//
// Of an error other than 404 it reads the body; of a successful response only JSON, XML, HTML and plain
// text, and only if [Provider.ReadSuccessBody] is set or Content-Length is at most 4 KiB. It
// never reads a stream of events, a success without a length that is no JSON, nor more than
// [Provider.MaxBody]. It waits for the body for at most 2 s, and uses what has come by then. A body with Content-Encoding: gzip, which
// net/http leaves to a caller that asked for it, is decompressed for reading, up to the same
// bound, and put back as it came.
func (p *Provider) ReadResponse(resp *http.Response, arrived time.Time) Feedback {
	if p == nil {
		p = new(Provider)
	}
	r := Response{Status: resp.StatusCode, Header: resp.Header, Arrived: arrived}
	if p.wantsBody(resp) {
		most := p.MaxBody
		if most <= 0 {
			most = defaultMaxBody
		}
		r.Body = decompressed(resp.Header, peek(resp, most), most)
		if resp.StatusCode == http.StatusOK && !p.ReadSuccessBody && len(p.Rules) == 0 && !mayRefuse(r.Body) {
			if r.Body = nil; p.Adjust == nil && !p.MentionsLimits(resp.Header) {
				return Feedback{} // as most
			}
		}
	}
	return p.Read(r)
}

// wantsBody reports whether the body may say something and is safe to read.
func (p *Provider) wantsBody(resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody || resp.ContentLength == 0 {
		return false
	}
	kind, _, _ := strings.Cut(strings.ToLower(resp.Header.Get("Content-Type")), ";")
	kind = strings.TrimSpace(kind)
	if kind == "text/event-stream" || strings.HasSuffix(kind, "ndjson") {
		return false // it may last for hours
	}
	if !hasReadableBody(resp.StatusCode) {
		return false
	} else if resp.StatusCode >= 400 {
		return true
	}
	if !strings.HasSuffix(kind, "json") {
		if kind != "" && kind != "text/plain" && kind != "text/javascript" && kind != "text/html" && kind != "text/xml" && kind != "application/xml" {
			return false
		}
		if kind != "" && resp.ContentLength < 0 {
			return false // errors that are no JSON are short, and say how long they are
		}
	}
	return p.ReadSuccessBody || resp.ContentLength > 0 && resp.ContentLength <= smallBody
}

// Read returns what a response says about quotas. It is a pure function: it reads no clock,
// and the same response always gives the same Feedback. (The time zone of a rule that names
// one is the machine's.) A nil Provider reads as the zero Provider does.
//
// If parts of a response contradict each other, the first of these counts. Whether it is a
// refusal: the provider's rules, the usual codes in a body, the status. How long to wait:
// Retry-After, or its variants in milliseconds; a delay in the body; the latest reset of the
// exhausted windows; what the rules say. The limits in a response from a cache, which has a
// positive Age, are ignored, and so are headers that begin with "Beta-", by which providers
// announce others.
//
// Two waits are the least ones, and MinWait: that until the first reset of windows that have
// something left, though their provider refuses for want of quota; and one that is under a
// hundredth of a window of an hour or more, if the body names that as violated.
//
// All values are bounded. A number with an exponent, above 10^12 or not finite is ignored,
// and so are a negative one if the quota cannot be overdrawn, a date that has passed, a
// header of more than 8 KiB, and a header that is there twice with different values; of
// several Retry-After the longest counts. A Wait is at most 7 days, a Cooldown at most 24
// hours. Read does not panic, whatever the response.
func (p *Provider) Read(r Response) Feedback {
	if p == nil {
		p = new(Provider)
	}
	var f Feedback
	rule, by, isOwn := p.match(&r)
	if rule != nil {
		f.Reason, f.Scope, f.ReasonBy = rule.Reason, rule.Scope, by
		f.MinWait, f.MaxWait = rule.MinWait, rule.MaxWait
	}
	f.readWait(&r, p, rule)
	if f.Reason.Refuses() || !r.Cached() {
		f.Windows = p.windows(&r, f.Reason.Refuses())
	}
	if f.Reason == ReasonQuota && len(f.Windows) == 0 {
		if inner := r.headersInBody(); inner != nil {
			f.Windows = p.windows(inner, true)
		}
	}
	if f.Reason == ReasonQuota && len(f.Windows) == 0 {
		if w, found := windowInWords(&r); found {
			f.Windows = append(f.Windows, w)
			if f.MaxWait == 0 {
				f.MaxWait = min(w.Length.Value, longestWait)
			}
		}
	}
	f.refuseIfExhausted(&r, isOwn)
	f.lengthInWords(&r)
	if p.Adjust != nil {
		p.Adjust(&r, &f)
	}
	if f.Reason == ReasonQuota && f.Scope == "" && p.Scope == "" {
		f.Scope = scopeSaid(&r)
	}
	if f.Windows = f.Windows[:min(len(f.Windows), header.MaxWindows)]; len(f.Windows) == 0 {
		f.Windows = nil
	}
	f.conclude(&r, p)
	f.Message = r.message()
	f.Unread = f.unread(&r)
	return f
}

// lengthInWords gives the window that refused the length that the words of the body tell, if its headers do not.
func (f *Feedback) lengthInWords(r *Response) {
	if f.Reason != ReasonQuota || len(r.Body) == 0 {
		return
	}
	if binding := f.Binding(); binding != nil && binding.Exhausted() && !binding.Length.Known {
		var said Window
		said.limitInWords(r.prose())
		if binding.Length = said.Length; binding.Reset.Known && binding.Reset.Value > said.Length.Value {
			binding.Length = Optional[time.Duration]{} // it speaks of another
		}
	}
}

// refuseIfExhausted takes a 403 that says nothing for a refusal if a window is exhausted: the IETF's drafts leave the status to the server. So
// are a 402 and a 503, whatever they ask for, if no words say otherwise and the window resets. The provider's own rules go before that.
func (f *Feedback) refuseIfExhausted(r *Response, isOwn bool) {
	if isOwn {
		return
	}
	says := f.Reason != ""
	switch r.Status {
	case 402:
		says = f.ReasonBy != "status 402"
	case 403:
		says = says || len(r.texts()) > 0
	case 503:
		says = says && (f.Reason != ReasonOverload || f.ReasonBy != inWords)
	default:
		return
	}
	if says {
		return
	}
	if i := slices.IndexFunc(f.Windows, func(w Window) bool { return w.Exhausted() && (r.Status == 403 || w.Reset.Known) }); i >= 0 {
		f.Reason, f.ReasonBy = ReasonQuota, f.Windows[i].By
	}
}

// conclude sets the fields that follow from the reason and the windows.
func (f *Feedback) conclude(r *Response, p *Provider) {
	f.Refused = f.Reason.Refuses()
	f.DeadToken = f.Reason == ReasonDeadToken
	f.Retryable = f.retryable(r)
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
		f.decideWait(r, p, binding)
		return
	}
	f.Wait, f.WaitBy, f.MinWait, f.MaxWait = Optional[time.Duration]{}, "", 0, 0
	if r.Status >= 200 && r.Status < 300 && r.Status != 202 { // which is about the object that is made
		// Nobody serves who means more than a day, and what a cache has was said of an old answer.
		if wait, by := header.RetryAfter(r.Header, r.ServerTime()); by != "" && wait <= longestCooldown && !r.Cached() {
			f.Wait, f.WaitBy = Some(wait), by
		}
	}
	f.decideCooldown(r)
}

// leastPercent returns the smallest remainder of the windows that are in percent.
func (f *Feedback) leastPercent() Optional[float64] {
	least := Optional[float64]{}
	for i := range f.Windows {
		if used := f.Windows[i].UsedPercent; used.Known {
			left := OptionalOf(header.Percent(max(0, 100-used.Value)))
			if !least.Known || left.Value < least.Value {
				least = left
			}
		}
	}
	return least
}

func (f *Feedback) retryable(r *Response) bool {
	if r.Status >= 400 && f.Reason != ReasonBilling {
		for _, name := range [...]string{"X-Should-Retry", "Stripe-Should-Retry"} {
			if retry, err := strconv.ParseBool(r.Header.Get(name)); err == nil {
				return retry
			}
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
	return r.Status == 408 || r.Status == 425 || r.Status >= 500 && r.Status != 501 && r.Status != 505
}

// longestWait is longer than the longest ban that is documented, of 3 days.
const longestWait = 7 * 24 * time.Hour

// readWait reads the wait that the body of a refusal has, or that its rule names.
func (f *Feedback) readWait(r *Response, p *Provider, rule *MatchRule) {
	if !f.Reason.Refuses() || f.Reason == ReasonBilling {
		return
	}
	for _, path := range p.WaitFields {
		for _, value := range r.Fields(path) {
			if wait, known := readWaitField(path, value, r.ServerTime()); known && wait > f.Wait.Value {
				f.Wait, f.WaitBy = Some(wait), "the body's "+path
			}
		}
	}
	if f.Wait.Known {
		return
	}
	fields := r.waitFields()
	if found := fields[0]; found.wait > 0 {
		f.Wait, f.WaitBy = Some(found.wait), "the body's "+found.path
		return
	}
	if wait := waitInWords(r); wait.Known {
		f.Wait, f.WaitBy = wait, inWords
	} else if rule != nil && rule.Midnight != "" {
		f.Wait, f.WaitBy = OptionalOf(header.Midnight(rule.Midnight, r.ServerTime())), untilMidnight+rule.Midnight
	} else if found := fields[1]; found.wait > 0 {
		f.Wait, f.WaitBy = Some(found.wait), "the body's "+found.path
	}
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
		if f.Wait, f.WaitBy = f.waitForWindows(r, p); !f.Wait.Known {
			if wait, by := waitInHeaders(r); by != "" {
				f.Wait, f.WaitBy = Some(wait), by
			}
		}
	}
	f.doubtShortWait()
	if f.Wait.Known {
		f.Wait.Value = min(f.Wait.Value, longestWait)
		f.MinWait, f.MaxWait = 0, 0
		return
	}
	f.WaitBy = ""
	if f.MaxWait == 0 && binding != nil && binding.Exhausted() {
		f.MaxWait = min(binding.Length.Value, longestWait)
	}
	if f.Reason == ReasonQuota {
		f.MinWait = max(f.MinWait, f.firstReset())
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

// doubtShortWait makes a wait the least one if the body names a window as violated that is longer by far,
// such as one of a day with "try again in 42s", and nothing counts what that window has left: the wait is
// then that of a shorter window, or a guess.
func (f *Feedback) doubtShortWait() {
	const byFar = 100
	for i := range f.Windows {
		w := &f.Windows[i]
		if f.Wait.Known && w.isOnlyNamed() && w.Length.Value >= time.Hour && w.Length.Value/byFar > f.Wait.Value {
			f.MinWait, f.MaxWait = f.Wait.Value, min(w.Length.Value, longestWait)
			f.Wait = Optional[time.Duration]{}
		}
	}
}

// isOnlyNamed reports whether nothing is known of a window but its name and its length.
func (w *Window) isOnlyNamed() bool { return w.Name != "" && !w.isKnown() }

// firstReset returns the first reset of the windows that have something left; 0 if none is known. A
// refusal for want of quota contradicts what they say, and lasts until then at least.
func (f *Feedback) firstReset() (first time.Duration) {
	for i := range f.Windows {
		w := &f.Windows[i]
		if left := w.ShareLeft(); w.Reset.Known && left.Known && left.Value > 0 && (first == 0 || w.untilMore() < first) {
			first = w.untilMore()
		}
	}
	return first
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
