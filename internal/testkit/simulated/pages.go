package simulated

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// page is a part of one user's media.
type page struct {
	user     int // from 1
	from, to int // media of the user, newest first; to is past the last
	last     bool
	size     int // the size that the caller asked for, which the next URL repeats; zero: none
}

// Calls returns how many calls fetch everything: the pages of all users, at the default size of a page.
func (p *Provider) Calls() int { return p.users() * p.pagesPerUser() }

// StartURLs returns the URLs of the first pages of all users, at a base such as
// "http://127.0.0.1:8080".
func (p *Provider) StartURLs(base string) []string {
	urls := make([]string, p.users())
	for i := range urls {
		urls[i] = fmt.Sprintf("%s/%d/media", strings.TrimRight(base, "/"), userID(i+1))
	}
	return urls
}

// find returns the page that the call asks for, if it exists.
func (p *Provider) find(r *http.Request) (wanted page, found bool) {
	part, query := strings.Split(r.URL.Path, "/"), r.URL.Query()
	if r.Method != http.MethodGet || len(part) != 3 || part[2] != "media" {
		return page{}, false
	}
	cursor, err := base64.RawURLEncoding.DecodeString(query.Get("after"))
	if err != nil {
		return page{}, false
	}
	var known bool
	if wanted.user, known = userOf(part[1]); !known || wanted.user > p.users() {
		return page{}, false
	}
	all := p.pagesPerUser() * p.pageSize()
	if len(cursor) > 0 {
		n, ok := mediumOf(wanted.user, string(cursor))
		if !ok || n >= all {
			return page{}, false
		}
		wanted.from = n + 1
	}
	if n, err := strconv.Atoi(query.Get("limit")); err == nil && 0 < n && n < p.pageSize() {
		wanted.size = n
	}
	wanted.to = min(wanted.from+positiveOr(wanted.size, p.pageSize()), all)
	wanted.last = wanted.to == all
	return wanted, true
}

// serve writes the page. The URL of the next one never contains the caller's query, so no access token can get into
// it.
func (pg page) serve(w http.ResponseWriter, r *http.Request) {
	data := make([]medium, 0, pg.to-pg.from)
	for n := pg.from; n < pg.to; n++ {
		data = append(data, mediumAt(pg.user, n))
	}
	var before, after string // IDs of the first and the last
	if len(data) > 0 {
		before, after = data[0].ID, data[len(data)-1].ID
	}
	encode := base64.RawURLEncoding.EncodeToString

	next := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path}
	if r.TLS != nil {
		next.Scheme = "https"
	}
	cursor := encode([]byte(after))
	query := url.Values{"after": {cursor}}
	if pg.size > 0 {
		query.Set("limit", strconv.Itoa(pg.size))
	}
	next.RawQuery = query.Encode()
	nextURL := next.String()
	if pg.last {
		nextURL = ""
	} else {
		w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, nextURL))
	}
	answer(w, http.StatusOK, graphPage{
		Data:   data,
		Paging: paging{Cursors: cursors{Before: encode([]byte(before)), After: cursor}, Next: nextURL},
	})
}

type graphPage struct {
	Data   []medium `json:"data"`
	Paging paging   `json:"paging"`
}

type paging struct {
	Cursors cursors `json:"cursors"`
	Next    string  `json:"next,omitempty"` // absent on the last page
}

type cursors struct {
	Before string `json:"before"`
	After  string `json:"after"`
}
