package ration_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider/presets"
)

// alsoRead is what presets read by functions of their own.
var alsoRead = map[string]string{
	"anthropic":  "`Anthropic-RateLimit-Unified-*`",
	"binance":    "`X-MBX-USED-WEIGHT-*`, `X-MBX-ORDER-COUNT-*`",
	"dockerhub":  "`Docker-RateLimit-Source`",
	"google":     "`quotaId` in the body",
	"instagram":  "figures in the body's words",
	"linkedin":   "refused parts of a success",
	"meta":       "`X-App-Usage`, `X-Page-Usage`, `X-Business-Use-Case-Usage`, `X-Ad-Account-Usage`, `X-FB-Ads-Insights-Throttle`; batches",
	"ncbi":       "`limit` in the body",
	"openai":     "figures in the body's words",
	"groq":       "figures in the body's words",
	"salesforce": "`Sforce-Limit-Info`",
	"shopify":    "`throttleStatus` in the body",
	"zendesk":    "`Zendesk-RateLimit-*`",
}

// docs/providers.md shows the presets as they are. To have it show new ones:
//
//	go test -run TestProvidersPage -redraw .
func TestProvidersPageShowsThePresets(t *testing.T) {
	const file = "docs/providers.md"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var table strings.Builder
	table.WriteString("| provider | limits | whose | what is read | source |\n|---|---|---|---|---|\n")
	for _, name := range presets.Names() {
		provider, err := presets.Named(name)
		require.NoError(t, err)
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s, %s |\n", name, limitsOf(provider), scopeOf(provider), readOf(provider), sourceOf(provider), provider.AsOf)
	}
	page := show(t, string(data), "presets", "/presets", table.String())
	example, err := os.ReadFile("example_provider_test.go")
	require.NoError(t, err)
	_, literal, found := strings.Cut(string(example), "\twarehouse := ")
	require.True(t, found)
	literal, _, found = strings.Cut(literal, "\n\t}\n")
	require.True(t, found)
	literal = "warehouse := " + strings.ReplaceAll(literal, "\n\t", "\n") + "\n}\n"
	page = show(t, page, "example", "/example", "```go\n"+literal+"```\n")
	if *redraw {
		require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
		return
	}
	require.Equal(t, string(data), page)
}

func limitsOf(p *ration.Provider) string {
	var said []string
	for _, limit := range p.Limits {
		said = append(said, "`"+limit.String()+"`")
	}
	if p.Note != "" {
		said = append(said, p.Note)
	}
	return strings.Join(said, "; ")
}

func scopeOf(p *ration.Provider) string {
	if p.Scope == "" {
		return "depends"
	}
	return string(p.Scope)
}

func sourceOf(p *ration.Provider) string {
	if rest, found := strings.CutPrefix(p.Source, "https://"); found {
		host, _, _ := strings.Cut(rest, "/")
		return "[" + host + "](" + p.Source + ")"
	}
	return p.Source
}

func readOf(p *ration.Provider) string {
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
	if also := alsoRead[p.Name]; also != "" {
		said = append(said, also)
	}
	for _, path := range p.WaitFields {
		said = append(said, "`"+path+"`")
	}
	if p.ReadBody {
		said = append(said, "refusals with 200")
	}
	return strings.Join(said, ", ")
}
