package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/jsonprefix"
)

// What a refusal says that nobody has taught this package is kept as a small response of its own, so that whoever runs a crawl can report it,
// and whoever reads the report can try it again.

// looksLikeLimit are parts of the names of headers and fields that may speak of a limit or a wait.
var looksLikeLimit = regexp.MustCompile(`(?i)limit|quota|rate|retry|wait|reset|throttl|remain|usage|backoff|cool|until|expir|allow|block|delay|next|credit|calls|requests`)

// looksLikeSecret finds what may be one: long words with digits and letters in them, and addresses.
var looksLikeSecret = regexp.MustCompile(`[A-Za-z0-9_+/=.~-]*[A-Za-z][A-Za-z0-9_+/=.~-]{7,}[0-9][A-Za-z0-9_+/=.~-]*|[A-Za-z0-9_+/=.~-]*[0-9][A-Za-z0-9_+/=~-]{7,}[A-Za-z][A-Za-z0-9_+/=.~-]*|[^\s"<>]+@[^\s"<>]+|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){4,7}`)

// unread returns what a refusal says of a limit or a wait that was not understood, as a response; empty if there is nothing, or if the wait was.
func (f *Feedback) unread(r *Response) string {
	switch {
	case f.Refused && !f.Wait.Known && f.MaxWait == 0 && !f.Limit.Known && f.Retryable && f.Reason != ReasonOverload && f.Reason != ReasonConcurrency:
	case !f.Refused && f.Reason == "" && (r.Status == 400 || r.Status == 402 || r.Status == 403 || r.Status == 406 || r.Status == 418 || r.Status == 425):
	default:
		return ""
	}
	var said strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := strings.Join(r.Header[name], ", ")
		if value == "" || value == "0" || len(value) > 200 || header.Name(name) == "" || !looksLikeLimit.MatchString(name) || f.hasRead(name, value) {
			continue
		}
		fmt.Fprintf(&said, "%s: %s\r\n", name, withoutSecrets(value))
	}
	r.parse()
	left := mostFields
	fields := r.unreadFields(r.json, f, "", 0, &left)
	if said.Len() == 0 && fields == nil {
		return ""
	}
	text := fmt.Sprintf("HTTP/1.1 %d %s\r\n%s", r.Status, http.StatusText(r.Status), said.String())
	if fields != nil {
		body, err := json.Marshal(fields)
		if err != nil {
			return ""
		}
		text += "Content-Type: application/json\r\n\r\n" + string(body)
	}
	return text
}

// hasRead reports whether a header's value is one that is understood.
func (f *Feedback) hasRead(name, value string) bool {
	n, speaks := parseHeaderName(name)
	return speaks && n.part != partNone && (header.ParseCount(value).Known || header.Numbers(value) != nil || n.part == partName || n.part >= partReset) ||
		strings.EqualFold(name, f.WaitBy) || strings.EqualFold(name, f.ReasonBy) ||
		slices.ContainsFunc(f.Windows, func(w Window) bool { return strings.EqualFold(name, w.By) || strings.EqualFold(name, w.ResetBy) })
}

// unreadFields returns the fields of a body that look as if they told a limit or a wait; nil if there is none.
func (r *Response) unreadFields(v jsonprefix.Value, f *Feedback, path string, depth int, left *int) any {
	fields := make(map[string]any)
	for _, member := range v.Members {
		if *left--; *left < 0 || depth > deepestField {
			break
		}
		var one any
		switch member.Value.Kind {
		case jsonprefix.Number:
			if looksLikeLimit.MatchString(member.Name) && member.Value.Text != "0" {
				one = json.Number(member.Value.Text)
			}
		case jsonprefix.String:
			text := member.Value.Text
			if len(text) <= 300 && strings.ContainsAny(text, "0123456789") && (looksLikeLimit.MatchString(member.Name) || looksLikeWait.MatchString(text)) {
				one = withoutSecrets(text)
			}
		case jsonprefix.Array, jsonprefix.Object:
			one = r.unreadFields(member.Value, f, path, depth+1, left)
		}
		if one == nil {
			continue
		}
		if v.Kind == jsonprefix.Array {
			return []any{one} // the others are of the same shape
		}
		fields[member.Name] = one
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// looksLikeWait finds sentences with a number that may tell a wait.
var looksLikeWait = regexp.MustCompile(`(?i)again|retry|wait|after|until|reset|second|minute|hour|\bday`)

// withoutSecrets returns a text with "…" in place of what may be a secret. Instants and numbers stay.
func withoutSecrets(text string) string {
	return looksLikeSecret.ReplaceAllStringFunc(text, func(word string) string {
		if instants.MatchString(strings.ToLower(word)) || instantStart.MatchString(word) {
			return word
		}
		return "…"
	})
}

// instantStart is how an instant in ISO 8601 begins, or ends.
var instantStart = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T?[0-9:.]*(?:Z|[+-][0-9:]+)?$`)
