package main

import (
	"bytes"
	"encoding/json"
	"mime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// instantLayout is RFC 3339 with the microseconds of the store's clock.
const instantLayout = "2006-01-02T15:04:05.000000Z07:00"

func instant(t time.Time) string { return t.UTC().Format(instantLayout) }

// A record is a line of -out: one response. The URL is its first field, by which
// a file of this command is known.
type record struct {
	URL      string `json:"url"`
	Status   int    `json:"status"`
	Token    string `json:"token"`    // the ID of the token it was fetched with
	Slot     string `json:"slot"`     // when it might leave, on the store's clock
	Sent     string `json:"sent"`     // when it left, on ours
	Received string `json:"received"` // when the whole body was here
	// Next is the page that follows, "" after the last. Absent: nothing was
	// followed, and a later run that does follow finds it from the body.
	Next        *string `json:"next,omitempty"`
	ContentType string  `json:"content_type,omitempty"`
	// FinalURL is what answered, if redirects led there. Relative links are relative to it.
	FinalURL string `json:"final_url,omitempty"`
	// BodyJSON is a body that says it is JSON and is: without the white space between its
	// values, and else as it came, with its order and its digits. Body is other text, byte for
	// byte, and BodyBase64 the rest.
	BodyJSON   json.RawMessage `json:"body_json,omitempty"`
	Body       *string         `json:"body,omitempty"`
	BodyBase64 []byte          `json:"body_base64,omitempty"`
}

// mostLevels is how deep a body may be inside what we write around it, so that encoding/json
// still reads the whole.
var mostLevels = [2][]byte{bytes.Repeat([]byte("["), 8), bytes.Repeat([]byte("]"), 8)}

// saysJSON reports whether the content type is that of JSON.
func saysJSON(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// setBody puts the body where it belongs.
func (r *record) setBody(body []byte, c *redactor) {
	text := c.text(string(body))
	switch {
	case !utf8.Valid(body):
		r.BodyBase64 = []byte(text)
	case saysJSON(r.ContentType) && json.Valid([]byte(text)) && json.Valid(slices.Concat(mostLevels[0], []byte(text), mostLevels[1])):
		r.BodyJSON = json.RawMessage(text)
	default:
		r.Body = &text
	}
}

func (r *record) body() []byte {
	switch {
	case r.BodyJSON != nil:
		return r.BodyJSON
	case r.Body != nil:
		return []byte(*r.Body)
	}
	return r.BodyBase64
}

// line returns the record as a line, with its line feed.
func (r *record) line() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // an & in a URL stays readable
	err := encoder.Encode(r)
	return b.Bytes(), err
}

// recordStart is how every line begins.
var recordStart = []byte(`{"url":"`)

// parseRecord reads a line, and reports whether it is one of ours.
func parseRecord(line []byte) (record, bool) {
	var r record
	if !bytes.HasPrefix(line, recordStart) || json.Unmarshal(line, &r) != nil {
		return r, false
	}
	_, err := parseURL(r.URL)
	_, sent := time.Parse(time.RFC3339Nano, r.Sent)
	_, received := time.Parse(time.RFC3339Nano, r.Received)
	return r, err == nil && sent == nil && received == nil && r.Status >= 100 && r.Status <= 599
}

// isTorn reports whether a last line, which has no line feed, can be the front of
// a record that was being written.
func isTorn(line []byte) bool {
	return bytes.HasPrefix(line, recordStart) || bytes.HasPrefix(recordStart, line)
}
