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
			next, err := f.next(base, nil, []byte(row.body))
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

func TestFollowingLinks(t *testing.T) {
	base, err := url.Parse("https://api.example.com/v1/users?page=1")
	require.NoError(t, err)
	const next = "https://api.example.com/2"
	for _, row := range []struct {
		lines      []string
		next, says string
	}{
		{[]string{`<https://api.example.com/2>; rel="next", <https://api.example.com/9>; rel="last"`}, next, ""},
		{[]string{`<https://api.example.com/0>; rel="prev"`, `</2>; rel="next"`}, next, ""},
		{[]string{`garbage, </2>; rel="next"`}, next, ""},
		{[]string{`</2>; rel=next last`}, next, ""},
		{[]string{`</2>;rel=next`}, next, ""},
		{[]string{`</2> ; REL = "Next"`}, next, ""},
		{[]string{`</2>; rel='next'`}, next, ""},
		{[]string{`</2>; rel="last next"; title="a, b; c"`}, next, ""},
		{[]string{`</2>; title="a \"quoted\", comma"; rel="next"`}, next, ""},
		{[]string{`</a,b;c?d=<1>; rel="next"`}, "https://api.example.com/a,b;c?d=<1", ""},
		{[]string{`/2; rel="next"`}, next, ""},
		{[]string{`</2>; results="true"; cursor="0:100:0"; rel="next"`}, next, ""},
		{[]string{`</2>; rel=next,</9>; rel=last`}, next, ""},
		{[]string{`, ,</2>; rel="next"`}, next, ""},
		{[]string{`</2>;; rel="next";`}, next, ""},
		{[]string{`</2>; rel="prev"; rel="next"`}, "", "none could be read"},
		{[]string{`</2>; rel="next"; anchor="#a"`}, "", "none could be read"},
		{[]string{`next: /2`}, "", "none could be read"},
		{[]string{`</9>; rel="last"`}, "", ""},
		{[]string{`</_next/static/a.css>; rel=preload; as=style`}, "", ""},
		{[]string{`</a?after=next12>; rel="first"`}, "", ""},
		{[]string{`</2>; title="C:\\"; rel="next"`}, next, ""},
		{[]string{`</0>; rel="previous"; results="true", </2>; rel="next"; results="false"; cursor="0:100:0"`}, "", ""},
		{[]string{strings.Repeat("<", 1<<20)}, "", ""},
		{[]string{`</_next/static/a.css>; rel=preload; as=style`}, "", ""},
		{[]string{`</a?after=next12>; rel="first"`}, "", ""},
		{[]string{`</2>; title="C:\\"; rel="next"`}, next, ""},
		{[]string{`</3>; rel="previous"; results="true", </2>; rel="next"; results="false"; cursor="0:100:0"`}, "", ""},
		{[]string{strings.Repeat("<", 1<<20)}, "", ""},
		{nil, "", ""},
	} {
		got, err := follower{"Link"}.next(base, row.lines, []byte("no JSON"))
		require.Equal(t, row.next, got, "%q", row.lines)
		if row.says == "" {
			require.NoError(t, err, "%q", row.lines)
		} else {
			require.ErrorContains(t, err, row.says, "%q", row.lines)
		}
	}
}

func TestTokensAsPeopleKeepThem(t *testing.T) {
	for _, row := range []struct {
		file string
		want []string
		says string
	}{
		{`"ghp_x"`, []string{"ghp_x"}, ""},
		{`'ghp_x'`, []string{"ghp_x"}, ""},
		{"GITHUB_TOKEN=ghp_x\nexport OTHER_TOKEN=\"ghp_y\" # of Ana\n", []string{"ghp_x", "ghp_y"}, ""},
		{"ghp_x,ghp_y, ghp_z,", []string{"ghp_x", "ghp_y", "ghp_z"}, ""},
		{`TOKENS="ghp_x","ghp_y"`, []string{"ghp_x", "ghp_y"}, ""},
		{"QUJDRA==\nQUJDRQ=", []string{"QUJDRA==", "QUJDRQ="}, ""},
		{`["ghp_x", "ghp_y", "ghp_x"]`, []string{"ghp_x", "ghp_y"}, ""},
		{"DB_PASSWORD=ghp_x", nil, "line 1 sets DB_PASSWORD, which is no token by its name"},
		{`{"access_token": "ghp_x", "refresh_token": "ghp_y", "scope": "read"}`, []string{"ghp_x"}, ""},
		{`{"ana": "ghp_x", "otto": "Bearer ghp_y"}`, []string{"ghp_x", "ghp_y"}, ""},
		{`[{"name": "ana", "token": "ghp_x"}]`, []string{"ghp_x"}, ""},
		{"ghp_x\n\"ghp_y", nil, "line 2 is not a token: it has a quote that does not end"},
		{"[\n\"ghp_x\"", nil, "line 2 is no JSON"},
		{`[5]`, nil, "entry 1 has no secret"},
		{`[]`, nil, "has no token in it"},
		{"name: ghp_x", nil, "line 1 is not a token: it has a space"},
	} {
		got, err := readTokens("tokens", []byte(row.file))
		require.Equal(t, row.want, got, row.file)
		if row.says == "" {
			require.NoError(t, err, row.file)
		} else {
			require.ErrorContains(t, err, row.says, row.file)
			require.NotContains(t, err.Error(), "ghp_", row.file)
		}
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
