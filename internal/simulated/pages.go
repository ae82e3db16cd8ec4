package simulated

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// page is a part of one user's media, in the style of the request.
type page struct {
	user     int // from 1
	from, to int // media of the user, newest first; to is past the last
	last     bool
	graph    bool
	size     int // the size that the caller asked for, which the next URL repeats; zero: none
}

// Calls returns how many calls fetch everything: the pages of all users, at the default size of a page.
func (p *Provider) Calls() int { return p.users() * p.pagesPerUser() }

// StartURLs returns the URLs of the first pages of all users, in the Graph style, at a base such as
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
	if r.Method != http.MethodGet {
		return page{}, false
	}
	var id, size, cursor string
	query := r.URL.Query()
	switch part := strings.Split(r.URL.Path, "/"); {
	case len(part) == 3 && part[2] == "media":
		wanted.graph = true
		id, size = part[1], query.Get("limit")
		after, err := base64.RawURLEncoding.DecodeString(query.Get("after"))
		if err != nil {
			return page{}, false
		}
		cursor = string(after)
	case len(part) == 6 && part[1] == "v1" && part[2] == "users" && part[4] == "media" && part[5] == "recent":
		id, size, cursor = part[3], query.Get("count"), query.Get("max_id")
	default:
		return page{}, false
	}

	var known bool
	if wanted.user, known = userOf(id); !known || wanted.user > p.users() {
		return page{}, false
	}
	all := p.pagesPerUser() * p.pageSize()
	if cursor != "" {
		n, ok := mediumOf(wanted.user, cursor)
		if !ok || n >= all {
			return page{}, false
		}
		wanted.from = n + 1
	}
	if n, err := strconv.Atoi(size); err == nil && 0 < n && n < p.pageSize() {
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
	sizeName, cursorName, cursor := "count", "max_id", after
	if pg.graph {
		sizeName, cursorName, cursor = "limit", "after", encode([]byte(after))
	}
	query := url.Values{cursorName: {cursor}}
	if pg.size > 0 {
		query.Set(sizeName, strconv.Itoa(pg.size))
	}
	next.RawQuery = query.Encode()
	nextURL := next.String()
	if pg.last {
		nextURL, cursor = "", ""
	} else {
		w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, nextURL))
	}

	if !pg.graph {
		answer(w, http.StatusOK, legacyPage{
			Pagination: pagination{NextURL: nextURL, NextMaxID: cursor},
			Data:       data,
			Meta:       meta{Code: http.StatusOK},
		})
		return
	}
	answer(w, http.StatusOK, graphPage{
		Data: data,
		Paging: paging{
			Cursors: cursors{Before: encode([]byte(before)), After: encode([]byte(after))},
			Next:    nextURL,
		},
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

type legacyPage struct {
	Pagination pagination `json:"pagination"`
	Data       []medium   `json:"data"`
	Meta       meta       `json:"meta"`
}

// pagination is empty on the last page.
type pagination struct {
	NextURL   string `json:"next_url,omitempty"`
	NextMaxID string `json:"next_max_id,omitempty"`
}
