package presets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ration-go/ration/provider"
)

// Named returns the preset of that name, as a copy that may be changed. The
// error names those that are spelt alike.
func Named(name string) (*provider.Provider, error) {
	for i := range presets {
		if presets[i].Name == name {
			p := presets[i]
			p.Limits = slices.Clone(p.Limits)
			p.Windows = slices.Clone(p.Windows)
			p.Rules = slices.Clone(p.Rules)
			p.WaitFields = slices.Clone(p.WaitFields)
			return &p, nil
		}
	}
	if near := namesLike(name); len(near) > 0 {
		return nil, fmt.Errorf("ration: no provider is named %q: did you mean %s?", name, strings.Join(near, " or "))
	}
	return nil, fmt.Errorf("ration: no provider is named %q: there are %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of the presets, sorted.
func Names() []string {
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
	for _, name := range Names() {
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
