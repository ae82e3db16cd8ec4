package provider

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/jsonprefix"
)

// The names of the headers that describe a window have three parts: a prefix, words for a limit, and words for what the header has, with the
// window's name among them:
//
//	X-RateLimit-Remaining                 what is left of a window without a name
//	Fitbit-Rate-Limit-Reset               behind a maker's prefix
//	Bitvavo-Ratelimit-Resetat             words that are written as one
//	X-RateLimit-Requests-Remaining        the window "requests" (Linear)
//	X-RateLimit-Limit-Minute              the window "minute", which is a minute long (Kong)
//	X-Rate-Limit-Api-Token-Interval-Ms    the length of the window "api-token" (Trello)
//	X-RateLimitBySize-Remaining-Month     the window "size-month", which counts no requests (Mistral)
//	X-Rate-Limit-Time-Reset-Ms            of the only window that has no reset (BigCommerce)
//	X-DayLimit-Remaining                  the window "day" (Xero)
//	X-Discogs-Ratelimit                   the limit itself
//	X-Requests-Remaining                  a unit in place of the words for a limit
//
// One header may also have all of a window, as JSON or in pairs: see structuredWindows.

// A part is what a header has of its window.
type part uint8

const (
	partNone part = iota
	partLimit
	partRemaining
	partUsed
	partReset
	partResetAfter
	partResetMilliseconds
	partLength
	partLengthMilliseconds
	partName
)

// partWords are the words that say which part a header has. The first that a name has count.
var partWords = []struct {
	words string // with "-" around
	part  part
}{
	{"-interval-ms-", partLengthMilliseconds}, {"-interval-milliseconds-", partLengthMilliseconds},
	{"-window-ms-", partLengthMilliseconds}, {"-period-ms-", partLengthMilliseconds},
	{"-reset-ms-", partResetMilliseconds}, {"-reset-milliseconds-", partResetMilliseconds},
	{"-reset-after-ms-", partResetMilliseconds}, {"-reset-in-ms-", partResetMilliseconds},
	{"-window-seconds-", partLength}, {"-window-size-", partLength}, {"-interval-seconds-", partLength}, {"-period-seconds-", partLength},
	{"-interval-", partLength}, {"-window-", partLength}, {"-period-", partLength}, {"-timeframe-", partLength},
	{"-reset-after-seconds-", partResetAfter}, {"-reset-after-", partResetAfter}, {"-resets-after-", partResetAfter},
	{"-reset-in-seconds-", partResetAfter}, {"-reset-in-", partResetAfter}, {"-resets-in-", partResetAfter}, {"-reset-seconds-", partResetAfter},
	{"-seconds-until-reset-", partResetAfter}, {"-time-until-reset-", partResetAfter}, {"-until-reset-", partResetAfter}, {"-time-to-reset-", partResetAfter}, {"-reset-delta-", partResetAfter},
	{"-count-limit-", partLimit}, {"-limit-count-", partLimit}, {"-remaining-", partRemaining}, {"-remain-", partRemaining}, {"-left-", partRemaining}, {"-rem-", partRemaining}, {"-available-", partRemaining},
	{"-reset-at-", partReset}, {"-resets-at-", partReset}, {"-reset-time-", partReset}, {"-reset-timestamp-", partReset}, {"-reset-date-", partReset},
	{"-reset-epoch-", partReset}, {"-reset-", partReset}, {"-resets-", partReset}, {"-until-", partReset}, {"-expires-", partReset}, {"-expiry-", partReset},
	{"-max-", partLimit}, {"-used-", partUsed}, {"-count-", partUsed}, {"-usage-", partUsed}, {"-consumed-", partUsed}, {"-current-", partUsed}, {"-observed-", partUsed},
	{"-limit-", partLimit}, {"-quota-", partLimit}, {"-total-", partLimit}, {"-lim-", partLimit}, {"-allowed-", partLimit},
	{"-capacity-", partLimit},
	{"-resource-", partName}, {"-name-", partName}, {"-group-", partName},
}

// limitNouns are the words for a limit, before which "rate" may stand.
var limitNouns = []string{"limit", "limits", "quota", "quotas", "throttle", "rl"}

// unitWords stand in place of the words for a limit, or in the name of a window. The value is the unit; empty: requests.
var unitWords = map[string]string{"requests": "", "request": "", "calls": "", "call": "", "queries": "", "credits": "credits", "credit": "credits",
	"points": "points", "tokens": "tokens", "units": "units"}

// otherUnits are how the names of windows begin that count something else than requests.
var otherUnits = []string{"token", "complexity", "point", "byte", "cost", "unit", "size", "error", "credit"}

// vocabulary are the words that are found in those that are written as one.
var vocabulary = []string{"milliseconds", "concurrent", "remaining", "timestamp", "available", "interval", "consumed", "throttle", "seconds", "minute", "remain",
	"window", "period", "second", "resets", "limit", "quota", "reset", "after", "usage", "count", "epoch", "month", "daily", "hour", "rate", "used", "left",
	"date", "time", "size", "app", "day", "min", "max", "api", "by", "in", "at", "ms"}

// A word is one of a header's name.
type word struct {
	text string
	end  int // where it ends in the name
}

// split appends the words of a part of a name that is nothing but known words, written as one, or the part itself.
func split(words []word, text string, begins int) []word {
	end := begins + len(text)
	if len(text) < 5 || slices.Contains(vocabulary, text) {
		return append(words, word{text, end})
	}
	before := len(words)
	for rest := text; rest != ""; {
		i := slices.IndexFunc(vocabulary, func(known string) bool { return strings.HasPrefix(rest, known) })
		if i < 0 {
			return append(words[:before], word{text, end})
		}
		rest = rest[len(vocabulary[i]):]
		words = append(words, word{vocabulary[i], end - len(rest)})
	}
	return words
}

// A headerName is what the name of a header says.
type headerName struct {
	stem     string // up to the words for a limit, as they are written: windows of different stems are different
	window   string // the window's name; empty: it has none
	part     part   // none: the value may be the limit, or have all of the window
	unit     string // that stands in place of the words for a limit
	prefixed bool   // there is a maker's prefix
	weak     bool   // there are no words for a limit, or nothing but "limit" behind a prefix: it takes two headers to tell a window
}

// parseHeaderName reads the name of a header, and reports whether it speaks of a limit.
func parseHeaderName(name string) (n headerName, speaks bool) {
	if len(name) > longestName {
		return n, false
	}
	var buffer [16]word
	words, lower := buffer[:0], strings.ToLower(name)
	for begins := 0; begins <= len(lower) && len(words) < len(buffer); {
		length := strings.IndexAny(lower[begins:], "-_")
		if length < 0 {
			length = len(lower) - begins
		}
		words = split(words, lower[begins:begins+length], begins)
		begins += length + 1
	}
	if words[0].text == "x" {
		words = words[1:]
	}
	if len(words) == 0 {
		return n, false
	}
	from, behind := n.findLimit(words)
	if behind == 0 || n.weak && notOfCalls.MatchString(lower) {
		return n, false
	}
	n.stem = lower[:words[behind-1].end]
	joined := "-"
	for i, w := range words {
		if i >= from && i < behind-1 && w.text != "rate" || i >= behind && (i > behind || w.text != "by") {
			joined += w.text + "-"
		}
	}
	if behind < len(words) {
		n.part, joined = partOf(joined)
	}
	n.window = strings.Trim(joined, "-")
	return n, true
}

// longestName is how long the name of a header is that is read, in bytes.
const longestName = 100

// notOfCalls finds names of limits of pages and of what is stored.
var notOfCalls = regexp.MustCompile(`pag|hits|result|item|record|list|storage|disk|upload|memory|size`)

// partOf returns the part that words speak of, and the other words. There is "-" between the words and around them.
func partOf(words string) (p part, others string) {
	for _, one := range partWords {
		if before, after, found := strings.Cut(words, one.words); found {
			return one.part, before + "-" + after
		}
	}
	return partNone, words
}

// findLimit returns where the words for a limit begin in a name, with the words of a window before them, and where they end; 0, 0 if there are none.
func (n *headerName) findLimit(words []word) (from, end int) {
	from = slices.IndexFunc(words, func(w word) bool { return slices.Contains(limitNouns, w.text) })
	end = from + 1
	switch unit := slices.IndexFunc(words, func(w word) bool { _, is := unitWords[w.text]; return is }); {
	case from > 0 && words[from-1].text == "rate":
		from--
	case unit >= 0 && unit < len(words)-1 && (from < 0 || from == len(words)-1) && words[unit+1].text != "id":
		from, end, n.unit = unit, unit+1, unitWords[words[unit].text]
	case from < 0 || from > 0 && from == len(words)-1 && words[from].text == "limit": // X-Reader-Zone1-Limit, X-Reader-Zone1-Usage
		last := words[len(words)-1].text
		if len(words) < 2 || !slices.Contains([]string{"limit", "remaining", "left", "usage", "used"}, last) {
			return 0, 0
		}
		n.weak = true
		from, end = len(words)-1, len(words)-1
	default:
		for from > 0 && (unitLengths[words[from-1].text] > 0 || words[from-1].text == "error" || words[from-1].text == "app" && from < end-1) { // X-AppDayLimit-Remaining
			from--
		}
	}
	n.prefixed = from > 0
	return max(from, 0), end
}

// mostFamilies is how many windows the headers of a response describe at most: who sends more tells nothing.
const mostFamilies = 32

// A family is the headers of one window.
type family struct {
	headerName
	headers WindowHeaders
	bare    string // the header that has no words but the stem's
}

// tells reports whether the family says what is left, or what is allowed.
func (f *family) tells() bool {
	return f.headers.Remaining != "" && !f.weak || f.headers.Limit != "" && (!f.weak || f.headers.Remaining != "" || f.headers.Used != "")
}

// set notes a header of the family.
func (f *family) set(p part, name string) {
	h := &f.headers
	switch p {
	case partNone:
		f.bare = name
	case partLimit:
		h.Limit = strings.TrimSuffix(name+"|"+h.Limit, "|")
	case partRemaining:
		h.Remaining = strings.TrimSuffix(name+"|"+h.Remaining, "|")
	case partUsed:
		h.Used = strings.TrimSuffix(name+"|"+h.Used, "|")
	case partReset:
		h.Reset = strings.TrimSuffix(name+"|"+h.Reset, "|")
	case partResetMilliseconds:
		h.Reset, h.ResetForm = name, ResetMilliseconds
	case partResetAfter:
		h.ResetAfter = strings.TrimSuffix(name+"|"+h.ResetAfter, "|")
	case partLength:
		h.LengthHeader = name
	case partLengthMilliseconds:
		h.LengthHeader, h.LengthUnit = name, time.Millisecond
	case partName:
		h.NameHeader = name
	}
}

// familiesOf returns the families of a header, those without a window's name first.
func familiesOf(h http.Header) []family {
	var names []string
	for name := range h {
		if slices.ContainsFunc(mentions[:ofWindows], func(part string) bool { return strings.Contains(name, part) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []family
	for _, name := range slices.Backward(names) { // X-RateLimit-… before X-Rate-Limit-… before RateLimit-…
		n, speaks := parseHeaderName(name)
		if !speaks || strings.HasPrefix(strings.TrimPrefix(n.stem, "x-"), "beta-") || name == "Ratelimit" || name == "Ratelimit-Policy" {
			continue // it is announced, or one of the IETF's drafts
		}
		i := slices.IndexFunc(all, func(f family) bool { return f.stem == n.stem && f.window == n.window })
		if i < 0 {
			if i = len(all); i == mostFamilies {
				break
			}
			all = append(all, family{headerName: n})
		}
		all[i].set(n.part, strings.Replace(name, "Ratelimit", "RateLimit", 1)) // as people know it
	}
	for i := range all {
		all[i].complete(all)
	}
	slices.SortStableFunc(all, func(a, b family) int { return strings.Compare(a.window, b.window) })
	return all
}

// complete gives the family what its names say, and the time that stands by itself, if it is the only one that it can be of.
func (f *family) complete(all []family) {
	h := &f.headers
	h.Name, h.Unit = f.window, f.unit
	if found := lengthInName.FindStringSubmatch(f.window); found != nil {
		h.Length = lengthOf(found[1], found[2]).Value
	}
	switch {
	case strings.Contains(f.window, "concurrent"):
		h.Unit = ConcurrentUnit
	case slices.ContainsFunc(otherUnits, func(unit string) bool { return strings.HasPrefix(f.window, unit) }):
		h.Unit = f.window
	}
	if f.bare != "" && h.Limit == "" && (h.Remaining != "" || h.Used != "") {
		h.Limit = f.bare
	}
	if h.Limit == "" && h.Used == "" && h.Remaining != "" && f.window == "" {
		f.takeLimit(all)
	}
	if !f.tells() || h.Reset != "" || h.ResetAfter != "" {
		return
	}
	var time *family
	for i := range all {
		switch other := &all[i]; {
		case other.stem != f.stem || other == f:
		case other.tells():
			return // two windows, and one time
		case other.window == "" || other.window == "time":
			time = other
		}
	}
	if time != nil {
		h.Reset, h.ResetForm, h.ResetAfter = time.headers.Reset, time.headers.ResetForm, time.headers.ResetAfter
		if h.LengthHeader == "" {
			h.LengthHeader, h.LengthUnit = time.headers.LengthHeader, time.headers.LengthUnit
		}
	}
}

// takeLimit gives a family that only says what is left the limit of the only other window of its stem: RateLimit-DailyLimit, and
// RateLimit-Remaining.
func (f *family) takeLimit(all []family) {
	var only *family
	for i := range all {
		if other := &all[i]; other != f && other.stem == f.stem && (other.headers.Limit != "" || other.bare != "") {
			if only != nil || other.headers.Remaining != "" || other.headers.Used != "" {
				return
			}
			only = other
		}
	}
	if only == nil || only.headers.Limit == "" {
		return
	}
	f.headers.Limit, only.headers.Limit = only.headers.Limit, ""
	if found := lengthInName.FindStringSubmatch(only.window); found != nil {
		f.headers.Length = lengthOf(found[1], found[2]).Value
	}
}

// namedWindows appends the windows that the names of a response's headers describe: those without a name of their own, or the others.
func namedWindows(windows []Window, r *Response, all []family, named, mayBeOverdrawn bool) []Window {
	for i := range all {
		f := &all[i]
		if (f.window != "") != named || f.weak && !f.tells() || named && (!f.tells() && f.bare == "" || slices.ContainsFunc(windows, func(w Window) bool { return w.Name == f.window })) {
			continue
		}
		before := len(windows)
		windows = f.headers.read(windows, r, mayBeOverdrawn)
		for i := before; i < len(windows); i++ {
			w := &windows[i]
			if !f.prefixed || !w.Reset.Known || w.Length.Known || w.Reset.Value <= longestPlainReset {
				continue
			}
			value, _ := r.single(w.ResetBy)
			if n, isNumber := header.Number(value); isNumber && n < 1e9 {
				w.Reset, w.ResetBy = Optional[time.Duration]{}, "" // it may be in milliseconds
			}
		}
		if len(windows) == before && f.bare != "" {
			windows = structuredWindows(windows, r, f.bare, mayBeOverdrawn)
		}
	}
	return windows
}

// longestPlainReset is the longest reset that is believed of headers with a maker's prefix that say no window's length: 14628 is four
// hours, or 15 seconds.
const longestPlainReset = time.Hour

// structuredWindows appends the windows that one header has all of:
//
//	X-Ratelimit: {"name":"API","period":10,"limit":50,"remaining":0,"until":"2026-03-02T12:00:07Z"}
//	X-Rate-Limit: user-hour-lim:3500;user-hour-rem:500;
//	X-Rate-Limit: limit=100, remaining=50
//	X-App-Rate-Limit: 20:1,100:120              limits with the seconds that they are of: see pairWindows
func structuredWindows(windows []Window, r *Response, name string, mayBeOverdrawn bool) []Window {
	value, _ := r.single(name)
	if len(value) > header.MaxText {
		return windows
	}
	if pairList.MatchString(value) {
		return pairWindows(windows, r, name, value)
	}
	for _, members := range membersOf(value) {
		inner := &Response{Status: r.Status, Header: members, Arrived: r.ServerTime(), parsed: true}
		before := len(windows)
		all := familiesOf(members)
		windows = namedWindows(windows, inner, all, false, mayBeOverdrawn)
		windows = namedWindows(windows, inner, all, true, mayBeOverdrawn)
		for i := before; i < len(windows); i++ {
			windows[i].By, windows[i].ResetBy = name, ""
		}
	}
	return windows
}

// pairs is one member of a header, "remaining=50" or "user-hour-rem:500".
var pairs = regexp.MustCompile(`^\s*"?([A-Za-z][A-Za-z0-9_-]{0,39})"?\s*[:=]\s*"?([^"]*)"?\s*$`)

// wordedPairs are members with nothing but spaces between.
var wordedPairs = regexp.MustCompile(`([A-Za-z][A-Za-z ]{0,39})[:=] ?([0-9.]+)(?:\s|$)`)

// membersOf returns the members of a header's value as headers of their own, for each window; nil if it has none.
func membersOf(value string) (all []http.Header) {
	set := func(h http.Header, name, value string) {
		h[http.CanonicalHeaderKey("Ratelimit-"+strings.ReplaceAll(name, "_", "-"))] = []string{value}
	}
	if strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") {
		objects := []jsonprefix.Value{jsonprefix.Parse([]byte(value))}
		if objects[0].Kind == jsonprefix.Array {
			objects = objects[0].All("[]")
		}
		for _, object := range objects {
			h := make(http.Header)
			for _, member := range object.Members {
				if header.Name(member.Name) != "" && member.Value.Text != "" {
					set(h, member.Name, member.Value.Text)
				}
			}
			all = append(all, h)
		}
		return all[:min(len(all), header.MaxWindows)]
	}
	h := make(http.Header)
	for _, found := range wordedPairs.FindAllStringSubmatch(value, 8) { // Remaining: 394 Time until reset: 3589
		set(h, strings.ReplaceAll(strings.TrimSpace(found[1]), " ", "-"), found[2])
	}
	if len(h) >= 2 && !strings.ContainsAny(value, ";,") {
		return append(all, h)
	}
	clear(h)
	for member := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ';' || c == ',' }) {
		found := pairs.FindStringSubmatch(member)
		if found == nil {
			return nil
		}
		set(h, found[1], found[2])
	}
	if len(h) < 2 {
		return nil
	}
	return append(all, h)
}

// pairList is a list of limits with the seconds that they are of, "20:1,100:120", or of what was counted.
var pairList = regexp.MustCompile(`^[0-9]{1,9}:[0-9]{1,9}(,[0-9]{1,9}:[0-9]{1,9}){0,15}$`)

// pairWindows appends the windows that a header such as X-App-Rate-Limit lists in pairs, of which one with -Count behind
// it has what was counted.
func pairWindows(windows []Window, r *Response, name, value string) []Window {
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
