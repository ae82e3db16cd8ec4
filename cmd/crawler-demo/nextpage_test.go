package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNextLink(t *testing.T) {
	for _, row := range []struct {
		name   string
		values []string
		next   string
	}{
		{"none", nil, ""},
		{"empty", []string{""}, ""},
		{"quoted", []string{`<https://a/2>; rel="next"`}, "https://a/2"},
		{"bare", []string{`<https://a/2>;rel=next`}, "https://a/2"},
		{"among others", []string{`<https://a/0>; rel="prev", <https://a/2>; rel="next", <https://a/9>; rel="last"`}, "https://a/2"},
		{"in a second header", []string{`<https://a/0>; rel=prev`, `<https://a/2>; rel=next`}, "https://a/2"},
		{"several relations", []string{`<https://a/2>; rel="last NEXT"`}, "https://a/2"},
		{"other case and spaces", []string{" \t< https://a/2 > ; title=x ;\tREL = \"Next\""}, "https://a/2"},
		{"a comma and a semicolon in the target", []string{`<https://a/2?x=1,2;y=3>; rel=next`}, "https://a/2?x=1,2;y=3"},
		{"a comma, a link and a quote in a parameter", []string{`<https://a/1>; title="a, \"b\"; <https://b>; rel=next", <https://a/2>; rel=next`}, "https://a/2"},
		{"parameters without a value", []string{`<https://a/2>; async; ; rel=next;`}, "https://a/2"},
		{"extended parameter", []string{`<https://a/2>; title*=UTF-8''n%c3%a4chste; rel="next"`}, "https://a/2"},
		{"empty elements", []string{`, ,<https://a/2>; rel=next,,`}, "https://a/2"},
		{"only the first rel counts", []string{`<https://a/2>; rel=prev; rel=next`}, ""},
		{"of something else", []string{`<https://a/2>; rel=next; anchor="#part"`}, ""},
		{"part of a word", []string{`<https://a/2>; rel="next-archive nextpage"`}, ""},
		{"empty target", []string{`<>; rel=next`}, ""},
		{"no brackets", []string{`https://a/2; rel=next`}, ""},
		{"never closed", []string{`<https://a/2; rel=next`}, ""},
		{"quote never closed", []string{`<https://a/2>; rel="next`}, ""},
		{"rubbish before", []string{`nonsense, <https://a/2>; rel=next`}, ""},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.next, nextLink(row.values)) })
	}
}

func FuzzParseLinks(f *testing.F) {
	f.Add(`<https://a/2?x=1,2>; rel="next"; title="a, \"b\"", <b>`)
	f.Fuzz(func(t *testing.T, value string) {
		for _, l := range parseLinks([]string{value}) {
			require.Contains(t, value, l.target)
			require.NotContains(t, l.target, ">")
		}
	})
}

func TestFollowing(t *testing.T) {
	base, err := url.Parse("https://api.example.com/v1/users/7?page=1")
	require.NoError(t, err)
	for _, row := range []struct {
		flag, link, body string
		next, says       string
	}{
		{"link", `</v1/users/7?page=2>; rel=next`, "", "https://api.example.com/v1/users/7?page=2", ""},
		{"link", `<?page=2>; rel=next`, "", "https://api.example.com/v1/users/7?page=2", ""},
		{"link", `<//b.example.com/2>; rel=next`, "", "https://b.example.com/2", ""},
		{"link", "", `{"next":"/2"}`, "", ""},
		{"link", `<javascript:alert(1)>; rel=next`, "", "", `the scheme "javascript"`},
		{"link", `<https://me:pw@b/2>; rel=next`, "", "", "has a user or password in it"},
		{"link", `<https://a b/%zz>; rel=next`, "", "", "malformed URL"},
		{"json:paging.next", "", `{"paging":{"next":"https://b/2"}}`, "https://b/2", ""},
		{"json:paging.next", "", `{"paging":{"next":"?page=2"}}`, "https://api.example.com/v1/users/7?page=2", ""},
		{"json:paging.next", "", `{"paging":{"next":null}}`, "", ""},
		{"json:paging.next", "", `{"paging":{"next":false}}`, "", ""},
		{"json:paging.next", "", `{"paging":{"next":""}}`, "", ""},
		{"json:paging.next", "", `{"paging":{}}`, "", ""},
		{"json:paging.next", "", `{"paging":"none"}`, "", ""},
		{"json:paging.next", "", `[]`, "", ""},
		{"json:paging.next", "", "", "", ""},
		{"json:paging.next", "", `{"paging":{"next":2}}`, "", "-follow json:paging.next finds no string there"},
		{"json:paging.next", "", `<html>`, "", "the body is not JSON"},
		{"json:links.1.href", "", `{"links":[{"href":"/0"},{"href":"/1"}]}`, "https://api.example.com/1", ""},
		{"json:links.2.href", "", `{"links":[{"href":"/0"},{"href":"/1"}]}`, "", ""},
		{"json:links.-1.href", "", `{"links":[{"href":"/0"}]}`, "", ""},
		{"json:next", "", ` {"next" : "/\u0032" } `, "https://api.example.com/2", ""},
	} {
		t.Run(row.flag+row.link+row.body, func(t *testing.T) {
			f, err := parseFollower(row.flag)
			require.NoError(t, err)
			next, err := f.next(base, []string{row.link}, []byte(row.body))
			require.Equal(t, row.next, next)
			if row.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.says)
			}
		})
	}
	for _, flag := range []string{"", "json", "json:", "json:a..b", "json:.a", "header", "link:x"} {
		_, err := parseFollower(flag)
		require.Error(t, err, flag)
	}
}

func TestRedactor(t *testing.T) {
	const secret = `s3/cr"t+`
	c := newRedactor(auth{Kind: "query", Name: "key"}, []string{secret, "x"})
	require.Equal(t, `{"a":"[token]","b":"[token]","c":"?k=[token]&d=[token]"}`,
		c.text(`{"a":"s3/cr\"t+","b":"s3/cr"t+","c":"?k=s3%2Fcr%22t%2B&d=s3%2Fcr%22t+"}`))
	require.Equal(t, "xx", c.text("xx"), "too short to be looked for")
	for _, row := range []struct{ given, kept string }{
		{"https://a/b", "https://a/b"},
		{"https://a/b?c=%20&d", "https://a/b?c=%20&d"},
		{"https://a/b?key=anything&c=%20", "https://a/b?c=%20"},
		{"https://a/b?c=1&%6bey=2#top", "https://a/b?c=1"},
		{"https://a/b?other=s3%2Fcr%22t%2B&c", "https://a/b?c"},
		{"https://a/b?other=%5Btoken%5D", "https://a/b"},
		{"https://a/b#", "https://a/b"},
		{"https://a/s3%2Fcr%22t%2B/b", ""},
	} {
		u, err := url.Parse(row.given)
		require.NoError(t, err)
		kept, err := c.url(row.given, u)
		require.Equal(t, row.kept, strings.TrimSuffix(kept, "?"), row.given)
		require.Equal(t, row.kept == "", err != nil, row.given)
	}
}
