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

	"github.com/ration-go/ration/internal/redistest"
	"github.com/ration-go/ration/internal/simulated"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// A server is a provider that was ordered.
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

func TestProviderSpeaksAndBlocksAsItIsOrdered(t *testing.T) {
	s := startServer(t, order{Serve: true, Tokens: []string{"one", "two"}, Limit: 1000, Window: time.Hour, Dialect: "github", SecondaryLimit: 2})
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
	}, 10*time.Second, time.Second, "it is blocked once the order has come")
	report := s.report(t)
	require.NotZero(t, report.Secondary)
	require.NotEmpty(t, report.Tokens[1].Blocked)
	require.Zero(t, report.StrangerAccepted+report.StrangerRefused)
}

// A stranger that is ordered calls as soon as the fleet does.
func TestProviderSpendsTheStrangersShare(t *testing.T) {
	s := startServer(t, order{Serve: true, Tokens: []string{"one", "two"}, Limit: 1000, Window: 10 * time.Second, Dialect: "github", Stranger: 0.3})
	require.Zero(t, s.report(t).StrangerAccepted)
	require.Eventually(t, func() bool {
		status, _ := s.get(t, "one")
		require.Equal(t, http.StatusOK, status)
		return s.report(t).StrangerAccepted >= 10
	}, 10*time.Second, 20*time.Millisecond)
	require.NotZero(t, s.report(t).Tokens[1].StrangerAccepted, "of each token")
}

func TestServerSaysWhatIsWrongWithItsOrders(t *testing.T) {
	err := serve(order{Dialect: "gopher"}, json.NewDecoder(strings.NewReader("")), io.Discard)
	require.ErrorContains(t, err, `no dialect is named "gopher"`)
	err = serve(order{Tokens: []string{"one"}}, json.NewDecoder(strings.NewReader(`{"Token":"three","Kind":"dead"}`)), io.Discard)
	require.ErrorContains(t, err, "not known")
	err = serve(order{Tokens: []string{"one"}}, json.NewDecoder(strings.NewReader(`{"For":"soon"}`)), io.Discard)
	require.ErrorContains(t, err, "cannot unmarshal")
}

// A crawler is known to a provider by what the preset attaches.
func TestCrawlerCallsAsThePresetSays(t *testing.T) {
	redis := redistest.Start(t)
	o := order{Serve: true, Tokens: []string{"one", "two"}, Limit: 3, Window: time.Hour, Dialect: "shopify"}
	s := startServer(t, o)
	o.URL, o.Redis, o.Budget, o.Workers, o.Duration = s.first, redis.Addr, redistest.Name(t), 2, time.Second
	require.ErrorContains(t, crawl(o, io.Discard), "401", "without it the token is not found")
	o.Budget = redistest.Name(t) + "-again"
	o.Provider = "shopify"
	var out bytes.Buffer
	require.NoError(t, crawl(o, &out))
	var calls []int
	require.NoError(t, json.Unmarshal(out.Bytes(), &calls))
	require.Equal(t, 6, calls[0]+calls[1])
	require.Equal(t, 6, s.report(t).Accepted)
	o.Provider = "shopfy"
	require.ErrorContains(t, crawl(o, io.Discard), "did you mean shopify?")
}
