package provider

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
)

// Many APIs have a family of headers for each of their windows, whose names follow a pattern:
//
//	X-RateLimit-Requests-Remaining        the window "requests" (Linear)
//	X-RateLimit-Limit-Minute              the window "minute", which is a minute long (Kong)
//	X-Rate-Limit-Api-Token-Interval-Ms    the length of the window "api-token" (Trello)
//	X-Contentful-RateLimit-Second-Limit   the window "second": the maker's name says nothing
//	X-RateLimitBySize-Remaining-Month     the window "size-month", which counts no requests (Mistral)
//	X-Rate-Limit-Time-Reset-Ms            of the only window that has no reset (BigCommerce)
//	X-DayLimit-Remaining                  the window "day" (Xero)
//
// familyWindows reads those that usualWindows does not name.

// A family is the headers of one window.
type family struct {
	headers  WindowHeaders
	isUseful bool // it says what is left, or what is allowed
}

var (
	familyName = regexp.MustCompile(`^(?:x-)?(?:[a-z0-9]+-)?rate-?limit(?:by([a-z]+))?-(.+)$`)
	limitName  = regexp.MustCompile(`^x-((?:app)?(?:min|minute|hour|day|second))limit-(.+)$`)
	// familyUnits are the names of windows that count something else than requests.
	familyUnits = []string{"token", "complexity", "point", "byte", "cost", "unit", "size"}
)

// familyKinds are the words that say what a header of a family has. The first that a name has counts.
var familyKinds = []struct {
	words []string
	set   func(f *family, name string)
}{
	{[]string{"interval-ms", "interval-milliseconds", "window-ms"}, func(f *family, name string) {
		f.headers.LengthHeader, f.headers.LengthUnit = name, time.Millisecond
	}},
	{[]string{"reset-ms"}, func(f *family, name string) { f.headers.Reset, f.headers.ResetForm = name, ResetMilliseconds }},
	{[]string{"interval", "window"}, func(f *family, name string) { f.headers.LengthHeader = name }},
	{[]string{"reset-after"}, func(f *family, name string) { f.headers.ResetAfter = name }},
	{[]string{"remaining", "left"}, func(f *family, name string) { f.headers.Remaining, f.isUseful = name, true }},
	{[]string{"reset"}, func(f *family, name string) { f.headers.Reset = name }},
	{[]string{"used", "count", "usage"}, func(f *family, name string) { f.headers.Used = name }},
	{[]string{"limit", "max", "quota"}, func(f *family, name string) { f.headers.Limit, f.isUseful = name, true }},
}

// mostFamilies is how many families a response has at most: who sends more tells nothing.
const mostFamilies = 32

// familyWindows appends the windows of families that have a name of their own.
func familyWindows(windows []Window, r *Response, mayBeOverdrawn bool) []Window {
	families := make(map[string]*family)
	for header := range r.Header {
		lower := strings.ToLower(header)
		if !strings.Contains(lower, "limit") {
			continue // as most
		}
		found := familyName.FindStringSubmatch(lower)
		if found == nil {
			found = limitName.FindStringSubmatch(lower)
		}
		if found == nil {
			continue
		}
		words := "-" + strings.Trim(found[1]+"-"+found[2], "-") + "-"
		for _, kind := range familyKinds {
			at := slices.IndexFunc(kind.words, func(word string) bool { return strings.Contains(words, "-"+word+"-") })
			if at < 0 {
				continue
			}
			name := strings.Trim(strings.Replace(words, "-"+kind.words[at]+"-", "-", 1), "-")
			if name != "" {
				if families[name] == nil {
					if len(families) == mostFamilies {
						return windows
					}
					families[name] = &family{headers: WindowHeaders{Name: name}}
				}
				kind.set(families[name], header)
			}
			break
		}
	}
	shareTime(families)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		if !f.isUseful || slices.ContainsFunc(windows, func(w Window) bool { return w.Name == name }) {
			continue
		}
		if found := lengthInName.FindStringSubmatch(name); found != nil {
			f.headers.Length = lengthOf(found[1], found[2]).Value
		}
		if slices.ContainsFunc(familyUnits, func(unit string) bool { return strings.HasPrefix(name, unit) }) {
			f.headers.Unit = name
		}
		windows = f.headers.read(windows, r, mayBeOverdrawn)
	}
	return windows
}

// shareTime gives the reset and the length that stand by themselves, as the family "time", to the only other family.
func shareTime(families map[string]*family) {
	times := families["time"]
	if times == nil || times.isUseful || len(families) != 2 {
		return
	}
	for name, f := range families {
		if name != "time" && f.headers.Reset == "" {
			f.headers.Reset, f.headers.ResetForm = times.headers.Reset, times.headers.ResetForm
			f.headers.LengthHeader, f.headers.LengthUnit = times.headers.LengthHeader, times.headers.LengthUnit
		}
	}
}

// pairList is a list of limits with the seconds that they are of, "20:1,100:120", or of what was counted.
var pairList = regexp.MustCompile(`^[0-9]{1,9}:[0-9]{1,9}(,[0-9]{1,9}:[0-9]{1,9}){0,15}$`)

// pairWindows appends the windows that a header such as X-App-Rate-Limit lists in pairs, of which one with -Count behind
// it has what was counted.
func pairWindows(windows []Window, r *Response) []Window {
	var names []string
	for name := range r.Header {
		if strings.HasSuffix(strings.ToLower(name), "rate-limit") && pairList.MatchString(strings.TrimSpace(r.Header.Get(name))) {
			names = append(names, name)
		}
	}
	if len(names) > mostFamilies {
		return windows
	}
	slices.Sort(names)
	for _, name := range names {
		value := strings.TrimSpace(r.Header.Get(name))
		counted := make(map[string]string)
		for pair := range strings.SplitSeq(r.Header.Get(name+"-Count"), ",") {
			n, seconds, _ := strings.Cut(strings.TrimSpace(pair), ":")
			counted[seconds] = n
		}
		scope := Scope("")
		if strings.Contains(strings.ToLower(name), "method") {
			scope = ScopeEndpoint
		}
		for pair := range strings.SplitSeq(value, ",") {
			text, seconds, _ := strings.Cut(pair, ":")
			n, _ := strconv.ParseFloat(text, 64)
			length, _ := strconv.ParseFloat(seconds, 64)
			w := Window{Limit: OptionalOf(header.Limit(n)), Length: OptionalOf(header.Length(length)), Scope: scope, By: name}
			if used, err := strconv.ParseFloat(counted[seconds], 64); err == nil {
				w.Used, w.Remaining = OptionalOf(header.Used(used)), OptionalOf(header.Remaining(n-used, true))
			}
			if w.Limit.Known {
				windows = append(windows, w)
			}
		}
	}
	return windows
}

// headerFields are the paths at which a body repeats headers of an API behind the one that was called.
var headerFields = []string{"error.metadata.headers", "error.headers", "headers"}

// headersInBody returns a response with the headers that the body of a refusal repeats; nil if it does not.
func (r *Response) headersInBody() *Response {
	r.parse()
	for _, path := range headerFields {
		members := r.json.At(path).Members
		if len(members) == 0 {
			continue
		}
		inner := &Response{Status: r.Status, Header: make(http.Header), Arrived: r.Arrived, parsed: true}
		if date := r.Header.Get("Date"); date != "" {
			inner.Header.Set("Date", date)
		}
		for _, member := range members {
			if header.Name(member.Name) != "" && member.Value.Text != "" {
				inner.Header.Set(member.Name, member.Value.Text)
			}
		}
		return inner
	}
	return nil
}
