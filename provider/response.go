package provider

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/jsonprefix"
)

// A Response is the part of a provider's response that [Provider.Read] reads. Its methods
// keep what they have parsed: they are not safe for concurrent use, and Body must not be
// changed after the first call.
type Response struct {
	// Status is the status code.
	Status int
	// Header has canonical names, as net/http makes them.
	Header http.Header
	// Body is the beginning of the body, decompressed. It may end anywhere, and be empty.
	Body []byte
	// Arrived is when the response came, by the caller's clock. The durations of a
	// [Feedback] begin here.
	Arrived time.Time

	json   jsonprefix.Value
	form   form // that the body has
	parsed bool
	text   string
	lower  bool     // text is known
	fields []fields // what was looked up before

	said     []string // what texts returns
	hasTexts bool
}

// A form is what a body is: of what is no JSON the members of json are made up.
type form uint8

const (
	formJSON form = iota
	formXML
	formPage // for people
	formText
)

// fields are the values at some paths of a body.
type fields struct {
	paths  string
	values []string
}

// Field returns the first value at a path in the body's JSON, as [Response.Fields] finds
// them.
func (r *Response) Field(path string) (value string, found bool) {
	for _, value := range r.Fields(path) {
		return value, true
	}
	return "", false
}

// Fields returns all strings, numbers and booleans at a path in the body's JSON, or at
// several paths with "|" between. A path has names with dots between:
//
//	error.code       the member "code" of the member "error"
//	errors[].code    the members "code" of the objects in the array "errors"
//	[].errorCode     the same, if the whole body is an array
//	error.*          all members of "error"
//
// What stands behind the end of Body, or behind a syntax error, is not there.
func (r *Response) Fields(paths string) []string {
	if r.parse(); len(r.json.Members) == 0 {
		return nil
	}
	if paths == allText {
		return r.texts()
	}
	for i := range r.fields {
		if r.fields[i].paths == paths {
			return r.fields[i].values
		}
	}
	var values []string
	for _, value := range r.json.All(paths) {
		switch value.Kind {
		case jsonprefix.String, jsonprefix.Number, jsonprefix.Bool:
			values = append(values, value.Text)
		}
	}
	values = slices.Clip(values)
	r.fields = append(slices.Clip(r.fields), fields{paths, values})
	return values
}

// Number returns the number at a path in the body's JSON, as [Response.Field] finds it. It
// may be written as a string, but without an exponent.
func (r *Response) Number(path string) (n float64, found bool) {
	text, found := r.Field(path)
	if !found {
		return 0, false
	}
	return header.Number(text)
}

// parse parses the body, once: JSON, or XML and HTML as if they were.
func (r *Response) parse() {
	if r.parsed {
		return
	}
	r.parsed = true
	body := bytes.TrimPrefix(r.Body, []byte("\xef\xbb\xbf")) // a byte order mark
	switch begins := bytes.TrimSpace(body[:min(len(body), header.MaxText)]); {
	case bytes.HasPrefix(begins, []byte("<")):
		r.json, r.form = parseMarkup(begins, r.isHTML()), formXML
		if r.isHTML() {
			r.form = formPage
		}
	case len(begins) > 0:
		if r.json = jsonprefix.Parse(body); r.json.Kind != jsonprefix.Object && r.json.Kind != jsonprefix.Array {
			r.json, r.form = parseText(begins), formText
		}
	}
}

// Text returns the first 8 KiB of the body in lower case, to search them for words.
func (r *Response) Text() string {
	if !r.lower {
		r.text, r.lower = strings.ToLower(string(r.Body[:min(len(r.Body), header.MaxText)])), true
	}
	return r.text
}

// addresses are URLs, whose words mean nothing.
var addresses = regexp.MustCompile(`https?://[^\s"'<>]+`)

// prose returns what the body says in words, in lower case and without addresses: the strings of JSON, what people see of a page, or all of
// another text.
func (r *Response) prose() string {
	r.parse()
	text := r.Text()
	if len(r.json.Members) > 0 {
		text = strings.ToLower(string(r.json.Strings(nil, header.MaxText)))
	}
	return addresses.ReplaceAllString(text, "")
}

// isHTML reports whether the body is a page for people.
func (r *Response) isHTML() bool {
	if strings.Contains(strings.ToLower(r.Header.Get("Content-Type")), "html") {
		return true
	}
	start := strings.TrimSpace(r.Text())
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html") || strings.HasPrefix(start, "<head")
}

// message returns how the body of an error begins, as people read it.
func (r *Response) message() string {
	if r.Status < 400 || len(r.Body) == 0 || r.isHTML() {
		return ""
	}
	const most = 1000
	start := strings.ToValidUTF8(string(r.Body[:min(len(r.Body), 4*most)]), "")
	text := []rune(strings.Join(strings.Fields(start), " "))
	if slices.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return ""
	}
	return string(text[:min(len(text), most)])
}

// ServerTime returns the provider's clock at the arrival: the header Date. Instants that a
// response names are measured from it, so that a wrong clock of this machine changes
// nothing. A Date that is missing, or more than a day away from the arrival, counts as
// wrong; then ServerTime returns the arrival.
func (r *Response) ServerTime() time.Time {
	date, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil || date.Sub(r.Arrived).Abs() > 24*time.Hour {
		return r.Arrived
	}
	return date
}

// Cached reports whether the response comes from a cache (its header Age is above 0), so
// that its counts are old.
func (r *Response) Cached() bool {
	age, err := strconv.ParseInt(strings.TrimSpace(r.Header.Get("Age")), 10, 64)
	return err == nil && age > 0
}

// single returns the value of a header that has one: the first of the names, with "|"
// between, that is not empty. A header that is there twice with different values has none.
func (r *Response) single(names string) (value, name string) {
	for name := range strings.SplitSeq(names, "|") {
		values := r.Header.Values(name)
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
