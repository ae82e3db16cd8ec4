package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/simulated"
	"github.com/ration-go/ration/provider/presets"
)

func TestProviderStandsForLimitAndAuth(t *testing.T) {
	const crawl = "-urls u -tokens t "
	shopify := []ration.Limit{{Max: 40, Window: 20 * time.Second, Algorithm: ration.GCRA, Burst: 40}}
	for _, row := range []struct {
		args   string
		limits []ration.Limit
		auth   auth
	}{
		{crawl + "-provider shopify", shopify, auth{"provider", "shopify"}},
		{crawl + "-provider shopify -limit 7/1s -limit 9/1m", []ration.Limit{ration.PerSecond(7), ration.PerMinute(9)}, auth{"provider", "shopify"}},
		{crawl + "-provider shopify -auth bearer", shopify, auth{}},
		{crawl + "-provider shopify -auth query:key", shopify, auth{"query", "key"}},
		{crawl + "-provider meta -limit 200/1h", []ration.Limit{ration.PerHour(200)}, auth{"provider", "meta"}},
		{"-provider shopify", shopify, auth{"provider", "shopify"}},
		{"-provider slack", []ration.Limit{ration.PerMinute(50)}, auth{}}, // its dialect is none of the demo's
		{"-simulate shopify", nil, auth{"provider", "shopify"}},
		{"-simulate ietf -limit 7/1s", []ration.Limit{ration.PerSecond(7)}, auth{"provider", "generic"}},
	} {
		o, err := parseOptions(strings.Fields(row.args))
		require.NoError(t, err, row.args)
		require.Equal(t, row.limits, o.limits, row.args)
		require.Equal(t, row.auth, o.auth, row.args)
	}
}

func TestParamIsTheQueryParameterThatHoldsTheSecret(t *testing.T) {
	for want, a := range map[string]auth{"key": {"query", "key"}, "access_token": {"provider", "meta"}, "api_key": {"provider", "ncbi"}} {
		require.Equal(t, want, a.param())
	}
	for _, a := range []auth{{}, {"header", "key"}, {"provider", "github"}, {"provider", "shopify"}} {
		require.Empty(t, a.param())
	}
}

// TestProviderIsAllThatACrawlNeeds crawls sites that take the token nowhere but where the provider has it.
func TestProviderIsAllThatACrawlNeeds(t *testing.T) {
	for name, site := range map[string]*simulated.Provider{
		"shopify":   {},
		"instagram": {},
		"github":    {},
		"discord":   {Limit: 50, Window: time.Second, Count: simulated.CountGCRA, Burst: 50},
	} {
		t.Run(name, func(t *testing.T) {
			dialect, err := simulated.DialectNamed(name)
			require.NoError(t, err)
			site.Dialect, site.Users, site.PagesPerUser = dialect, 4, 5
			s := newSite(t, site)
			status, stdout, stderr := run(t, new(app), s.args("-provider", name)...)
			require.Zero(t, status, stderr)
			require.Contains(t, stdout, "DONE: 20 URLs fetched, 0 refused\n")
			preset, err := presets.Named(name)
			require.NoError(t, err)
			require.Contains(t, stdout, "each "+preset.Limits[0].String())
			s.requireNoSecret(t, stdout+stderr)
			s.requireWhole(t)
		})
	}
}

func TestSimulationsSuitADemo(t *testing.T) {
	require.Len(t, simulations, len(simulated.Dialects()))
	for _, name := range simulated.Dialects() {
		l, found := simulations[name]
		require.True(t, found, name)
		read, err := ration.ParseLimit(l.String())
		require.NoError(t, err)
		require.Equal(t, l, read)
		d, err := fullDemo.withLimit(l)
		require.NoError(t, err, name)
		takes := d.duration(time.Date(2026, 1, 21, 0, 0, 0, 0, time.UTC))
		require.Greater(t, takes, 4*time.Second, name)
		require.Less(t, takes+l.Window, 25*time.Second, name)
		require.Contains(t, help, name)
		_, err = presets.Named(presetOf(name))
		require.NoError(t, err)
	}
}

// TestDemoSpeaksAsItIsAsked looks at the demo's provider, of a simulation, a provider that is a dialect, and one that is not.
func TestDemoSpeaksAsItIsAsked(t *testing.T) {
	for args, want := range map[string]struct{ dialect, limit string }{
		"":                              {"", "60/1s"},
		"-simulate github":              {"github", "500/7s:fixed-window,first-use"},
		"-simulate shopify -limit 9/1s": {"shopify", "9/1s"},
		"-provider shopify":             {"shopify", "40/20s:gcra,burst=40"},
		"-provider slack":               {"", "50/1m"},
	} {
		o, err := parseOptions(strings.Fields(args))
		require.NoError(t, err)
		a := pairingDemo()
		a.listen = listenLoopback
		p, err := a.planDemo(o)
		require.NoError(t, err)
		p.close()
		dialect := ""
		if p.judge.Dialect != nil {
			dialect = p.judge.Dialect.Name()
			require.Contains(t, p.intro, ", in the dialect of "+dialect+", allows each of 2 tokens")
		}
		require.Equal(t, want.dialect, dialect, args)
		require.Equal(t, []string{want.limit}, p.limitsText(), args)
		report := p.judge.Report()
		require.Equal(t, p.limits[0].Max, report.Limit)
		require.Equal(t, p.limits[0].Window, report.Window)
	}
}

// TestDemoOfNoDialectIsRefused has a smaller quota of each simulation's shape: its provider counts and finds the token in
// its own way.
func TestDemoOfNoDialectIsRefused(t *testing.T) {
	for name, l := range simulations {
		t.Run(name, func(t *testing.T) {
			l.Max, l.Window, l.Burst = 60, time.Second, min(l.Burst, 60)
			requireNotRefusedAtAnyPhase(t, l.String(), "-simulate", name)
		})
	}
}
