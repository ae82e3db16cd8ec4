package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFollowing(t *testing.T) {
	base, err := url.Parse("https://api.example.com/v1/users/7?page=1")
	require.NoError(t, err)
	for _, row := range []struct {
		path, body string
		next, says string
	}{
		{"paging.next", `{"paging":{"next":"https://b/2"}}`, "https://b/2", ""},
		{"paging.next", `{"paging":{"next":"?page=2"}}`, "https://api.example.com/v1/users/7?page=2", ""},
		{"paging.next", `{"paging":{"next":"/v1/users/7?page=2"}}`, "https://api.example.com/v1/users/7?page=2", ""},
		{"paging.next", `{"paging":{"next":"//b.example.com/2"}}`, "https://b.example.com/2", ""},
		{"paging.next", `{"paging":{"next":"javascript:alert(1)"}}`, "", `the scheme "javascript"`},
		{"paging.next", `{"paging":{"next":"https://me:pw@b/2"}}`, "", "has a user or password in it"},
		{"paging.next", `{"paging":{"next":"https://a b/%zz"}}`, "", "malformed URL"},
		{"paging.next", `{"paging":{"next":null}}`, "", ""},
		{"paging.next", `{"paging":{"next":false}}`, "", ""},
		{"paging.next", `{"paging":{"next":""}}`, "", ""},
		{"paging.next", `{"paging":{}}`, "", ""},
		{"paging.next", `{"paging":"none"}`, "", ""},
		{"paging.next", `[]`, "", ""},
		{"paging.next", "", "", ""},
		{"paging.next", `{"paging":{"next":2}}`, "", "-follow paging.next finds no string there"},
		{"paging.next", `<html>`, "", "the body is not JSON"},
		{"links.1.href", `{"links":[{"href":"/0"},{"href":"/1"}]}`, "https://api.example.com/1", ""},
		{"links.2.href", `{"links":[{"href":"/0"},{"href":"/1"}]}`, "", ""},
		{"links.-1.href", `{"links":[{"href":"/0"}]}`, "", ""},
		{"next", ` {"next" : "/\u0032" } `, "https://api.example.com/2", ""},
	} {
		t.Run(row.path+row.body, func(t *testing.T) {
			f, err := parseFollower(row.path)
			require.NoError(t, err)
			next, err := f.next(base, []byte(row.body))
			require.Equal(t, row.next, next)
			if row.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.says)
			}
		})
	}
	for _, flag := range []string{"", "a..b", ".a", "a."} {
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
