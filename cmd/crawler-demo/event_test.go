package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

func TestEventsAreToldOnceAndCounted(t *testing.T) {
	var out testkit.Buffer
	c := newCrawl(&app{stderr: &out}, plan{}, new(outFile))
	for range 3 {
		c.handleEvent(&event{Kind: "limit learned", Text: "a limit was learned"})
	}
	c.handleEvent(&event{Kind: "external usage", Text: "others spent 7", Count: 7})
	require.Equal(t, "crawler-demo: a limit was learned\ncrawler-demo: others spent 7\n", out.String())
	require.Equal(t, map[string]int{"limit learned": 3, "external usage": 1}, c.stats.events)
	require.Equal(t, 7, c.stats.external)
}

// newGitHub is a site that speaks as GitHub does.
func newGitHub(t *testing.T, api *simulated.Provider) *site {
	t.Helper()
	dialect, err := simulated.DialectNamed("github")
	require.NoError(t, err)
	api.Dialect, api.Users, api.PagesPerUser = dialect, 4, 5
	return newSite(t, api)
}

// One token is revoked: the other fetches everything, and the crawl says so.
func TestDeadTokenIsQuarantinedAndNamed(t *testing.T) {
	s := newGitHub(t, new(simulated.Provider))
	dead := ration.NewToken(s.secrets[0]).ID()
	require.NoError(t, s.provider.Block(s.secrets[0], time.Hour, simulated.KindDead))
	status, stdout, stderr := run(t, new(app), s.args("-provider", "github", "-json")...)
	require.Zero(t, status, stderr)
	got := parseSummary(t, stdout)
	require.Equal(t, []int{20, 0, 0, 1}, []int{got.OK, got.Refused, got.Failed, got.Events.Kinds[ration.TokenQuarantined.String()]})
	require.Regexp(t, "crawler-demo: token "+dead+` is quarantined until \S+: dead_token: .*401 Unauthorized from GET `+s.base+`\S+: .*Bad credentials`, stderr)
	s.requireNoSecret(t, stdout+stderr)
	s.requireWhole(t)
}

// If no token is served, the next run fetches what is missing.
func TestCrawlWithoutATokenStops(t *testing.T) {
	s := newGitHub(t, new(simulated.Provider))
	for _, secret := range s.secrets {
		require.NoError(t, s.provider.Block(secret, time.Hour, simulated.KindDead))
	}
	status, stdout, stderr := run(t, new(app), s.args("-provider", "github", "-json")...)
	require.Equal(t, exitNotDone, status)
	require.Regexp(t, `^NOT DONE: 0 URLs fetched, 0 refused, 4 failed`, parseSummary(t, stdout).Verdict)
	require.Regexp(t, `401 Unauthorized \(dead_token\): .*Bad credentials`, stderr)
	s.requireNoSecret(t, stdout+stderr)

	for _, secret := range s.secrets {
		require.NoError(t, s.provider.Block(secret, 0, simulated.KindDead))
	}
	status, _, stderr = run(t, new(app), s.args("-provider", "github")...)
	require.Zero(t, status, stderr)
	s.requireWhole(t)
}
