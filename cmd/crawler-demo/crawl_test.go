package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/simulated"
)

// A crawlFunc crawls the URLs with one token and a plentiful limit.
type crawlFunc func(t *testing.T, urls string, more ...string) (status int, s summary, stderr string)

// serve starts a server for one test, and returns its address and a function that
// crawls. The server closes each connection with its response: in a synctest bubble a
// connection that is kept open would keep the clock from going on.
func serve(t *testing.T, handler http.HandlerFunc) (base string, crawl crawlFunc) {
	t.Helper()
	server := httptest.NewServer(handler)
	server.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tokens"), theSecret)
	out := filepath.Join(dir, "out.jsonl")
	return server.URL, func(t *testing.T, urls string, more ...string) (int, summary, string) {
		t.Helper()
		args := append([]string{"-urls", "-", "-tokens", filepath.Join(dir, "tokens"), "-limit", "5000/1h", "-out", out, "-json"}, more...)
		status, stdout, stderr := run(t, &app{stdin: strings.NewReader(urls)}, args...)
		require.NotContains(t, stdout+stderr, theSecret)
		s := parseSummary(t, stdout)
		return status, s, stderr
	}
}

const theSecret = "the/first-secret"

// records reads what was kept, by path and query.
func records(t *testing.T, base, out string) map[string]record {
	t.Helper()
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NotContains(t, string(data), theSecret)
	require.NotContains(t, string(data), "the%2Ffirst-secret")
	all := make(map[string]record)
	for line := range strings.Lines(string(data)) {
		r, ours := parseRecord([]byte(line))
		require.True(t, ours, line)
		require.NotContains(t, all, strings.TrimPrefix(r.URL, base))
		all[strings.TrimPrefix(r.URL, base)] = r
	}
	return all
}

func TestOnlyAnswersForGoodAreKept(t *testing.T) {
	var mu sync.Mutex
	asked := make(map[string]int)
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		mu.Unlock()
		switch status, err := strconv.Atoi(r.URL.Path[1:]); {
		case r.URL.Path == "/broken":
			panic(http.ErrAbortHandler)
		case err != nil:
			_, _ = w.Write([]byte("\xff\x00 not text"))
		default:
			w.WriteHeader(status)
			_, _ = w.Write([]byte("Grüße\n"))
		}
	})
	var urls strings.Builder
	for _, path := range []string{"200", "204", "404", "410", "400", "401", "403", "408", "500", "503", "broken", "binary"} {
		fmt.Fprintln(&urls, base+"/"+path)
	}
	synctest.Test(t, func(t *testing.T) { // failures are retried after some seconds
		status, s, stderr := crawl(t, urls.String())
		require.Equal(t, exitNotDone, status)
		require.Equal(t, []int{5, 7, 0}, []int{s.OK, s.Failed, s.Left})
		require.Equal(t, map[int]int{200: 2, 204: 1, 404: 1, 410: 1}, s.Statuses)
		require.Contains(t, stderr, base+"/500: the provider answered 500 Internal Server Error: Grüße\n")
		require.Contains(t, stderr, base+"/broken: EOF\n")
		require.Contains(t, s.Verdict, "NOT DONE: 5 URLs fetched, 0 refused, 7 failed; run the same command again")

		kept := records(t, base, s.Out)
		require.Len(t, kept, 5)
		require.Equal(t, 404, kept["/404"].Status)
		require.Equal(t, "Grüße\n", *kept["/404"].Body)
		require.Equal(t, "", *kept["/204"].Body)
		require.Nil(t, kept["/binary"].Body)
		require.Equal(t, "\xff\x00 not text", string(kept["/binary"].BodyBase64))
		r := kept["/200"]
		require.Equal(t, s.Tokens[0].Token, r.Token)
		var instants []time.Time
		for _, text := range []string{r.Slot, r.Sent, r.Received} {
			at, err := time.Parse(instantLayout, text)
			require.NoError(t, err)
			instants = append(instants, at)
		}
		require.False(t, instants[1].Before(instants[0]))
		require.False(t, instants[2].Before(instants[1]))

		_, s, _ = crawl(t, urls.String())
		require.Equal(t, []int{0, 7, 5}, []int{s.OK, s.Failed, s.Earlier})
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 1, asked["/200"], "what is kept is not fetched again")
		require.Equal(t, 8, asked["/500"], "each run tries it again three times")
		require.Equal(t, 2, asked["/403"], "what may be about the token is")
	})
}

func TestRefusedCallIsSentAgainAndReported(t *testing.T) {
	s := newSite(t, &simulated.Provider{Users: 2, PagesPerUser: 2, RefuseFirst: 1, RefuseFirstFor: time.Second})
	status, stdout, stderr := run(t, new(app), s.args("-limit", "5000/1h", "-json")...)
	require.Zero(t, status, "all was fetched")
	got := parseSummary(t, stdout)
	require.Equal(t, []int{5, 4, 1, 0}, []int{got.Requests, got.OK, got.Refused, got.Failed})
	require.Equal(t, 1, got.Tokens[0].Refused+got.Tokens[1].Refused)
	require.Contains(t, got.Verdict, "DONE: 4 URLs fetched, 1 refused")
	require.Contains(t, stderr, "1 refused")
	s.requireWhole(t)
}

func TestMaxStopsAndTheNextRunGoesOn(t *testing.T) {
	s := newSite(t, &simulated.Provider{Users: 5, PagesPerUser: 4})
	for i, rest := range []int{13, 6, 0} {
		status, stdout, stderr := run(t, new(app), s.args("-limit", "5000/1h", "-json", "-max", "7")...)
		require.Zero(t, status, stderr)
		got := parseSummary(t, stdout)
		require.Equal(t, 20-rest, got.OK+got.Earlier)
		require.Equal(t, min(7, 20-7*i), got.OK)
		require.Equal(t, got.OK, got.Requests)
	}
	s.requireWhole(t)
}

// The provider repeats the token in what it answers, as Instagram's does.
func TestQueryTokenIsNowhere(t *testing.T) {
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("access_token") != theSecret || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		answer := map[string]any{"you": r.URL.String()}
		if page < 2 {
			answer["next"] = fmt.Sprintf("?page=%d&access_token=%s&z=%%20", page+1, "the%2Ffirst-secret")
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	status, s, stderr := crawl(t, base+"/me?access_token=stale&a=b#top\n", "-auth", "query:access_token", "-follow", "next")
	require.Zero(t, status, stderr)
	kept := records(t, base, s.Out)
	require.Len(t, kept, 3)
	require.Equal(t, base+"/me?page=1&z=%20", *kept["/me?a=b"].Next)
	require.Equal(t, base+"/me?page=2&z=%20", *kept["/me?page=1&z=%20"].Next)
	require.Equal(t, "", *kept["/me?page=2&z=%20"].Next)
	require.Contains(t, *kept["/me?a=b"].Body, "access_token="+redacted)

	status, s, _ = crawl(t, base+"/me?a=b\n", "-auth", "query:access_token", "-follow", "next")
	require.Zero(t, status)
	require.Equal(t, []int{0, 3}, []int{s.OK, s.Earlier})
}

// A crawl that did not follow is gone over again by one that does.
func TestFollowingCanBeAskedForLater(t *testing.T) {
	s := newSite(t, &simulated.Provider{Users: 3, PagesPerUser: 3})
	plain := []string{"-urls", s.urls, "-tokens", s.tokens, "-limit", "5000/1h", "-out", s.out}
	status, stdout, stderr := run(t, new(app), plain...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "DONE: 3 URLs fetched")
	status, stdout, stderr = run(t, new(app), append(plain, "-follow", "paging.next")...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "DONE: 6 URLs fetched, 0 refused, 3 fetched before")
	s.requireWhole(t)
}

func TestTokenStaysOnTheHostsOfTheList(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path+r.Header.Get("Authorization"))
	}))
	defer other.Close()
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, other.URL+"/redirected", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(`{"next": "` + other.URL + `/next"}`))
	})
	status, s, stderr := crawl(t, base+"/a\n"+base+"/redirect\n", "-follow", "next")
	require.Equal(t, exitNotDone, status)
	require.Contains(t, stderr, base+"/a leads to "+other.URL+"/next: not fetched, because the tokens are for the hosts of the list only")
	require.Equal(t, []int{2, 1}, []int{s.OK, s.Failed})
	require.Equal(t, []string{"/redirected"}, seen)

	status, s, _ = crawl(t, base+"/a\n"+base+"/redirect\n", "-follow", "next")
	require.Equal(t, exitNotDone, status, "it is still missing")
	require.Equal(t, []int{0, 1, 2}, []int{s.OK, s.Failed, s.Earlier})
}

func TestCallsOfARedirectAreCounted(t *testing.T) {
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
		}
	})
	status, s, stderr := crawl(t, base+"/old")
	require.Zero(t, status, stderr)
	require.Equal(t, []int{1, 2}, []int{s.OK, s.Requests})
	require.Contains(t, records(t, base, s.Out), "/old")
}

func TestUnreachableProviderSpendsNothing(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	_, crawl := serve(t, nil)
	synctest.Test(t, func(t *testing.T) {
		status, s, stderr := crawl(t, server.URL+"/a\n"+server.URL+"/b\n")
		require.Equal(t, exitNotDone, status)
		require.Equal(t, []int{0, 2}, []int{s.Requests, s.Failed})
		require.Contains(t, stderr, server.URL+"/a: dial tcp")
		info, err := os.Stat(s.Out)
		require.NoError(t, err)
		require.Zero(t, info.Size())
	})
}
