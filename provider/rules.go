package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A MatchRule says what a part of a response means: a status, a header, a field of the
// body, words. It matches if all that it names is there.
//
// In Header, Field, Equals and Contains, "|" separates alternatives, one of which is
// enough.
type MatchRule struct {
	// Status are status codes, one of which the response must have. Nil: any.
	Status []int
	// Header is the name of a header that must be there. Empty: none.
	Header string
	// Field is a path in the JSON body, as in [Response.Fields], that must be there. Empty:
	// none.
	Field string
	// Equals is the whole value of the field, or of the header if Field is empty, in any
	// case. Empty: any value.
	Equals string
	// Contains are words, in any case. They are searched in the value of the field, or of
	// the header if Field is empty. If both are empty, or Equals is set, they are searched
	// in the first 8 KiB of the body. Empty: any.
	Contains string

	// Reason is what a match means. Empty: nothing, so that no later rule matches.
	Reason Reason
	// Scope is whom it is about. Empty: the rule does not say.
	Scope Scope
	// MinWait and MaxWait bound the wait, if the response does not say it. Zero: no bound.
	MinWait, MaxWait time.Duration
	// Midnight is the IANA time zone at whose next midnight the wait ends, if the response
	// does not say when. Empty: the rule does not say.
	Midnight string

	says func(r *Response) bool // must report true; nil: whatever it says
}

// Match returns the part of the response that matches the rule, as "status 429" or
// "80002 in the body", and an empty string if the rule does not match.
func (m *MatchRule) Match(r *Response) (by string) {
	if m.Status != nil {
		if !slices.Contains(m.Status, r.Status) {
			return ""
		}
		by = "status " + strconv.Itoa(r.Status)
	}
	if m.Header != "" {
		if by = m.matchHeader(r); by == "" {
			return ""
		}
	}
	if m.Field != "" {
		values := r.Fields(m.Field)
		at := slices.IndexFunc(values, m.matchValue)
		if at < 0 {
			return ""
		}
		if by = inWords; m.Equals != "" {
			by = strings.TrimSpace(values[at]) + " in the body"
		}
	}
	if m.says != nil {
		if len(r.Body) == 0 || !m.says(r) {
			return ""
		}
		by = inWords
	}
	if m.Contains != "" && (m.Equals != "" || m.Header == "" && m.Field == "") {
		if !containsAny(r.Text(), m.Contains) {
			return ""
		}
		if m.Equals == "" {
			by = inWords
		}
	}
	return by
}

// mayMatch reports whether the rule may match a response whose body nobody has read.
func (m *MatchRule) mayMatch(resp *http.Response) bool {
	if m.Status != nil {
		return resp.StatusCode < 400 && slices.Contains(m.Status, resp.StatusCode)
	}
	return m.Header != "" && m.matchHeader(&Response{Header: resp.Header}) != ""
}

// needsBody reports whether the rule is about a body.
func (m *MatchRule) needsBody() bool {
	return m.Field != "" || m.Contains != "" && (m.Equals != "" || m.Header == "")
}

// Validate returns an error if a rule of the provider's can never match: it looks into the body of responses that have none, or whose
// bodies are not read.
func (p *Provider) Validate() error {
	if p == nil {
		return nil
	}
	for i := range p.Rules {
		m := &p.Rules[i]
		if !m.needsBody() || m.Status == nil || slices.ContainsFunc(m.Status, hasReadableBody) {
			continue
		}
		return fmt.Errorf("ration: rule %d of the provider %q can never match: no body of a response with status %d is read; leave Field and Contains out, or name another status",
			i, p.Name, m.Status[0])
	}
	return nil
}

// hasReadableBody reports whether bodies of responses with a status are read.
func hasReadableBody(status int) bool {
	switch status {
	case http.StatusNoContent, http.StatusResetContent, http.StatusNotFound:
		return false
	}
	return status >= 200 && status < 300 || status >= 400
}

// inWords is the place of what is read from words of the body.
const inWords = "the body's words"

// matchHeader returns the name of the header that matches.
func (m *MatchRule) matchHeader(r *Response) string {
	for name := range strings.SplitSeq(m.Header, "|") {
		for _, value := range r.Header.Values(name) {
			if strings.TrimSpace(value) != "" && (m.Field != "" || m.matchValue(value)) {
				return name
			}
		}
	}
	return ""
}

// matchValue reports whether a value of the field or the header matches.
func (m *MatchRule) matchValue(value string) bool {
	if m.Equals != "" {
		return matchesAny(m.Equals, func(choice string) bool { return strings.EqualFold(strings.TrimSpace(value), choice) })
	}
	return m.Contains == "" || containsAny(strings.ToLower(value), m.Contains)
}

// containsAny reports whether a text in lower case contains one of those with "|" between.
func containsAny(text, choices string) bool {
	return matchesAny(choices, func(choice string) bool { return strings.Contains(text, strings.ToLower(choice)) })
}

// matchesAny reports whether one of the choices, with "|" between, is such a one.
func matchesAny(choices string, such func(choice string) bool) bool {
	for choice := range strings.SplitSeq(choices, "|") {
		if such(choice) {
			return true
		}
	}
	return false
}

// match returns the first rule that matches a response, and the part that it matches; nil
// if there is none.
func (p *Provider) match(r *Response) (rule *MatchRule, by string, isOwn bool) {
	r.parse()
	for at, rules := range [...][]MatchRule{p.Rules, usualRules} {
		for i := range rules {
			m := &rules[i]
			if m.Status != nil && !slices.Contains(m.Status, r.Status) || m.Field != "" && len(r.json.Members) == 0 ||
				m.Contains != "" && m.Header == "" && len(r.Body) == 0 {
				continue // as most rules, for most responses
			}
			if by := m.Match(r); by != "" {
				return m, by, at == 0
			}
		}
	}
	return nil, "", false
}
