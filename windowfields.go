package ration

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/ratelimitfield"
)

// WindowFields are the headers by which a provider tells of one window. Where a
// field is the name of a header, several may have "|" between: the first that is
// sent counts. Empty: there is none.
type WindowFields struct {
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
func (p *Provider) mentioned(h http.Header) bool {
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
var usualWindows = []WindowFields{
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
const mostWindows = 32

// windows returns those that the header tells of. Overdrawn tells that a negative
// remaining is what it says.
func (p *Provider) windows(a *Answer, overdrawn bool) []Window {
	fields := usualWindows
	if p.Windows != nil {
		fields = p.Windows
	}
	var windows []Window
	for i := range fields {
		windows = fields[i].read(windows, a, overdrawn)
	}
	windows = ietfWindows(windows, a, overdrawn)
	return windows[:min(len(windows), mostWindows)]
}

// read appends the window, and those of policies that its limit names.
func (f *WindowFields) read(windows []Window, a *Answer, overdrawn bool) []Window {
	w := Window{Name: f.Name, Unit: f.Unit, Refills: f.Refills, Scope: f.Scope}
	var limit, remaining, used count
	read := func(into *count, header string) {
		if header == "" {
			return
		}
		if value, by := a.single(header); value != "" {
			if *into = parseCount(value); into.said && w.By == "" {
				w.By = by
			}
		}
	}
	read(&remaining, f.Remaining)
	read(&limit, f.Limit)
	read(&used, f.Used)
	if f.Ratio != "" {
		if value, by := a.single(f.Ratio); value != "" {
			if used, limit = parseRatio(value); limit.said {
				w.By = by
			}
		}
	}
	if f.Reset != "" {
		if w.Reset, w.resetBy = f.reset(a); w.By == "" {
			w.By = w.resetBy
		}
	}
	if w.By == "" {
		return windows
	}
	if f.NameIn != "" {
		if value, _ := a.single(f.NameIn); nameOf(value) != "" {
			w.Name = nameOf(value)
		}
	}
	w.Length = f.length(a, limit, remaining)
	w.count(limit, remaining, used, overdrawn)
	if policies := w.policies(limit); w.tells() || len(policies) > 0 {
		if i := slices.IndexFunc(windows, w.isThatOf); i >= 0 && f.Name == "" {
			if !windows[i].Reset.Known {
				windows[i].Reset, windows[i].resetBy = w.Reset, w.resetBy
			}
			return windows
		}
		if w.tells() {
			windows = append(windows, w)
		}
		windows = append(windows, policies...)
	}
	return windows
}

// count takes over what was counted.
func (w *Window) count(limit, remaining, used count, overdrawn bool) {
	if limit.said {
		w.Limit = limitOf(limit.value)
		if limit.value == 0 {
			// A server that pushes back says 0 for now, and behind it what will be.
			for _, policy := range limit.policies {
				if w.Limit = limitOf(policy.Quota.Value); w.Limit.Known {
					w.Length = lengthOf(policy.Window.Value)
					break
				}
			}
		}
	}
	if remaining.said && !(limit.said && limit.value < 0) {
		w.Remaining = remainingOf(remaining.value, overdrawn || w.Limit.Known)
	}
	if used.said {
		w.Used = usedOf(used.value)
	}
	switch {
	case remaining.said && used.said && !limit.said && remaining.value >= 0 && used.value >= 0:
		w.Limit = limitOf(remaining.value + used.value)
	case used.said && used.value >= 0 && w.Limit.Known && !remaining.said:
		w.Remaining = remainingOf(limit.value-used.value, true)
	}
}

// policies returns the windows that a limit of the older drafts names behind itself.
func (w *Window) policies(limit count) []Window {
	var windows []Window
	for _, policy := range limit.policies {
		one := Window{Limit: limitOf(policy.Quota.Value), Length: lengthOf(policy.Window.Value), By: w.By}
		if one.Limit == w.Limit && one.Length == w.Length || !one.Limit.Known || slices.Contains(windows, one) {
			continue
		}
		windows = append(windows, one)
	}
	return windows
}

// tells reports whether anything is known of the window.
func (w *Window) tells() bool {
	return w.Limit.Known || w.Remaining.Known || w.Used.Known || w.UsedPercent.Known || w.Reset.Known
}

// isThatOf reports whether another header has told of the same window.
func (w *Window) isThatOf(other Window) bool {
	return w.Limit.Known && w.Limit == other.Limit && w.Remaining == other.Remaining && w.Unit == other.Unit &&
		(w.Name == "" || other.Name == "" || w.Name == other.Name)
}

// reset returns when the window resets, and the header that told.
func (f *WindowFields) reset(a *Answer) (reset Told[time.Duration], by string) {
	if f.ResetIn != "" {
		value, name := a.single(f.ResetIn)
		if reset := parseReset(value, ResetSeconds, a.now()); reset.Known {
			return reset, name
		}
	}
	for name := range strings.SplitSeq(f.Reset, "|") {
		value, _ := a.single(name)
		if reset := parseReset(value, f.Form, a.now()); reset.Known {
			return reset, name
		}
	}
	return Told[time.Duration]{}, ""
}

func (f *WindowFields) length(a *Answer, limit, remaining count) Told[time.Duration] {
	if f.LengthIn != "" {
		value, _ := a.single(f.LengthIn)
		if n, ok := parseNumber(value); ok {
			unit := f.LengthUnit
			if unit == 0 {
				unit = time.Second
			}
			return lengthOf(n * unit.Seconds())
		}
		if d, err := time.ParseDuration(value); err == nil {
			return lengthOf(d.Seconds())
		}
	}
	switch {
	case limit.window > 0:
		return lengthOf(limit.window)
	case remaining.window > 0:
		return lengthOf(remaining.window)
	case f.Window > 0:
		return told(f.Window)
	}
	return Told[time.Duration]{}
}

// parseRatio reads USED/LIMIT.
func parseRatio(s string) (used, limit count) {
	before, after, found := strings.Cut(s, "/")
	if !found {
		return count{}, count{}
	}
	if used, limit = parseCount(before), parseCount(after); !used.said || !limit.said {
		return count{}, count{}
	}
	return used, limit
}

// ietfWindows appends the windows of RateLimit, with the policies that belong to
// them, and those of the policies of which no state was sent.
func ietfWindows(windows []Window, a *Answer, overdrawn bool) []Window {
	const stateHeader, policyHeader = "RateLimit", "RateLimit-Policy"
	states := ratelimitfield.State(a.Header.Values(stateHeader))
	policies := ratelimitfield.List(a.Header.Values(policyHeader))
	used := make([]bool, len(policies))
	for _, state := range states {
		w := Window{Name: nameOf(state.Name), Unit: nameOf(state.Unit), Object: nameOf(state.Partition), By: stateHeader}
		for i, policy := range policies {
			if !describes(policy, state) {
				continue
			}
			used[i] = true
			w.Length = lengthOf(policy.Window.Value)
			if w.Limit = limitOf(policy.Quota.Value); policy.Unit != "" {
				w.Unit = nameOf(policy.Unit)
			}
			break
		}
		if w.Unit == "" {
			// The unit is one of the policy, whichever partition it is told of.
			for _, policy := range policies {
				if policy.Name != "" && policy.Name == state.Name {
					w.Unit = nameOf(policy.Unit)
				}
			}
		}
		if state.Quota.Said {
			w.Limit = limitOf(state.Quota.Value)
		}
		if state.Remaining.Said {
			w.Remaining = remainingOf(state.Remaining.Value, overdrawn || w.Limit.Known)
		}
		if n := state.Reset; n.Said && n.Value > 0 {
			w.Reset = told(seconds(n.Value))
		}
		if w.tells() {
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
		w := Window{Name: nameOf(policy.Name), Unit: nameOf(policy.Unit), Object: nameOf(policy.Partition),
			Limit: limitOf(policy.Quota.Value), Length: lengthOf(policy.Window.Value), By: policyHeader}
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
		if w := &windows[i]; w.Limit.Known && w.Limit == limitOf(policy.Quota.Value) && !w.Length.Known {
			w.Length = lengthOf(policy.Window.Value)
			return true
		}
	}
	return false
}
