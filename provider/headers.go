package provider

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
)

// WindowHeaders are the names of the headers that describe one window. In each of them "|"
// separates alternatives: the first that is sent counts. Empty: there is none.
type WindowHeaders struct {
	// Name is the window's name. NameHeader is the header that has it, if it is sent.
	Name, NameHeader string
	// Unit is what the window counts. Empty: requests.
	Unit string
	// Limit, Remaining and Used have a number each. Two of them give the third.
	Limit, Remaining, Used string
	// Ratio has both numbers, as USED/LIMIT.
	Ratio string
	// Reset has when the window resets, in ResetForm. ResetAfter has the seconds until
	// then, and comes before Reset, because it needs no clock.
	Reset, ResetAfter string
	// ResetForm is how Reset is written. Zero: it is guessed from the value.
	ResetForm ResetForm
	// Refills is whether it is a bucket that refills all the time, so that Reset is when it
	// is full.
	Refills bool
	// Length is the length of the window, if no header has it. Zero: unknown.
	Length time.Duration
	// LengthHeader has the length: a duration, or a number of LengthUnit. Zero LengthUnit:
	// seconds.
	LengthHeader string
	LengthUnit   time.Duration
	// Scope is whom the window is about. Empty: what Provider.Scope says.
	Scope Scope
}

// A ResetForm is how a header says when a window resets. A date, or a duration such as
// 6m0s, is read in each form: the form is about numbers.
type ResetForm uint8

const (
	// ResetAny guesses: a number below 10^8 is the seconds until then, one from 10^9 is
	// Unix time, in milliseconds from 10^12. It cannot see milliseconds until then.
	ResetAny ResetForm = iota
	// ResetSeconds is the seconds until then.
	ResetSeconds
	// ResetMilliseconds is the milliseconds until then.
	ResetMilliseconds
	// ResetUnix is Unix time, in seconds, or in milliseconds from 10^12.
	ResetUnix
)

// read returns the time from now until the reset that a header names.
func (form ResetForm) read(value string, now time.Time) (left time.Duration, known bool) {
	switch form {
	case ResetSeconds:
		return header.ResetSeconds(value, now)
	case ResetMilliseconds:
		return header.ResetMilliseconds(value, now)
	case ResetUnix:
		return header.ResetUnix(value, now)
	}
	return header.Reset(value, now)
}

// NeedsReading reports whether a response may say something about quotas: by its status, by its header, or by a body that is short and of a
// type in which errors are sent. It is much cheaper than [Provider.ReadResponse]: most successful responses say nothing, and need not be read.
func (p *Provider) NeedsReading(resp *http.Response) bool {
	if p == nil {
		p = new(Provider)
	}
	if resp.StatusCode >= 400 || p.ReadSuccessBody || p.MentionsLimits(resp.Header) {
		return true
	}
	for i := range p.Rules {
		if p.Rules[i].mayMatch(resp) && (!p.Rules[i].needsBody() || p.wantsBody(resp)) {
			return true
		}
	}
	return resp.StatusCode == http.StatusOK && resp.ContentLength > 0 && resp.ContentLength <= smallBody && p.wantsBody(resp)
}

// mentions are parts of the names of headers that may say something about quotas. The first are those that may tell a window.
var mentions = [...]string{"imit", "uota", "emain", "hrottle", "-Left", "-Used", "-Usage", "X-Rl", "sage", "etry", "Mbx-"}

// ofWindows is how many of mentions may tell a window.
const ofWindows = 8

// MentionsLimits reports whether a header may say something about quotas. It does not look for what a body says: see
// [Provider.NeedsReading].
func (p *Provider) MentionsLimits(h http.Header) bool {
	for name := range h {
		switch name { // what nearly every response has
		case "Date", "Content-Type", "Content-Length", "Server", "Cache-Control", "Vary", "Etag", "Connection", "Expires", "Last-Modified", "X-Request-Id",
			"Strict-Transport-Security", "X-Content-Type-Options", "X-Frame-Options", "Via", "Set-Cookie", "Cf-Ray", "Access-Control-Allow-Origin", "Alt-Svc":
			continue
		}
		for _, part := range mentions {
			if strings.Contains(name, part) {
				return true
			}
		}
	}
	for i := range p.Windows {
		if p.Windows[i].sent(h) {
			return true
		}
	}
	return false
}

// sent reports whether one of the headers is there that make a window known.
func (f *WindowHeaders) sent(h http.Header) bool {
	for _, names := range [...]string{f.Limit, f.Remaining, f.Used, f.Ratio, f.ResetAfter, f.Reset} {
		if matchesAny(names, func(name string) bool { return name != "" && len(h.Values(name)) > 0 }) {
			return true
		}
	}
	return false
}

// windows returns the windows that the header describes. A negative count of what remains
// is believed if the quota may be overdrawn.
func (p *Provider) windows(r *Response, mayBeOverdrawn bool) []Window {
	var windows []Window
	if p.Windows == nil {
		all := familiesOf(r.Header)
		windows = namedWindows(windows, r, all, false, mayBeOverdrawn)
		windows = ietfWindows(windows, r, mayBeOverdrawn)
		windows = namedWindows(windows, r, all, true, mayBeOverdrawn)
		return windows[:min(len(windows), header.MaxWindows)]
	}
	for i := range p.Windows {
		if p.Windows[i].sent(r.Header) {
			windows = p.Windows[i].read(windows, r, mayBeOverdrawn)
		}
	}
	windows = ietfWindows(windows, r, mayBeOverdrawn)
	return windows[:min(len(windows), header.MaxWindows)]
}

// read appends the window, and those of the policies that its limit lists.
func (f *WindowHeaders) read(windows []Window, r *Response, mayBeOverdrawn bool) []Window {
	w := Window{Name: f.Name, Unit: f.Unit, Refills: f.Refills, Scope: f.Scope}
	column := f.columnOf(r)
	count := func(names string) (c header.Count) {
		if names == "" {
			return c
		}
		value, by := r.single(names)
		if c = header.ParseCount(column.of(value)); c.Known && w.By == "" {
			w.By = by
		}
		return c
	}
	remaining, limit, used := count(f.Remaining), count(f.Limit), count(f.Used)
	for _, c := range [...]header.Count{remaining, used} {
		if c.Of > 0 && !limit.Known { // 59/60
			limit = header.Count{Value: c.Of, Known: true}
		}
	}
	if limit.Of > 0 && limit.Value <= limit.Of && !used.Known && !remaining.Known { // 32/40 of a header that is named after the limit is what was used
		used.Value, used.Known, limit.Value = limit.Value, true, limit.Of
	}
	if value, by := r.single(f.Ratio); value != "" {
		if used, limit = header.ParseRatio(value); limit.Known {
			w.By = by
		}
	}
	w.Length = f.length(r, limit, remaining)
	if w.Reset, w.ResetBy = f.reset(r, column, w.Length); w.By == "" {
		w.By = w.ResetBy
	}
	if w.By == "" {
		return windows
	}
	if f.NameHeader != "" {
		value, _ := r.single(f.NameHeader)
		if name := header.Name(value); name != "" {
			w.Name = name
		}
	}
	w.count(limit, remaining, used, mayBeOverdrawn)
	policies := w.policies(limit)
	if !w.isKnown() && len(policies) == 0 {
		return windows
	}
	if i := slices.IndexFunc(windows, w.isSame); i >= 0 && f.Name == "" {
		if !windows[i].Reset.Known {
			windows[i].Reset, windows[i].ResetBy = w.Reset, w.ResetBy
		}
		return windows
	}
	if w.isKnown() {
		windows = append(windows, w)
	}
	return append(windows, policies...)
}

// count sets what was counted. Two of the counts give the third.
func (w *Window) count(limit, remaining, used header.Count, mayBeOverdrawn bool) {
	if limit.Known {
		w.Limit = OptionalOf(header.Limit(limit.Value))
		if limit.Value == 0 {
			// A server that sheds load says 0 for now, and lists its usual limits behind it.
			for _, policy := range limit.Policies {
				if w.Limit = OptionalOf(header.Limit(policy.Quota.Value)); w.Limit.Known {
					w.Length = OptionalOf(header.Length(policy.Window.Value))
					break
				}
			}
		}
	}
	if remaining.Known && !(limit.Known && limit.Value < 0) {
		w.Remaining = OptionalOf(header.Remaining(remaining.Value, mayBeOverdrawn || w.Limit.Known))
	}
	if used.Known {
		w.Used = OptionalOf(header.Used(used.Value))
	}
	switch {
	case remaining.Known && used.Known && !limit.Known && remaining.Value >= 0 && used.Value >= 0:
		w.Limit = OptionalOf(header.Limit(remaining.Value + used.Value))
	case used.Known && used.Value >= 0 && w.Limit.Known && !remaining.Known:
		w.Remaining = OptionalOf(header.Remaining(limit.Value-used.Value, true))
	}
}

// policies returns the windows that a limit of the older drafts lists behind its own.
func (w *Window) policies(limit header.Count) []Window {
	var windows []Window
	for _, policy := range limit.Policies {
		one := Window{Limit: OptionalOf(header.Limit(policy.Quota.Value)), Length: OptionalOf(header.Length(policy.Window.Value)), By: w.By}
		if one.Limit == w.Limit && one.Length == w.Length || !one.Limit.Known || slices.Contains(windows, one) {
			continue
		}
		windows = append(windows, one)
	}
	return windows
}

// isSame reports whether another window, from other headers, is the same one.
func (w *Window) isSame(other Window) bool {
	return w.Limit.Known && w.Limit == other.Limit && w.Remaining == other.Remaining && w.Unit == other.Unit &&
		(w.Name == "" || other.Name == "" || w.Name == other.Name)
}

// A column is which of several windows is read, if each header has a list of numbers, one for each window.
type column struct {
	at, among int // 0 among: no header has a list
}

// columnOf returns the column of the window that has least left.
func (f *WindowHeaders) columnOf(r *Response) (c column) {
	var limits, remaining, used []float64
	for _, one := range [...]struct {
		names string
		list  *[]float64
	}{{f.Remaining, &remaining}, {f.Limit, &limits}, {f.Used, &used}} {
		if one.names != "" {
			value, _ := r.single(one.names)
			*one.list = header.Numbers(value)
		}
	}
	left := remaining
	if left == nil {
		if left = limits; len(used) == len(limits) {
			for i := range used {
				left[i] -= used[i]
			}
		}
	}
	if len(left) < 2 {
		return c
	}
	return column{at: slices.Index(left, slices.Min(left)), among: len(left)}
}

// of returns the number of a header's list that is the column's, a value that is no list as it is, and nothing of a list of another length.
func (c column) of(value string) string {
	if c.among == 0 || !strings.Contains(value, ",") {
		return value
	}
	list := header.Numbers(value)
	switch len(list) {
	case 0:
		return value
	case c.among:
		return strconv.FormatFloat(list[c.at], 'f', -1, 64)
	}
	return ""
}

// reset returns when the window resets, and the header that says it. It does not lie beyond the window: a number that does is in milliseconds.
func (f *WindowHeaders) reset(r *Response, c column, length Optional[time.Duration]) (reset Optional[time.Duration], by string) {
	if value, name := r.single(f.ResetAfter); value != "" {
		if left, known := header.ResetSeconds(c.of(value), r.ServerTime()); known {
			return Some(left), name
		}
	}
	for name := range strings.SplitSeq(f.Reset, "|") {
		if value, _ := r.single(name); value != "" {
			if left, known := f.ResetForm.read(c.of(value), r.ServerTime()); known {
				n, isNumber := header.Number(value)
				if isNumber && n < 1e9 && f.ResetForm == ResetAny && length.Known && left > length.Value+time.Second && header.Seconds(n/1000) <= length.Value {
					left = header.Seconds(n / 1000)
				}
				return Some(left), name
			}
		}
	}
	return Optional[time.Duration]{}, ""
}

// length returns the length of the window: from its header, or from what stands beside its
// counts, or the documented one.
func (f *WindowHeaders) length(r *Response, limit, remaining header.Count) Optional[time.Duration] {
	if f.LengthHeader != "" {
		value, _ := r.single(f.LengthHeader)
		unit := f.LengthUnit
		if unit == 0 {
			unit = time.Second
		}
		if length := parseLength(value, unit); length.Known {
			return length
		}
	}
	switch {
	case limit.Window > 0:
		return OptionalOf(header.Length(limit.Window))
	case remaining.Window > 0:
		return OptionalOf(header.Length(remaining.Window))
	case f.Length > 0:
		return Some(f.Length)
	}
	return Optional[time.Duration]{}
}
