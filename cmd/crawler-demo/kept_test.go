package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSONIsKeptAsJSON(t *testing.T) {
	deep := strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999)
	bodies := map[string]struct{ contentType, body, json string }{
		"/object":  {"application/json; charset=utf-8", "{\n \"b\": 1.50, \"a\": \"<&\u2028\", \"a\": 12345678901234567890 }\n", "{\"b\":1.50,\"a\":\"<&\u2028\",\"a\":12345678901234567890}"},
		"/problem": {"application/problem+json", `"text"`, `"text"`},
		"/null":    {"application/json", "null", "null"},
		"/broken":  {"application/json", `{"a":`, ""},
		"/two":     {"application/json", `1],[2`, ""},
		"/empty":   {"application/json", "", ""},
		"/deep":    {"application/json", deep, ""},
		"/text":    {"text/plain", `{"a": 1}`, ""},
	}
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", bodies[r.URL.Path].contentType)
		_, _ = w.Write([]byte(bodies[r.URL.Path].body))
	})
	var urls strings.Builder
	for path := range bodies {
		urls.WriteString(base + path + "\n")
	}
	status, s, stderr := crawl(t, urls.String())
	require.Zero(t, status, stderr)
	kept := records(t, base, s.Out)
	for path, want := range bodies {
		if want.json != "" {
			require.Equal(t, want.json, string(kept[path].BodyJSON), path)
			require.Nil(t, kept[path].Body, path)
			continue
		}
		require.Nil(t, kept[path].BodyJSON, path)
		require.Equal(t, want.body, *kept[path].Body, path)
	}
	status, s, _ = crawl(t, urls.String())
	require.Zero(t, status)
	require.Equal(t, len(bodies), s.Earlier)
}

// Relative links of the page are relative to where the redirect led, in a later run too.
func TestFinalURLOfARedirectIsKept(t *testing.T) {
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/old":
			http.Redirect(w, r, "/deep/new?access_token=the%2ffirst-secret&page=1#top", http.StatusMovedPermanently)
		case "/deep/new":
			_, _ = w.Write([]byte(`{"next": "next"}`))
		}
	})
	status, s, stderr := crawl(t, base+"/old", "-auth", "query:access_token")
	require.Zero(t, status, stderr)
	require.Equal(t, base+"/deep/new?page=1", records(t, base, s.Out)["/old"].FinalURL)

	status, s, stderr = crawl(t, base+"/old", "-auth", "query:access_token", "-follow", "next")
	require.Zero(t, status, stderr)
	require.Equal(t, []int{1, 1}, []int{s.OK, s.Earlier})
	kept := records(t, base, s.Out)
	require.Contains(t, kept, "/deep/next")
	require.Empty(t, kept["/deep/next"].FinalURL)
}

// theSecret is kept nowhere, however the provider spells it.
func TestSpelledTokenIsNotKept(t *testing.T) {
	spelled := []string{`the%2ffirst-secret`, `the\/first-secret`, `the\u002ffirst-secret`, `the&#47;first-secret`, `the%252Ffirst-secret`}
	base, crawl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/json") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`["` + strings.Join(spelled, `","`) + `"]`))
			return
		}
		_, _ = w.Write([]byte(strings.Join(spelled, " ")))
	})
	status, s, stderr := crawl(t, base+"/json\n"+base+"/text\n")
	require.Zero(t, status, stderr)
	kept := records(t, base, s.Out)
	require.Equal(t, strings.TrimSpace(strings.Repeat(redacted+" ", 5)), *kept["/text"].Body)
	require.JSONEq(t, `["`+strings.Join([]string{redacted, redacted, redacted, redacted, redacted}, `","`)+`"]`, string(kept["/json"].BodyJSON))
}

func TestTokenFileHasCommentsAndBearers(t *testing.T) {
	secrets, err := readTokens("tokens", []byte("\xef\xbb\xbf# of the team\r\n\r\n  Bearer first#1\r\nbearer\tsecond  # of Ana\n\n#third\nfirst#1\nbearerless"))
	require.NoError(t, err)
	require.Equal(t, []string{"first#1", "second", "bearerless"}, secrets)
}
