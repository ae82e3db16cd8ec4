package provider

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/jsonprefix"
)

// An Response is a provider's response as [Provider.Read] takes it. It is read, and
// not kept.
type Response struct {
	// Status is the response's status code.
	Status int
	// Header is the response's header, with canonical names, as net/http makes it.
	Header http.Header
	// Body is what is known of the body's beginning, inflated. It may end
	// anywhere, and be empty.
	Body []byte
	// Arrived is when the response came, by the caller's clock. Durations count
	// from here.
	Arrived time.Time

	json   jsonprefix.Value
	parsed bool
}

// Field returns the first value at a path in the body's JSON, and whether there is
// one that is a string, a number or a boolean. A path is names with dots between,
// such as "error.code"; "errors[].code" is that of the first of a list that has one,
// "[].errorCode" one in a list that is the whole body, and "*" any name. What stands
// behind the end of Body, or behind a fault in it, is not there.
func (a *Response) Field(path string) (value string, found bool) {
	for _, value := range a.All(path) {
		return value, true
	}
	return "", false
}

// all returns all plain values at one of the paths, which have "|" between.
func (a *Response) All(paths string) []string {
	if a.JSON().Kind == jsonprefix.None {
		return nil
	}
	var texts []string
	for path := range strings.SplitSeq(paths, "|") {
		for _, value := range a.JSON().All(path) {
			switch value.Kind {
			case jsonprefix.String, jsonprefix.Number, jsonprefix.Bool:
				texts = append(texts, value.Text)
			}
		}
	}
	return texts
}

// number returns the number at a path, which may be written as a string.
func (a *Response) Number(path string) (float64, bool) {
	text, found := a.Field(path)
	if !found {
		return 0, false
	}
	return ParseNumber(text)
}

func (a *Response) JSON() jsonprefix.Value {
	if !a.parsed {
		a.parsed = true
		text := bytes.TrimSpace(bytes.TrimPrefix(a.Body, []byte("\xef\xbb\xbf")))
		if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			a.json = jsonprefix.Parse(text)
		}
	}
	return a.json
}

// textWithin is how much of a body is searched for words.
const MaxText = 8 << 10

// text returns the body in lower case, to be searched for words.
func (a *Response) Text() string {
	return strings.ToLower(string(a.Body[:min(len(a.Body), MaxText)]))
}

// isHTML reports whether the body is a page for people.
func (a *Response) isHTML() bool {
	if strings.Contains(strings.ToLower(a.Header.Get("Content-Type")), "html") {
		return true
	}
	start := strings.TrimSpace(a.Text())
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

// now returns the provider's clock as the response left it. Instants that the
// provider names are measured from there, so that a clock of ours that is wrong
// changes nothing. A Date more than a day away from the arrival is not believed.
func (a *Response) Now() time.Time {
	date, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil || date.Sub(a.Arrived).Abs() > 24*time.Hour {
		return a.Arrived
	}
	return date
}

// cached reports whether a cache sent the answer: its figures are old.
func (a *Response) Cached() bool {
	age, err := strconv.ParseInt(strings.TrimSpace(a.Header.Get("Age")), 10, 64)
	return err == nil && age > 0
}

// single returns the value of a header that has one: the first of the names, with
// "|" between, that is there. A header that is there twice with different values
// says nothing.
func (a *Response) single(names string) (value, name string) {
	for name := range strings.SplitSeq(names, "|") {
		values := a.Header.Values(name)
		if len(values) == 0 {
			continue
		}
		for _, other := range values[1:] {
			if strings.TrimSpace(other) != strings.TrimSpace(values[0]) {
				return "", ""
			}
		}
		if value := strings.TrimSpace(values[0]); value != "" {
			return value, name
		}
	}
	return "", ""
}

// among reports whether a text is one of those with "|" between, whatever their case.
func among(text, choices string) bool {
	for choice := range strings.SplitSeq(choices, "|") {
		if strings.EqualFold(text, choice) {
			return true
		}
	}
	return false
}

// containsAny reports whether a text in lower case has one of those with "|" between in it.
func containsAny(text, choices string) bool {
	for choice := range strings.SplitSeq(choices, "|") {
		if strings.Contains(text, strings.ToLower(choice)) {
			return true
		}
	}
	return false
}
