package simulated

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// crawl follows next from each URL until it is empty, and returns the answers of every page.
func crawl(t *testing.T, p *Provider, urls []string, next func(*httptest.ResponseRecorder) string) (pages []*httptest.ResponseRecorder) {
	t.Helper()
	for _, url := range urls {
		for url != "" {
			w := call(p, url, "secret")
			require.Equal(t, 200, w.Code, url)
			pages = append(pages, w)
			url = next(w)
		}
	}
	return pages
}

func media(t *testing.T, pages []*httptest.ResponseRecorder) (all []medium) {
	t.Helper()
	for _, w := range pages {
		var body graphPage
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		require.NotEmpty(t, body.Data)
		all = append(all, body.Data...)
	}
	return all
}

func byLink(w *httptest.ResponseRecorder) string {
	url, _ := strings.CutPrefix(w.Header().Get("Link"), "<")
	url, _ = strings.CutSuffix(url, `>; rel="next"`)
	return url
}

func byPaging(w *httptest.ResponseRecorder) string {
	var body graphPage
	_ = json.Unmarshal(w.Body.Bytes(), &body)
	return body.Paging.Next
}

func TestEveryWayOfFollowingFindsTheSameMedia(t *testing.T) {
	p := &Provider{Users: 3, PagesPerUser: 4, PageSize: 5}
	require.Equal(t, 12, p.Calls())
	graph := p.StartURLs("http://example.com/")
	require.Equal(t, firstPage, graph[0])
	require.Len(t, graph, 3)
	var small, big []string
	for _, url := range graph {
		small = append(small, url+"?limit=2")
		big = append(big, url+"?limit=1000")
	}

	all := media(t, crawl(t, p, graph, byPaging))
	require.Len(t, all, 60)
	seen := make(map[string]bool)
	for _, m := range all {
		require.False(t, seen[m.ID], m.ID)
		seen[m.ID] = true
		require.NotEmpty(t, m.Caption)
	}
	for _, way := range []struct {
		name  string
		urls  []string
		next  func(*httptest.ResponseRecorder) string
		calls int
	}{
		{"json:paging.next", graph, byPaging, 12},
		{"Link", graph, byLink, 12},
		{"limit=2", small, byPaging, 30},
		{"limit=1000", big, byPaging, 12},
	} {
		pages := crawl(t, p, way.urls, way.next)
		require.Len(t, pages, way.calls, way.name)
		require.Equal(t, all, media(t, pages), way.name)
	}
	require.Equal(t, all, media(t, crawl(t, &Provider{Users: 3, PagesPerUser: 4, PageSize: 5}, graph, byPaging)),
		"another provider has the same")
}

func TestPageLooksLikeInstagrams(t *testing.T) {
	p := &Provider{PagesPerUser: 2, PageSize: 1}
	require.Equal(t, `{"data":[{"id":"17900001000000000","caption":"A cat in a box, Ghent","media_type":"CAROUSEL_ALBUM",`+
		`"permalink":"https://www.instagram.com/p/AD-X9MEVigA/","timestamp":"2026-01-15T11:59:00+0000","like_count":118}],`+
		`"paging":{"cursors":{"before":"MTc5MDAwMDEwMDAwMDAwMDA","after":"MTc5MDAwMDEwMDAwMDAwMDA"},`+
		`"next":"http://example.com/17841400000000001/media?after=MTc5MDAwMDEwMDAwMDAwMDA&limit=1"}}`+"\n",
		call(&Provider{PagesPerUser: 2, PageSize: 2}, firstPage+"?limit=1", "secret").Body.String())

	last := call(p, firstPage+"?after=MTc5MDAwMDEwMDAwMDAwMDA", "secret")
	require.Contains(t, last.Body.String(), `{"data":[{"id":"17900001000000001",`)
	require.NotContains(t, last.Body.String(), `"next"`)
	require.Empty(t, last.Header().Get("Link"))
}

func TestWhatIsNotThereCostsACall(t *testing.T) {
	p := &Provider{Users: 2, Limit: 100}
	for i, url := range []string{
		"/", "/media", "/17841400000000003/media", "/17841400000000000/media", "/me/media",
		"/17841400000000001/media/", "/17841400000000001/media?after=!", "/17841400000000001/media?after=MTIz",
		"/17841400000000001/media?after=MTc5MDAwMDIwMDAwMDAwMDA", "/17841400000000001/media?after=MTc5MDAwMDEwMDAwMDA1MDA",
		"/17841400000000001/feed", "/17841400000000001/media/recent",
	} {
		w := call(p, "http://example.com"+url, "secret")
		require.Equal(t, 404, w.Code, url)
		require.Contains(t, w.Body.String(), `"error_type":"APINotFoundError"`)
		require.Equal(t, fmt.Sprint(100-i-1), w.Header().Get("X-Ratelimit-Remaining"))
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, firstPage+"?access_token=secret", nil))
	require.Equal(t, 404, w.Code)
	require.Equal(t, 13, p.Report().NotFound)
	require.Equal(t, 13, p.Report().Accepted)
}

func TestTokenIsInNoAnswer(t *testing.T) {
	const secret = "IGQVJsecret"
	p := &Provider{Users: 1, Limit: 4, Tokens: []string{secret}}
	for _, url := range []string{
		firstPage + "?limit=5&access_token=" + secret,
		firstPage + "?limit=5&after=MTc5MDAwMDEwMDAwMDAwMDA&access_token=" + secret,
		firstPage + "?limit=" + secret + "&other=" + secret + "&access_token=" + secret,
		"http://example.com/" + secret + "?access_token=" + secret,
		firstPage + "?access_token=" + secret,
		firstPage + "?access_token=not" + secret,
		"http://example.com" + ReportPath,
	} {
		w := call(p, url, "")
		require.NotContains(t, w.Body.String()+fmt.Sprint(w.Header()), secret, url)
	}
	require.Equal(t, []int{4, 1, 1}, []int{p.Report().Accepted, p.Report().Refused, p.Report().Unauthorised})
}

func TestOverTheWire(t *testing.T) {
	p := &Provider{Users: 2, PagesPerUser: 2, Limit: 3, Tokens: []string{"secret"}}
	server := httptest.NewServer(p)
	defer server.Close()
	get := func(url string) (*http.Response, graphPage) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "bearer secret")
		response, err := server.Client().Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		var body graphPage
		require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
		return response, body
	}

	_, first := get(p.StartURLs(server.URL)[0])
	require.True(t, strings.HasPrefix(first.Paging.Next, server.URL), first.Paging.Next)
	response, second := get(first.Paging.Next)
	require.Equal(t, "1", response.Header.Get("X-Ratelimit-Remaining"))
	require.Empty(t, second.Paging.Next)
	require.NotEqual(t, first.Data[0], second.Data[0])
	get(p.StartURLs(server.URL)[1])
	response, _ = get(p.StartURLs(server.URL)[1])
	require.Equal(t, 429, response.StatusCode)

	response, err := http.Get(server.URL + ReportPath)
	require.NoError(t, err)
	defer response.Body.Close()
	var report Report
	require.NoError(t, json.NewDecoder(response.Body).Decode(&report))
	require.Equal(t, 3, report.Accepted)
	require.Equal(t, 1, report.Refused)
	require.Equal(t, "token 1", report.Tokens[0].Alias)
	require.Equal(t, 3, p.Report().Accepted, "the report costs nothing")
}
