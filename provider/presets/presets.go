// Package presets describes the limits and the responses of many APIs.
//
// Each preset is a function, such as [GitHub], and [Named] finds one by its name. Both
// return a new [provider.Provider] each time, which the caller may change. A program that
// calls GitHub alone links no other preset.
package presets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ration-go/ration/internal/spelling"
	"github.com/ration-go/ration/provider"
)

// Named returns the preset with that name. If there is none, the error suggests the names
// that are spelled similarly.
func Named(name string) (*provider.Provider, error) {
	for _, known := range registry {
		if known.name == name {
			return known.preset(), nil
		}
	}
	if near := namesLike(name); len(near) > 0 {
		return nil, fmt.Errorf("ration: no provider is named %q: did you mean %s?", name, strings.Join(near, " or "))
	}
	return nil, fmt.Errorf("ration: no provider is named %q: there are %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of all presets, sorted.
func Names() []string {
	names := make([]string, len(registry))
	for i := range registry {
		names[i] = registry[i].name
	}
	return names
}

// namesLike returns the names that a wrong one may mean.
func namesLike(wrong string) []string {
	wrong = strings.ToLower(strings.TrimSpace(wrong))
	var near []string
	for _, name := range Names() {
		also := slices.ContainsFunc(alsoKnown[name], func(other string) bool { return other == wrong })
		if also || spelling.Distance(wrong, name) <= len(name)/3 || len(wrong) > 2 && (strings.Contains(wrong, name) && len(name) > 2 || strings.Contains(name, wrong)) {
			near = append(near, name)
		}
	}
	return near
}

// alsoKnown are other names of providers.
var alsoKnown = map[string][]string{
	"x":                 {"twitter"},
	"mediawiki":         {"wikipedia", "wikimedia"},
	"meta":              {"facebook", "instagram-graph"},
	"anthropic":         {"claude"},
	"openai":            {"chatgpt"},
	"jira":              {"atlassian"},
	"google":            {"google-cloud", "gcp"},
	"generic":           {"", "default", "ietf"},
	"riot":              {"league-of-legends", "valorant"},
	"sp-api":            {"amazon", "selling-partner"},
	"dynamodb":          {"aws"},
	"etherscan":         {"basescan", "bscscan", "polygonscan"},
	"sec-edgar":         {"sec", "edgar"},
	"eve-esi":           {"esi", "eve"},
	"google-maps":       {"maps", "geocoding"},
	"azure-devops":      {"ado", "vsts"},
	"internet-archive":  {"wayback", "archive.org"},
	"api-football":      {"api-sports"},
	"app-store-connect": {"apple"},
}
