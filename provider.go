package ration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A Provider is what is known of an API: what it allows, to whom, and the dialect in
// which it says so. [ProviderNamed] has those of many; one's own is written as a
// literal, most of it left out. The zero Provider knows what most APIs do: the usual
// headers, statuses and codes.
//
// A Provider is not changed by its methods, which are safe for concurrent use.
type Provider struct {
	// Name is what it is found by: lower case letters, digits and '-'.
	Name string
	// Limits are the published ones that hold for every caller, which a budget may
	// begin with until answers teach better. Nil: there are none, or they depend on
	// a plan, on the endpoint, or on what the answers say.
	Limits []Limit
	// Note says what of its limits Limits cannot.
	Note string
	// Source is where the provider tells of Limits and Note. AsOf is the month of
	// the copy of its words that they were compared with, as "2026-07"; "undated"
	// if the copy does not tell it; and "digest" if no copy had the figures, which
	// are then from a digest of the documentation. What Signs and Windows say was
	// compared only as far as these pages speak of it.
	Source, AsOf string
	// Scope is whom its limits are about, where an answer does not tell. Empty: that
	// depends, and rotation of tokens may be of no use.
	Scope Scope
	// Cost is what a request costs in the units of Limits, from 1 up. Nil: 1.
	Cost func(*http.Request) int
	// Attach puts a token into a request. Nil: Bearer.
	Attach Attach

	// Windows are the headers that tell of its windows. Nil: the usual ones. The
	// fields RateLimit and RateLimit-Policy of the IETF's drafts are always read.
	Windows []WindowFields
	// Signs are what its statuses, headers, codes and words mean. The usual ones
	// follow behind them.
	Signs []Sign
	// DelayIn are paths in the body of a refusal, as [Answer.Field] has them, where
	// the wait stands: as seconds, a duration or a date. Nil: only words such as
	// "try again in 20s" are read.
	DelayIn []string
	// InBody tells that it refuses, or tells what is left, in the body of answers
	// with status 200, which must then be read.
	InBody bool
	// BodyWithin is how many bytes of a body are read. Zero: 64 KiB.
	BodyWithin int
	// LatestReset tells that a refusal for which no window is exhausted ends with
	// the latest reset.
	LatestReset bool
	// Adjust is called with what was read, and adds or corrects what the fields
	// above cannot say: Windows, Reason, Scope, Object and a Wait that the body
	// asks for. What follows from these is concluded behind it. It must be as pure
	// as [Provider.Read]. Nil: nothing is to be added.
	Adjust func(*Answer, *Feedback)
}

// FeedbackOf returns what a [Transport] has read in a response, and whether there was
// anything to be read.
func FeedbackOf(resp *http.Response) (Feedback, bool) {
	if resp == nil || resp.Request == nil {
		return Feedback{}, false
	}
	f, found := resp.Request.Context().Value(feedbackKey{}).(*Feedback)
	if !found {
		return Feedback{}, false
	}
	return *f, true
}

// ProviderNamed returns the preset of that name, as a copy that may be changed. The
// error names those that are spelt alike.
func ProviderNamed(name string) (*Provider, error) {
	for i := range presets {
		if presets[i].Name == name {
			p := presets[i]
			p.Limits = slices.Clone(p.Limits)
			p.Windows = slices.Clone(p.Windows)
			p.Signs = slices.Clone(p.Signs)
			p.DelayIn = slices.Clone(p.DelayIn)
			return &p, nil
		}
	}
	if near := namesLike(name); len(near) > 0 {
		return nil, fmt.Errorf("ration: no provider is named %q: did you mean %s?", name, strings.Join(near, " or "))
	}
	return nil, fmt.Errorf("ration: no provider is named %q: there are %s", name, strings.Join(ProviderNames(), ", "))
}

// ProviderNames returns the names of the presets, sorted.
func ProviderNames() []string {
	names := make([]string, len(presets))
	for i := range presets {
		names[i] = presets[i].Name
	}
	slices.Sort(names)
	return names
}

// namesLike returns the names that a wrong one may mean.
func namesLike(wrong string) []string {
	wrong = strings.ToLower(strings.TrimSpace(wrong))
	var near []string
	for _, name := range ProviderNames() {
		also := slices.ContainsFunc(alsoKnown[name], func(other string) bool { return other == wrong })
		if also || distance(wrong, name) <= len(name)/3 || len(wrong) > 2 && (strings.Contains(wrong, name) && len(name) > 2 || strings.Contains(name, wrong)) {
			near = append(near, name)
		}
	}
	return near
}

// alsoKnown are other names of providers.
var alsoKnown = map[string][]string{
	"x":         {"twitter"},
	"mediawiki": {"wikipedia", "wikimedia"},
	"meta":      {"facebook", "instagram-graph", "whatsapp"},
	"anthropic": {"claude"},
	"openai":    {"chatgpt"},
	"jira":      {"atlassian"},
	"google":    {"gemini", "gmail"},
	"generic":   {"", "default", "ietf"},
}

// distance is how many letters are to be changed, added or left out to have one of
// the other.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
