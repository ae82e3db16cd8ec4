package provider

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/ratelimitfield"
)

// WindowHeaders are the headers by which a provider tells of one window. Where a
// field is the name of a header, several may have "|" between: the first that is
// sent counts. Empty: there is none.
type WindowHeaders struct {
	// Name is the window's, and NameIn the header that names it.
	Name, NameIn string
	// Unit is what it counts. Empty: requests.
	Unit string
	// Limit, Remaining and Used are headers with a number. Two of them make the third.
	Limit, Remaining, Used string
	// Ratio is a header with both, as USED/LIMIT.
	Ratio string
	// Reset is the header that tells when the window resets, as Form says. ResetIn
	// is one with the seconds until then, which is believed before Reset: no clock
	// is needed to read it.
	Reset, ResetIn string
	// Form is how Reset is written. Zero: it is told from the value.
	Form ResetForm
	// Refills tells that it is a bucket that fills all the time, and that Reset is
	// when it is full.
	Refills bool
	// Window is its length, where no header tells it, and LengthIn the header that
	// does: as a duration, or a number of LengthUnit. Zero LengthUnit: seconds.
	Window     time.Duration
	LengthIn   string
	LengthUnit time.Duration
	// Scope is whom the window is about, if it is not what Provider.Scope says.
	Scope Scope
}

// mentioned reports whether headers may tell something of quotas. It is asked of every
// answer, and most have none that does.
func (p *Provider) MentionsLimits(h http.Header) bool {
	for name := range h {
		for _, word := range [...]string{"imit", "sage", "uota", "hrottle", "Mbx-", "X-Rl"} {
			if strings.Contains(name, word) {
				return true
			}
		}
	}
	for i := range p.Windows {
		f := &p.Windows[i]
		for _, names := range [...]string{f.Limit, f.Remaining, f.Used, f.Ratio} {
			for name := range strings.SplitSeq(names, "|") {
				if name != "" && len(h.Values(name)) > 0 {
					return true
				}
			}
		}
	}
	return false
}

// usualWindows are the headers of providers that name none.
var usualWindows = []WindowHeaders{
	{
		Limit: "X-RateLimit-Limit|X-RateLimit-Max", Remaining: "X-RateLimit-Remaining", Used: "X-RateLimit-Used",
		Reset: "X-RateLimit-Reset", ResetIn: "X-RateLimit-Reset-After", NameIn: "X-RateLimit-Resource",
		LengthIn: "X-RateLimit-Interval-Milliseconds", LengthUnit: time.Millisecond,
	},
	{
		Limit: "X-Rate-Limit-Limit", Remaining: "X-Rate-Limit-Remaining", Used: "X-Rate-Limit-Used",
		Reset: "X-Rate-Limit-Reset", LengthIn: "X-Rate-Limit-Interval",
	},
	{
		Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Used: "RateLimit-Used|RateLimit-Observed",
		Reset: "RateLimit-Reset|RateLimit-ResetTime|RateLimit-Reset-Date", NameIn: "RateLimit-Name",
	},
	{
		Name: "daily", Limit: "X-RateLimit-Limit-Daily|X-RateLimit-Daily|X-RateLimit-Daily-Limit",
		Remaining: "X-RateLimit-Daily-Remaining|X-RateLimit-Remaining-Daily", Window: 24 * time.Hour,
	},
	{
		Name: "requests", Limit: "X-RateLimit-Limit-Requests", Remaining: "X-RateLimit-Remaining-Requests",
		Reset: "X-RateLimit-Reset-Requests",
	},
	{
		Name: "tokens", Unit: "tokens", Limit: "X-RateLimit-Limit-Tokens", Remaining: "X-RateLimit-Remaining-Tokens",
		Reset: "X-RateLimit-Reset-Tokens",
	},
}

// mostWindows bounds how many windows of one answer are kept.
const MaxWindows = 32

// windows returns those that the header tells of. Overdrawn tells that a negative
// remaining is what it says.
func (p *Provider) windows(a *Response, overdrawn bool) []Window {
	fields := p.Windows
	if fields == nil {
		if !p.MentionsLimits(a.Header) {
			return nil // as do the names of all usual headers
		}
		fields = usualWindows
	}
	var windows []Window
	for i := range fields {
		windows = fields[i].read(windows, a, overdrawn)
	}
	windows = ietfWindows(windows, a, overdrawn)
	return windows[:min(len(windows), MaxWindows)]
}

// read appends the window, and those of policies that its limit names.
func (f *WindowHeaders) read(windows []Window, a *Response, overdrawn bool) []Window {
	w := Window{Name: f.Name, Unit: f.Unit, Refills: f.Refills, Scope: f.Scope}
	var limit, remaining, used Count
	read := func(into *Count, header string) {
		if header == "" {
			return
		}
		if value, by := a.single(header); value != "" {
			if *into = ParseCount(value); into.Said && w.By == "" {
				w.By = by
			}
		}
	}
	read(&remaining, f.Remaining)
	read(&limit, f.Limit)
	read(&used, f.Used)
	if f.Ratio != "" {
		if value, by := a.single(f.Ratio); value != "" {
			if used, limit = ParseRatio(value); limit.Said {
				w.By = by
			}
		}
	}
	if f.Reset != "" {
		if w.Reset, w.ResetBy = f.reset(a); w.By == "" {
			w.By = w.ResetBy
		}
	}
	if w.By == "" {
		return windows
	}
	if f.NameIn != "" {
		if value, _ := a.single(f.NameIn); NameOf(value) != "" {
			w.Name = NameOf(value)
		}
	}
	w.Length = f.length(a, limit, remaining)
	w.Count(limit, remaining, used, overdrawn)
	if policies := w.policies(limit); w.Tells() || len(policies) > 0 {
		if i := slices.IndexFunc(windows, w.isThatOf); i >= 0 && f.Name == "" {
			if !windows[i].Reset.Known {
				windows[i].Reset, windows[i].ResetBy = w.Reset, w.ResetBy
			}
			return windows
		}
		if w.Tells() {
			windows = append(windows, w)
		}
		windows = append(windows, policies...)
	}
	return windows
}

// count takes over what was counted.
func (w *Window) Count(limit, remaining, used Count, overdrawn bool) {
	if limit.Said {
		w.Limit = LimitOf(limit.value)
		if limit.value == 0 {
			// A server that pushes back says 0 for now, and behind it what will be.
			for _, policy := range limit.policies {
				if w.Limit = LimitOf(policy.Quota.Value); w.Limit.Known {
					w.Length = LengthOf(policy.Window.Value)
					break
				}
			}
		}
	}
	if remaining.Said && !(limit.Said && limit.value < 0) {
		w.Remaining = RemainingOf(remaining.value, overdrawn || w.Limit.Known)
	}
	if used.Said {
		w.Used = UsedOf(used.value)
	}
	switch {
	case remaining.Said && used.Said && !limit.Said && remaining.value >= 0 && used.value >= 0:
		w.Limit = LimitOf(remaining.value + used.value)
	case used.Said && used.value >= 0 && w.Limit.Known && !remaining.Said:
		w.Remaining = RemainingOf(limit.value-used.value, true)
	}
}

// policies returns the windows that a limit of the older drafts names behind itself.
func (w *Window) policies(limit Count) []Window {
	var windows []Window
	for _, policy := range limit.policies {
		one := Window{Limit: LimitOf(policy.Quota.Value), Length: LengthOf(policy.Window.Value), By: w.By}
		if one.Limit == w.Limit && one.Length == w.Length || !one.Limit.Known || slices.Contains(windows, one) {
			continue
		}
		windows = append(windows, one)
	}
	return windows
}

// tells reports whether anything is known of the window.
func (w *Window) Tells() bool {
	return w.Limit.Known || w.Remaining.Known || w.Used.Known || w.UsedPercent.Known || w.Reset.Known
}

// isThatOf reports whether another header has told of the same window.
func (w *Window) isThatOf(other Window) bool {
	return w.Limit.Known && w.Limit == other.Limit && w.Remaining == other.Remaining && w.Unit == other.Unit &&
		(w.Name == "" || other.Name == "" || w.Name == other.Name)
}

// reset returns when the window resets, and the header that told.
func (f *WindowHeaders) reset(a *Response) (reset Optional[time.Duration], by string) {
	if f.ResetIn != "" {
		value, name := a.single(f.ResetIn)
		if reset := ParseReset(value, ResetSeconds, a.Now()); reset.Known {
			return reset, name
		}
	}
	for name := range strings.SplitSeq(f.Reset, "|") {
		value, _ := a.single(name)
		if reset := ParseReset(value, f.Form, a.Now()); reset.Known {
			return reset, name
		}
	}
	return Optional[time.Duration]{}, ""
}

func (f *WindowHeaders) length(a *Response, limit, remaining Count) Optional[time.Duration] {
	if f.LengthIn != "" {
		value, _ := a.single(f.LengthIn)
		if n, ok := ParseNumber(value); ok {
			unit := f.LengthUnit
			if unit == 0 {
				unit = time.Second
			}
			return LengthOf(n * unit.Seconds())
		}
		if d, err := time.ParseDuration(value); err == nil {
			return LengthOf(d.Seconds())
		}
	}
	switch {
	case limit.window > 0:
		return LengthOf(limit.window)
	case remaining.window > 0:
		return LengthOf(remaining.window)
	case f.Window > 0:
		return Some(f.Window)
	}
	return Optional[time.Duration]{}
}

// parseRatio reads USED/LIMIT.
func ParseRatio(s string) (used, limit Count) {
	before, after, found := strings.Cut(s, "/")
	if !found {
		return Count{}, Count{}
	}
	if used, limit = ParseCount(before), ParseCount(after); !used.Said || !limit.Said {
		return Count{}, Count{}
	}
	return used, limit
}

// ietfWindows appends the windows of RateLimit, with the policies that belong to
// them, and those of the policies of which no state was sent.
func ietfWindows(windows []Window, a *Response, overdrawn bool) []Window {
	const stateHeader, policyHeader = "RateLimit", "RateLimit-Policy"
	states := ratelimitfield.State(a.Header.Values(stateHeader))
	policies := ratelimitfield.List(a.Header.Values(policyHeader))
	used := make([]bool, len(policies))
	for _, state := range states {
		w := Window{Name: NameOf(state.Name), Unit: NameOf(state.Unit), Object: NameOf(state.Partition), By: stateHeader}
		for i, policy := range policies {
			if !describes(policy, state) {
				continue
			}
			used[i] = true
			w.Length = LengthOf(policy.Window.Value)
			if w.Limit = LimitOf(policy.Quota.Value); policy.Unit != "" {
				w.Unit = NameOf(policy.Unit)
			}
			break
		}
		if w.Unit == "" {
			// The unit is one of the policy, whichever partition it is told of.
			for _, policy := range policies {
				if policy.Name != "" && policy.Name == state.Name {
					w.Unit = NameOf(policy.Unit)
				}
			}
		}
		if state.Quota.Said {
			w.Limit = LimitOf(state.Quota.Value)
		}
		if state.Remaining.Said {
			w.Remaining = RemainingOf(state.Remaining.Value, overdrawn || w.Limit.Known)
		}
		if n := state.Reset; n.Said && n.Value > 0 {
			w.Reset = Some(Seconds(n.Value))
		}
		if w.Tells() {
			windows = append(windows, w)
		}
	}
	for i, policy := range policies {
		if used[i] {
			continue
		}
		if policy.Name == "" && len(states) == 0 && attachPolicy(windows, policy) {
			continue
		}
		w := Window{Name: NameOf(policy.Name), Unit: NameOf(policy.Unit), Object: NameOf(policy.Partition),
			Limit: LimitOf(policy.Quota.Value), Length: LengthOf(policy.Window.Value), By: policyHeader}
		if w.Limit.Known {
			windows = append(windows, w)
		}
	}
	return windows
}

// describes reports whether a policy is that of a state: by its name, and within
// one partition. In draft 7, which has no names, by the limit.
func describes(policy, state ratelimitfield.Item) bool {
	if state.Name == "" {
		return policy.Name == "" && state.Quota.Said && policy.Quota.Value == state.Quota.Value
	}
	return policy.Name == state.Name &&
		(policy.Partition == "" || state.Partition == "" || policy.Partition == state.Partition)
}

// attachPolicy gives a window of RateLimit-Limit the length that a policy of drafts
// 4 to 6 names beside it.
func attachPolicy(windows []Window, policy ratelimitfield.Item) bool {
	for i := range windows {
		if w := &windows[i]; w.Limit.Known && w.Limit == LimitOf(policy.Quota.Value) && !w.Length.Known {
			w.Length = LengthOf(policy.Window.Value)
			return true
		}
	}
	return false
}
