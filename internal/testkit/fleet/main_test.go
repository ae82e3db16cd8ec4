package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
	"github.com/ration-go/ration/provider"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// A server is a running provider.
type server struct {
	first string // URL of its first page
	in    *io.PipeWriter
	ended chan error
}

func startServer(t *testing.T, o order) *server {
	t.Helper()
	in, orders := io.Pipe()
	told, out := io.Pipe()
	s := &server{in: orders, ended: make(chan error, 1)}
	go func() { s.ended <- serve(o, json.NewDecoder(in), out) }()
	line, err := bufio.NewReader(told).ReadString('\n')
	require.NoError(t, err)
	s.first = strings.TrimSpace(line)
	t.Cleanup(func() {
		require.NoError(t, orders.Close())
		require.NoError(t, <-s.ended)
	})
	return s
}

// get makes a call as GitHub's clients do.
func (s *server) get(t *testing.T, secret string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.first, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "token "+secret)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func (s *server) report(t *testing.T) (report simulated.Report) {
	t.Helper()
	at, err := url.Parse(s.first)
	require.NoError(t, err)
	resp, err := http.Get("http://" + at.Host + simulated.ReportPath)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&report))
	return report
}

func TestProviderSpeaksAndBlocksAsOrdered(t *testing.T) {
	s := startServer(t, order{Serve: true, Tokens: []string{"one", "two"}, Limit: "1000/1h", Dialect: "github", SecondaryLimit: 2})
	status, _ := s.get(t, "one")
	require.Equal(t, http.StatusOK, status)
	require.Eventually(t, func() bool {
		_, body := s.get(t, "one")
		return strings.Contains(body, "You have exceeded a secondary rate limit")
	}, 10*time.Second, time.Millisecond)

	require.NoError(t, json.NewEncoder(s.in).Encode(block{Token: "two", For: time.Hour, Kind: simulated.KindDead}))
	require.Eventually(t, func() bool {
		status, _ := s.get(t, "two")
		return status == http.StatusUnauthorized
	}, 10*time.Second, time.Second, "the token is blocked once the order has arrived")
	report := s.report(t)
	require.NotZero(t, report.Secondary)
	require.NotEmpty(t, report.Tokens[1].Blocked)
	require.Zero(t, report.ExternalAccepted+report.ExternalRefused)
}

// A competing client calls as soon as the fleet does.
func TestProviderSpendsTheExternalShare(t *testing.T) {
	s := startServer(t, order{Serve: true, Tokens: []string{"one", "two"}, Limit: "1000/10s", Dialect: "github", External: 0.3})
	require.Zero(t, s.report(t).ExternalAccepted)
	require.Eventually(t, func() bool {
		status, _ := s.get(t, "one")
		require.Equal(t, http.StatusOK, status)
		return s.report(t).ExternalAccepted >= 10
	}, 10*time.Second, 20*time.Millisecond)
	require.NotZero(t, s.report(t).Tokens[1].ExternalAccepted, "of each token")
}

func TestServerSaysWhatIsWrongWithItsOrders(t *testing.T) {
	err := serve(order{Limit: "many"}, json.NewDecoder(strings.NewReader("")), io.Discard)
	require.ErrorContains(t, err, `limit "many"`)
	err = serve(order{Limit: "1/1h", Dialect: "gopher"}, json.NewDecoder(strings.NewReader("")), io.Discard)
	require.ErrorContains(t, err, `no dialect is named "gopher"`)
	err = serve(order{Limit: "1/1h", Tokens: []string{"one"}}, json.NewDecoder(strings.NewReader(`{"Token":"three","Kind":"dead"}`)), io.Discard)
	require.ErrorContains(t, err, "unknown token")
	err = serve(order{Limit: "1/1h", Tokens: []string{"one"}}, json.NewDecoder(strings.NewReader(`{"For":"soon"}`)), io.Discard)
	require.ErrorContains(t, err, "cannot unmarshal")
}

// crawlFor runs one crawler against the server, and returns what it prints.
func crawlFor(t *testing.T, s *server, o order) (calls []int, h *report) {
	t.Helper()
	o.URL, o.Redis, o.Budget, o.Workers, o.Duration = s.first, redistest.Start(t).Addr, redistest.Name(t), 2, time.Second
	var out bytes.Buffer
	require.NoError(t, crawl(o, &out))
	printed := json.NewDecoder(&out)
	require.NoError(t, printed.Decode(&calls))
	h = new(report)
	require.NoError(t, printed.Decode(h))
	return calls, h
}

// A crawler attaches tokens as its preset does: by default that of its dialect.
func TestCrawlerCallsAsThePresetSays(t *testing.T) {
	o := order{Serve: true, Tokens: []string{"one", "two"}, Limit: "3/1h"}
	for _, row := range []struct{ speaks, dialect, provider string }{
		{"shopify", "shopify", ""}, {"shopify", "github", "shopify"}, {"ietf", "ietf", ""},
	} {
		o.Dialect = row.speaks
		s := startServer(t, o)
		o.Dialect, o.Provider = row.dialect, row.provider
		calls, counts := crawlFor(t, s, o)
		require.Equal(t, 6, calls[0]+calls[1])
		require.Equal(t, 6, s.report(t).Accepted)
		delete(counts.Events, ration.Paused.String()) // a window that a response says is spent
		delete(counts.Events, ration.QuotaSpent.String())
		require.Equal(t, newReport(), counts, "there is nothing else to report")
	}
	o.Provider = "shopfy"
	require.ErrorContains(t, crawl(o, io.Discard), "did you mean shopify?")
}

// One that attaches its token as no provider asked for is served nothing, and goes on.
func TestCrawlerOfAnUnknownProviderIsServedNothing(t *testing.T) {
	o := order{Serve: true, Tokens: []string{"one"}, Limit: "3/1h", Dialect: "shopify"}
	s := startServer(t, o)
	o.Dialect = ""
	calls, h := crawlFor(t, s, o)
	require.Zero(t, calls[0])
	require.Positive(t, h.Unserved)
	require.Empty(t, h.Quarantined)
}

// A crawler goes on after refusals, and reports them.
func TestCrawlerReportsRefusalsAndEvents(t *testing.T) {
	o := order{Serve: true, Tokens: []string{"one", "two"}, Limit: "10/1h", Dialect: "github"}
	s := startServer(t, o)
	blocks := json.NewEncoder(s.in)
	require.NoError(t, blocks.Encode(block{Token: "one", For: time.Hour, Kind: simulated.KindDead}))
	require.Eventually(t, func() bool {
		status, _ := s.get(t, "one")
		return status == http.StatusUnauthorized
	}, 10*time.Second, 100*time.Millisecond)
	dead := ration.NewToken("one").ID()

	o.Limit = "8/1h" // which is not what the provider says
	calls, h := crawlFor(t, s, o)
	require.Equal(t, 10, calls[0]+calls[1], "of the other token, and as many as the provider allows")
	require.Equal(t, map[string]provider.Reason{dead: provider.ReasonDeadToken}, h.Quarantined)
	require.Equal(t, 1, h.Events["TokenQuarantined"])
	require.Equal(t, 1, h.Events["LimitLearned"])
	require.Contains(t, h.LearnedLimits[ration.NewToken("two").AccountID()][0], "10/1h")
	require.Empty(t, h.Refused)

	require.NoError(t, blocks.Encode(block{Token: "two", For: time.Hour, Kind: simulated.KindQuota}))
	require.Eventually(t, func() bool {
		status, _ := s.get(t, "two")
		return status == http.StatusForbidden
	}, 10*time.Second, 100*time.Millisecond)
	calls, h = crawlFor(t, s, o)
	require.Zero(t, calls[0]+calls[1])
	require.Positive(t, h.Unserved)
	require.Positive(t, h.Refused[provider.ReasonQuota])
	require.Empty(t, h.Quarantined, "no other token was served")
}
