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

// speaksOfLimits finds what makes a response that is no refusal one that may have been meant as one.
var speaksOfLimits = regexp.MustCompile(`(?i)limit|quota|throttl|too many|requests|calls`)

// usualHeaders are the names of headers that have other times and rates than those of limits.
var usualHeaders = regexp.MustCompile(`^(?:Date|Expires|Age|Allow|Etag|Vary|Via|Server|Last-Modified|Cache-Control|Content-.*|Accept-.*|Access-Control-.*|.*(?:Key|Token|Auth|Cookie|Session|Secret|Generated).*)$`)

// unread returns what a refusal says of a limit or a wait that was not understood, as a response; empty if there is nothing, or if the wait was.
func (f *Feedback) unread(r *Response) string {
	switch {
	case f.Refused && !f.Wait.Known && f.MaxWait == 0 && !f.Limit.Known && f.Retryable && f.Reason != ReasonOverload && f.Reason != ReasonConcurrency:
	case !f.Refused && f.Reason == "" && (r.Status == 400 || r.Status == 402 || r.Status == 403 || r.Status == 406 || r.Status == 418 || r.Status == 425):
	default:
		return ""
	}
	if !f.Refused && !speaksOfLimits.MatchString(r.Text()) && !slices.ContainsFunc(slices.Collect(maps.Keys(r.Header)), speaksOfLimits.MatchString) {
		return ""
	}
	var said strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := strings.Join(r.Header[name], ", ")
		if value == "" || value == "0" || len(value) > 200 || !isPlainName(name) || !looksLikeLimit.MatchString(name) || usualHeaders.MatchString(name) || f.hasRead(name, value) {
			continue
		}
		if said.Len() > longestUnread {
			break
		}
		fmt.Fprintf(&said, "%s: %s\r\n", name, withoutSecrets(value))
	}
	r.parse()
	left := mostFields
	fields := unreadFields(r.json, 0, &left)
	if said.Len() == 0 && fields == nil {
		return ""
	}
	text := fmt.Sprintf("HTTP/1.1 %d %s\r\n%s", r.Status, http.StatusText(r.Status), said.String())
	if fields != nil {
		body, err := json.Marshal(fields)
		if err != nil || len(body) > longestUnread {
			return text
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

// longestUnread is how long the header and the body of what was not read are at most, about, in bytes.
const longestUnread = 2 << 10

// isPlainName reports whether a name is nothing but a few words that are not long, and no secret.
func isPlainName(name string) bool {
	words := strings.Split(strings.Trim(kebab(name), "-"), "-")
	return plainName.MatchString(name) && len(words) <= 6 && !slices.ContainsFunc(words, func(word string) bool { return len(word) > 14 })
}

// plainName finds names of letters, with two digits at most near their end.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z_. -]{0,60}[0-9]{0,2}[A-Za-z]?$`)

// unreadFields returns the fields of a body that look as if they told a limit or a wait; nil if there is none.
func unreadFields(v jsonprefix.Value, depth int, left *int) any {
	fields := make(map[string]any)
	for _, member := range v.Members {
		if *left--; *left < 0 || depth > deepestField {
			break
		}
		var one any
		switch member.Value.Kind {
		case jsonprefix.Number:
			if looksLikeLimit.MatchString(member.Name) && member.Value.Text != "0" && isPlain.MatchString(member.Value.Text) {
				one = json.Number(member.Value.Text)
			}
		case jsonprefix.String:
			text := member.Value.Text
			if len(text) <= 300 && strings.ContainsAny(text, "0123456789") && (looksLikeLimit.MatchString(member.Name) || looksLikeWait.MatchString(text)) {
				one = withoutSecrets(text)
			}
		case jsonprefix.Array, jsonprefix.Object:
			one = unreadFields(member.Value, depth+1, left)
		}
		if one == nil {
			continue
		}
		if v.Kind == jsonprefix.Array {
			return []any{one} // the others are of the same shape
		}
		name := member.Name
		if !isPlainName(name) {
			name = "…"
		}
		fields[name] = one
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// looksLikeWait finds sentences with a number that may tell a wait.
var looksLikeWait = regexp.MustCompile(`(?i)again|retry|wait|after|until|reset|second|minute|hour|\bday`)

// withoutSecrets returns a text with "…" in place of all that is no plain word, number, time or instant: it may be a secret.
func withoutSecrets(text string) string {
	var all strings.Builder
	kept := 0
	for _, at := range instants.FindAllStringIndex(strings.ToLower(text), 8) {
		if at[1] > len(text) || at[0] > 0 && !isBetween(text[at[0]-1]) || at[1] < len(text) && !isBetween(text[at[1]]) {
			continue // it is a part of a longer word
		}
		all.WriteString(withoutSecretWords(text[kept:at[0]]))
		all.WriteString(text[at[0]:at[1]])
		kept = at[1]
	}
	all.WriteString(withoutSecretWords(text[kept:]))
	return all.String()
}

// isBetween reports whether a byte stands between words.
func isBetween(c byte) bool { return strings.IndexByte(" \t\r\n,;()[]{}<>\"'", c) >= 0 }

func withoutSecretWords(text string) string {
	return wordsOfText.ReplaceAllStringFunc(text, func(word string) string {
		if isPlain.MatchString(strings.Trim(word, ".:!?=")) {
			return word
		}
		return "…"
	})
}

var (
	wordsOfText = regexp.MustCompile(`[^\s,;()\[\]{}<>"']+`)
	// isPlain finds words without digits, in one case but for the first letter, that may have a hyphen, an underscore, or another word behind "="; numbers that
	// are no longer than those of limits, and Unix time; dates, and times as 1m30s and 12:30:00.
	isPlain = regexp.MustCompile(`^(?:` + plainWord + `(?:[-_/.:=]` + plainWord + `){0,3}[:=]?(?:` + plainNumber + `)?|` + plainNumber + `|[^ -~]+[0-9]{0,7}[^ -~]*|[0-9]{4}-[0-9]{2}-[0-9]{2}T?[0-9:.]{0,15}(?:Z|[+-][0-9:]{2,5})?|[-–—|&+*=]?)$`)
)

const (
	plainWord   = `(?:[A-Z]?\pL[\p{Ll}\p{Lo}’]{0,13}|[A-Z]{1,12})`
	plainNumber = `[-+#$]?(?:[0-9]{1,7}|1[5-9][0-9]{8}(?:[0-9]{3})?)(?:[.,][0-9]{1,6})?(?:%|[/:][0-9]{1,7}){0,2}(?:[a-z]{1,12}(?:[0-9]{1,4}[a-z]{1,2}){0,3})?`
)
