package presets

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ration-go/ration/provider"
	"github.com/stretchr/testify/require"
)

const redrawPage = "go test ./provider/presets -run TestProvidersPage -redraw"

var redraw = flag.Bool("redraw", false, "update docs/reference/presets.md")

// docs/reference/presets.md shows the presets as they are.
func TestProvidersPageShowsThePresets(t *testing.T) {
	const file = "../../docs/reference/presets.md"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	also := alsoReads(t)
	var table, sections strings.Builder
	table.WriteString("| preset | limits that all callers have | whose |\n|---|---|---|\n")
	for _, known := range registry {
		p := known.preset()
		fmt.Fprintf(&table, "| [`%s`](#%s) | %s | %s |\n", p.Name, p.Name, limitsOf(p), scopeOf(p))
		fmt.Fprintf(&sections, "\n### %s\n\n", p.Name)
		if p.Note != "" {
			fmt.Fprintf(&sections, "- Note: %s.\n", p.Note)
		}
		if names := namesOf(t, p); names != "" {
			fmt.Fprintf(&sections, "- Names: %s.\n", names)
		}
		fmt.Fprintf(&sections, "- Read: %s.\n- Source: %s, %s.\n", readOf(p, also[p.Name]), sourceOf(p), p.AsOf)
	}
	page := replaced(t, string(data), "presets", table.String()+"\n## Notes and sources\n"+sections.String())
	if *redraw {
		require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
		return
	}
	was, is := strings.Split(string(data), "\n"), strings.Split(page, "\n")
	for i := range is {
		if i >= len(was) || was[i] != is[i] {
			t.Fatalf("docs/reference/presets.md is out of date: run %q. Line %d should be: %.120s", redrawPage, i+1, is[i])
		}
	}
}

// replaced returns the page with other text between <!-- NAME --> and <!-- /NAME -->.
func replaced(t *testing.T, page, name, text string) string {
	before, rest, found := strings.Cut(page, "<!-- "+name+" -->\n")
	require.True(t, found, name)
	_, after, found := strings.Cut(rest, "<!-- /"+name+" -->")
	require.True(t, found, name)
	return before + "<!-- " + name + " -->\n" + text + "<!-- /" + name + " -->" + after
}

// alsoReads returns, by the name of a preset, what the comment of its function says behind
// "It also reads": what no field of a Provider can show.
func alsoReads(t *testing.T) map[string]string {
	also := make(map[string]string)
	for function, comment := range presetFunctions(t) {
		_, what, found := strings.Cut(strings.Join(strings.Fields(comment), " "), "It also reads ")
		if !found {
			continue
		}
		what, _, found = strings.Cut(what, ".")
		require.True(t, found, "%s: the sentence has no end", function)
		_, name, _ := strings.Cut(comment, "returns the preset \"")
		name, _, _ = strings.Cut(name, "\"")
		also[name] = what
	}
	return also
}

func limitsOf(p *provider.Provider) string {
	if len(p.Limits) == 0 {
		return "none: see the note"
	}
	var said []string
	for _, limit := range p.Limits {
		said = append(said, "`"+limit.String()+"`")
	}
	return strings.Join(said, ", ")
}

// namesOf returns the units and the keys that requests of a preset have, and the scopes.
func namesOf(t *testing.T, p *provider.Provider) string {
	units, keys, scopes := make(map[string]int), make(map[string]string), make(map[string]bool)
	for _, path := range []string{"/v1/models/m:do", "/graphql", "/search/code", "/search/users"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := httptest.NewRequest(method, "https://api.test"+path, nil)
			if p.Units != nil {
				maps.Copy(units, p.Units(req))
			}
			if p.Keys != nil {
				maps.Copy(keys, p.Keys(req))
			}
			if p.Scopes != nil {
				for _, scope := range p.Scopes(req) {
					scopes[scope] = true
				}
			}
		}
	}
	var said []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			said = append(said, what+" `"+strings.Join(names, "`, `")+"`")
		}
	}
	add("units", slices.Sorted(maps.Keys(units)))
	add("keys", slices.Sorted(maps.Keys(keys)))
	add("scopes", slices.Sorted(maps.Keys(scopes)))
	return strings.Join(said, "; ")
}

func scopeOf(p *provider.Provider) string {
	if p.Scope == "" {
		return "depends"
	}
	return string(p.Scope)
}

func sourceOf(p *provider.Provider) string {
	if rest, found := strings.CutPrefix(p.Source, "https://"); found {
		host, _, _ := strings.Cut(rest, "/")
		return "[" + host + "](" + p.Source + ")"
	}
	return p.Source
}

func readOf(p *provider.Provider, also string) string {
	var said []string
	if p.Windows == nil {
		said = append(said, "the usual headers")
	}
	for _, w := range p.Windows {
		// One header of each family stands for it.
		for _, header := range []string{w.Limit, w.Used, w.Ratio} {
			if header, _, _ = strings.Cut(header, "|"); header != "" {
				said = append(said, "`"+header+"`")
				break
			}
		}
	}
	if also != "" {
		said = append(said, also)
	}
	for _, path := range p.WaitFields {
		said = append(said, "`"+path+"`")
	}
	if p.ReadSuccessBody {
		said = append(said, "refusals with 200")
	}
	return strings.Join(said, ", ")
}
