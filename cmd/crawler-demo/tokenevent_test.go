package main

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/simulated"
	"github.com/ration-go/ration/provider"
)

// newGitHub is a site that speaks as GitHub does.
func newGitHub(t *testing.T, api *simulated.Provider) *site {
	t.Helper()
	dialect, err := simulated.DialectNamed("github")
	require.NoError(t, err)
	api.Dialect, api.Users, api.PagesPerUser = dialect, 4, 5
	return newSite(t, api)
}

func TestDeadTokenIsQuarantinedAndNamed(t *testing.T) {
	s := newGitHub(t, &simulated.Provider{})
	dead := ration.NewToken(s.secrets[0]).ID()
	require.NoError(t, s.provider.Block(s.secrets[0], time.Hour, simulated.KindDead))
	status, stdout, stderr := run(t, new(app), s.args("-provider", "github", "-json")...)
	require.Zero(t, status, stderr)
	got := parseSummary(t, stdout)
	require.Equal(t, eventSummary{Quarantined: []tokenEvent{{Token: dead, Quarantined: provider.ReasonDeadToken}}}, got.Events)
	require.Equal(t, []int{20, 0, 0}, []int{got.OK, got.Refused, got.Failed})
	require.Contains(t, stderr, "crawler-demo: token "+dead+" is quarantined: dead_token\n")
	require.Contains(t, stderr, "\nquarantine  "+short(dead)+": dead_token\n")
	s.requireNoSecret(t, stdout+stderr)
	s.requireWhole(t)
}

// If no token is left, the next run fetches the rest.
func TestCrawlWithoutATokenStops(t *testing.T) {
	s := newGitHub(t, &simulated.Provider{})
	for _, secret := range s.secrets {
		require.NoError(t, s.provider.Block(secret, time.Hour, simulated.KindDead))
	}
	status, stdout, stderr := run(t, new(app), s.args("-provider", "github", "-json")...)
	require.Equal(t, exitNotDone, status)
	got := parseSummary(t, stdout)
	require.Regexp(t, `^STOPPED: budget "crawler-demo": no token is left: [0-9a-f]{32} \(dead_token, .*: replace what is expired or revoked`, got.Verdict)
	require.Equal(t, []int{0, 0, 4}, []int{got.OK, got.Failed, got.Left})
	require.Len(t, got.Events.Quarantined, 2)
	s.requireNoSecret(t, stdout+stderr)

	for _, secret := range s.secrets {
		require.NoError(t, s.provider.Block(secret, 0, simulated.KindDead))
	}
	status, _, stderr = run(t, new(app), s.args("-provider", "github")...)
	require.Zero(t, status, stderr)
	s.requireWhole(t)
}

// If the provider announces more than the given limit, the crawl spends that.
func TestAnnouncedLimitIsLearned(t *testing.T) {
	s := newGitHub(t, &simulated.Provider{Limit: 10, Window: time.Hour})
	status, stdout, stderr := run(t, new(app), s.args("-provider", "github", "-limit", "6/1h:fixed-window,first-use", "-json")...)
	require.Zero(t, status, stderr)
	got := parseSummary(t, stdout)
	require.Equal(t, []int{20, 0}, []int{got.OK, got.Refused})
	require.Len(t, got.Events.Limits, 2)
	require.Equal(t, []string{"10/1h:fixed-window,first-use"}, got.Events.Limits[0].Limits)
	require.Contains(t, stderr, "\nlearned     "+short(got.Events.Limits[0].Token)+": 10/1h:fixed-window,first-use\n")
}

// Slack refuses with 200, which would else be an answer for good.
func TestRefusalIsKnownByTheProvider(t *testing.T) {
	var calls atomic.Int32
	base, crawl := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			_, _ = w.Write([]byte(`{"ok":false,"error":"ratelimited"}`))
			return
		}
		_, _ = w.Write([]byte(`{"ok":true}`))
	})
	synctest.Test(t, func(t *testing.T) { // the refusal lasts a second
		status, s, stderr := crawl(t, base+"/api/users.list\n", "-provider", "slack")
		require.Zero(t, status, stderr)
		require.Equal(t, []int{2, 1, 1, 0}, []int{s.Requests, s.OK, s.Refused, s.Failed})
		require.JSONEq(t, `{"ok":true}`, string(records(t, base, s.Out)["/api/users.list"].BodyJSON))
	})
}

// A refusal can have the status of an answer for good.
func TestRefusalWithAnyStatusIsNotKept(t *testing.T) {
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/bill" {
			w.WriteHeader(http.StatusPaymentRequired)
		}
		_, _ = w.Write([]byte("{}"))
	})
	status, s, stderr := crawl(t, base+"/bill\n")
	require.Equal(t, exitNotDone, status)
	require.Equal(t, []int{0, 1, 1}, []int{s.OK, s.Refused, s.Failed})
	require.Contains(t, stderr, base+"/bill: the provider answered 402 Payment Required (billing)\n")
	require.Equal(t, provider.ReasonBilling, s.Events.Quarantined[0].Quarantined)
}

func TestEventsAreReportedOnceAndKept(t *testing.T) {
	c, all := new(workerGroup), new(statistics)
	c.onEvent(ration.Event{Kind: ration.StoreDown})
	require.Empty(t, c.takeEvents())
	c.onEvent(ration.Event{Kind: ration.ExternalUsage, Account: "a", Count: 7})
	c.onEvent(ration.Event{Kind: ration.ExternalUsage, Account: "b", Count: 5})
	c.onEvent(ration.Event{Kind: ration.LimitLearned, Account: "a", Theirs: []ration.Limit{ration.PerHour(5), ration.PerDay(7)}})
	reported := c.takeEvents()
	require.Empty(t, c.takeEvents())
	for i, want := range []string{"", "", "token a: the provider announced other limits: 5/1h and 7/24h"} {
		require.Equal(t, want, all.addEvent(reported[i]))
	}
	require.Empty(t, all.addEvent(reported[2]), "another process reports the same")
	reported[2].Limits = []string{"9/1h"}
	require.NotEmpty(t, all.addEvent(reported[2]))
	require.Equal(t, eventSummary{Limits: reported[2:], ExternalUsage: 12}, all.events)
}
