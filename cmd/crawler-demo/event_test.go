package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
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
	require.Equal(t, []tokenEvent{{Token: dead, Quarantined: provider.ReasonDeadToken}}, got.Events.Quarantined)
	require.Equal(t, []int{20, 0, 0}, []int{got.OK, got.Refused, got.Failed})
	require.Regexp(t, "crawler-demo: token "+dead+` is quarantined until \S+: dead_token: .*401 Unauthorized from `+s.base+`\S+: .*Bad credentials`, stderr)
	require.Contains(t, stderr, "\nquarantine  "+short(dead)+": dead_token\n")
	s.requireNoSecret(t, stdout+stderr)
	s.requireWhole(t)
}

// If no token is served, the next run fetches what is missing.
func TestCrawlWithoutATokenStops(t *testing.T) {
	s := newGitHub(t, &simulated.Provider{})
	for _, secret := range s.secrets {
		require.NoError(t, s.provider.Block(secret, time.Hour, simulated.KindDead))
	}
	status, stdout, stderr := run(t, new(app), s.args("-provider", "github", "-json")...)
	require.Equal(t, exitNotDone, status)
	got := parseSummary(t, stdout)
	require.Regexp(t, `^NOT DONE: 0 URLs fetched, 0 refused, 4 failed`, got.Verdict)
	require.Equal(t, []int{0, 4}, []int{got.OK, got.Failed})
	require.Regexp(t, `401 Unauthorized \(dead_token\): .*Bad credentials`, stderr)
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
	require.InDelta(t, 1, got.QuotaUsed, 1e-9, "of what the provider announced")
	require.Contains(t, stderr, "20 of the 20 calls that the provider allowed 2 tokens")
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
	require.Contains(t, stderr, base+"/bill: the provider answered 402 Payment Required (billing): {}\n")
	require.Equal(t, provider.ReasonBilling, s.Events.Quarantined[0].Quarantined)
}

func TestEventsAreReportedOnceAndKept(t *testing.T) {
	c := &workerGroup{redactor: newRedactor(auth{}, nil)}
	all := newStatistics(plan{})
	c.onEvent(ration.Event{Kind: ration.ExternalUsage, Account: "a", Count: 7})
	c.onEvent(ration.Event{Kind: ration.ExternalUsage, Account: "b", Count: 5})
	c.onEvent(ration.Event{Kind: ration.LimitLearned, Account: "a", Ours: []ration.Limit{ration.PerHour(4)}, Theirs: []ration.Limit{ration.PerHour(5), ration.PerDay(7)}})
	reported := c.takeEvents()
	require.Empty(t, c.takeEvents())
	for i, want := range []string{"account a: other clients have spent 7 units", "account b: other clients have spent 5 units",
		"account a: the provider announced 5/1h and 7/24h instead of 4/1h"} {
		require.Equal(t, want, all.addEvent(1, reported[i]))
	}
	require.Empty(t, all.addEvent(2, reported[2]), "another process reports the same")
	reported[2].Limits = []string{"9/1h"}
	require.NotEmpty(t, all.addEvent(1, reported[2]))
	require.Len(t, all.events.Limits, 1)
	require.Equal(t, []string{"9/1h"}, all.events.Limits[0].Limits)
	require.Equal(t, 12, all.events.ExternalUsage)
}

func TestEveryEventIsShownAndCounted(t *testing.T) {
	for kind := ration.StoreDown; !strings.HasPrefix(kind.String(), "EventKind("); kind++ {
		c := &workerGroup{redactor: newRedactor(auth{}, []string{theSecret})}
		all := newStatistics(plan{})
		c.onEvent(ration.Event{Budget: "b", Kind: kind, Err: errors.New("dial " + theSecret), Count: 3, Account: "a", Token: "a",
			Reason: provider.ReasonDeadToken, Theirs: []ration.Limit{ration.PerHour(5)}})
		e := c.takeEvents()
		require.Len(t, e, 1, kind)
		text := all.addEvent(1, e[0])
		require.NotEmpty(t, text, kind)
		require.NotContains(t, text, "budget b", kind)
		require.NotContains(t, text, theSecret, kind)
		counted := len(all.events.Quarantined) + len(all.events.Limits) + all.events.ExternalUsage/3 + all.events.Others[kind.String()]
		require.Equal(t, 1, counted, kind)
	}
}

func TestOutageIsTheFleetsAndNotOfEachProcess(t *testing.T) {
	all := newStatistics(plan{})
	at := time.Now()
	event := func(kind ration.EventKind, text string, after time.Duration) budgetEvent {
		return budgetEvent{Kind: kind.String(), Text: text, At: at.Add(after)}
	}
	require.Equal(t, "gone: nothing is sent until it does", all.addEvent(1, event(ration.StoreDown, "gone", 0)))
	require.Empty(t, all.addEvent(2, event(ration.StoreDown, "gone too", time.Second)))
	require.Equal(t, 4*time.Second, all.downFor(at.Add(4*time.Second)))
	require.Empty(t, all.addEvent(2, event(ration.StoreBack, "back", 5*time.Second)))
	require.Equal(t, "back, after 30 s", all.addEvent(1, event(ration.StoreBack, "back", 30*time.Second)))
	require.Zero(t, all.downFor(at.Add(31*time.Second)))
	require.NotEmpty(t, all.addEvent(2, event(ration.StoreDown, "gone", time.Minute)))
	all.forgetDown(2, at.Add(70*time.Second)) // the process is lost
	require.InDelta(t, 40, all.events.StoreDown, 1e-9)
	require.Zero(t, all.downFor(at.Add(time.Hour)))
}

func TestAFloodOfEventsIsCounted(t *testing.T) {
	all := newStatistics(plan{})
	lines := 0
	for i := range 100 {
		if all.addEvent(1, budgetEvent{Kind: "HeadroomChanged", Token: "a", Text: fmt.Sprint(i)}) != "" {
			lines++
		}
	}
	require.Equal(t, mostShown, lines)
	require.Equal(t, "HeadroomChanged 100", all.events.otherText())
}

// Redis that is gone for a while looked like waiting for quota.
func TestOutageOfRedisIsShown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newSite(t, &simulated.Provider{Users: 20, PagesPerUser: 5})
	p := start(t, s.args("-limit", "20/1s", "-redis", "redis://"+server.Addr, "-processes", "2", "-json")...)
	until(t, "pages are written", func() bool { return s.lines() >= 20 })
	server.Kill()
	until(t, "the outage is shown", func() bool { return strings.Contains(p.stderr.String(), "crawler-demo: nothing is booked: ") })
	until(t, "and its length", func() bool { return strings.Contains(p.stderr.String(), "the store has not answered for ") })
	server.Restart(t)
	until(t, "so is its end", func() bool { return strings.Contains(p.stderr.String(), "crawler-demo: the store answers again") })
	require.Zero(t, p.status(t), p.stderr.String())
	got := parseSummary(t, p.stdout.String())
	require.Positive(t, got.Events.StoreDown)
	require.Positive(t, got.Events.Others["StoreBack"])
	require.Equal(t, 1, strings.Count(p.stderr.String(), "nothing is booked: "))
	require.Contains(t, p.stderr.String(), "\noutage      the store did not answer for ")
	s.requireWhole(t)
}
