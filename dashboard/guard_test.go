package dashboard_test

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/dashboard"
	"github.com/ration-go/ration/store"
)

// addresses are one of each kind, as page, JSON and stream.
var addresses = []string{"/", "/b/api", "/b/api/a/x", "/b/api/do/pause", "/b/api/do/resume", "/assets/live.js", "/assets/style.css", "/metrics", "/nowhere"}

var accepts = []string{"text/html", "application/json", "text/event-stream"}

// everywhere calls a function with a GET and a POST of every address.
func everywhere(t *testing.T, check func(t *testing.T, r *http.Request)) {
	t.Helper()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, address := range addresses {
			for _, accept := range accepts {
				r := httptest.NewRequest(method, "http://localhost:8300"+address, strings.NewReader("for=1m"))
				r.Header.Set("Accept", accept)
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.RemoteAddr = "127.0.0.1:40000"
				check(t, r)
			}
		}
	}
}

// answer returns what a handler answers at once.
func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// requireUntouched demands that the store was neither read nor changed.
func requireUntouched(t *testing.T, s *fakeStore) {
	t.Helper()
	require.Zero(t, s.reads.Load())
	require.Empty(t, s.changes())
}

// A site whose name means this machine gets nothing, whatever it asks for.
func TestAForeignHostIsMisdirected(t *testing.T) {
	s := newFakeStore()
	h := &dashboard.Handler{Store: s, Actions: true, Hosts: []string{"fleet.internal", "fleet.example:8300"}}
	everywhere(t, func(t *testing.T, r *http.Request) {
		for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "fleet.internal.evil.example", "", "fleet.example:81", "10.0.0.1"} {
			r.Host = host
			require.Equal(t, http.StatusMisdirectedRequest, answer(h, r).Code, "%s %s of %q", r.Method, r.URL, host)
		}
	})
	requireUntouched(t, s)
	for _, host := range []string{"localhost", "LOCALHOST:8300", "127.0.0.1:8300", "127.8.8.8", "[::1]:8300", "[::1]", "fleet.internal", "Fleet.Internal:99", "fleet.example:8300"} {
		r := httptest.NewRequest(http.MethodGet, "http://x/assets/live.js", nil)
		r.Host, r.RemoteAddr = host, "[::1]:40000"
		require.Equal(t, http.StatusOK, answer(h, r).Code, host)
	}
}

// Another site that has a browser ask gets nothing, from a stream no more than from a form.
func TestAForeignSiteGetsNothing(t *testing.T) {
	s := newFakeStore()
	h := &dashboard.Handler{Store: s, Actions: true}
	foreign := []map[string]string{
		{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:8301"},
		{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
		{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
		{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
	}
	everywhere(t, func(t *testing.T, r *http.Request) {
		for _, headers := range foreign {
			r := r.Clone(t.Context())
			for name, value := range headers {
				r.Header.Set(name, value)
			}
			require.Equal(t, http.StatusForbidden, answer(h, r).Code, "%s %s %v", r.Method, r.URL, headers)
		}
	})
	requireUntouched(t, s)

	// A link that somebody follows is no such request; a form that another site sends is.
	followed := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	for method, want := range map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusForbidden} {
		r := local(method, "/b/api/do/pause", nil)
		for name, value := range followed {
			r.Header.Set(name, value)
		}
		require.Equal(t, want, answer(h, r).Code, method)
	}
	require.Empty(t, s.changes())
}

// Without a password only this machine is answered; with one, whoever has it; with a check of the
// program's own, whoever passes it. No path is exempt.
func TestACredentialIsNeededEverywhere(t *testing.T) {
	s := newFakeStore()
	everywhere(t, func(t *testing.T, r *http.Request) {
		r.RemoteAddr = "10.1.2.3:40000"
		require.Equal(t, http.StatusForbidden, answer(&dashboard.Handler{Store: s, Actions: true}, r).Code)
	})
	h := &dashboard.Handler{Store: s, Actions: true, Password: "correct horse"}
	refuses := &dashboard.Handler{Store: s, Actions: true, Authorize: func(*http.Request) bool { return false }}
	everywhere(t, func(t *testing.T, r *http.Request) {
		require.Equal(t, http.StatusUnauthorized, answer(h, r).Code)
		require.Equal(t, http.StatusForbidden, answer(refuses, r).Code)
		for _, wrong := range []string{"", "correct", "correct horse ", "Correct horse"} {
			r := r.Clone(t.Context())
			r.SetBasicAuth("somebody", wrong)
			w := answer(h, r)
			require.Equal(t, http.StatusUnauthorized, w.Code)
			require.Contains(t, w.Header().Get("WWW-Authenticate"), "Basic")
		}
	})
	for _, path := range []string{"/x/assets/live.js", "/assets/../", "/b/assets", "//assets/live.js", "/?/assets/live.js", "/b/api?q=/assets/"} {
		r := local(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		require.Equal(t, http.StatusUnauthorized, answer(h, r).Code, path)
	}
	requireUntouched(t, s)

	r := local(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.1.2.3:40000"
	r.SetBasicAuth("anybody", "correct horse")
	require.Equal(t, http.StatusOK, answer(h, r).Code)
	require.Equal(t, http.StatusOK, answer(&dashboard.Handler{Store: s, Authorize: func(*http.Request) bool { return true }}, r).Code)
}

// A form must be the page's own, and asks before it does anything. Without Actions there is none.
func TestNothingIsDoneWithoutAQuestion(t *testing.T) {
	s := newFakeStore()
	looking := &dashboard.Handler{Store: s}
	h := &dashboard.Handler{Store: s, Actions: true}
	form := url.Values{"for": {"10m"}, "reason": {"the provider is down"}, "account": {"x"}}
	for _, action := range []string{"pause", "resume", "forget"} {
		address := "/b/api/do/" + action
		require.Equal(t, http.StatusForbidden, answer(looking, local(http.MethodGet, address, nil)).Code)
		require.Equal(t, http.StatusForbidden, answer(looking, local(http.MethodPost, address, form)).Code)
		require.Equal(t, http.StatusForbidden, answer(h, local(http.MethodPost, address, form)).Code, "the page has not asked")
		require.NotContains(t, answer(looking, local(http.MethodGet, "/b/api/a/x", nil)).Body.String(), "/do/"+action)
	}
	require.Empty(t, s.changes())

	for _, action := range []string{"pause", "resume", "forget"} {
		form.Set("proof", formOf(t, h, "/b/api/do/"+action+"?account=x").Get("proof"))
		done := answer(h, local(http.MethodPost, "/b/api/do/"+action, form))
		require.Equal(t, http.StatusSeeOther, done.Code, done.Body)
	}
	require.Equal(t, []string{"pause api x 10m0s the provider is down, at the dashboard", "resume api x", "forget api x"}, s.changes())

	// Of an endpoint that is paused alone only its pauses end.
	until := time.Now().Add(time.Hour)
	s.set(func(d *store.Description) {
		d.Pauses = []store.Pause{{Account: "x", Key: "k", Until: until, Cause: "429 from GET http://api.test/likes/7"}}
	})
	h = &dashboard.Handler{Store: s, Actions: true} // which has looked at nothing before
	form.Set("proof", formOf(t, h, "/b/api/do/pause").Get("proof"))
	home := answer(h, local(http.MethodGet, "/b/api", nil)).Body.String()
	link := html.UnescapeString(regexp.MustCompile(`href="[^"]*(/b/api/do/resume[?][^"]*endpoint[^"]*)"`).FindStringSubmatch(home)[1])
	resumed := formOf(t, h, link)
	require.Equal(t, http.StatusSeeOther, answer(h, local(http.MethodPost, "/b/api/do/resume", resumed)).Code)
	require.Equal(t, []string{"pause api x k 0s until " + until.String()}, s.changes()[3:])
	resumed.Set("endpoint", "GET http://api.test/users")
	require.Contains(t, answer(h, local(http.MethodPost, "/b/api/do/resume", resumed)).Body.String(), "Nothing was done: no pause of that endpoint is in force")

	// A token is tried by one request, and not by all.
	s.set(func(d *store.Description) {
		d.Quarantined = []store.Quarantine{{Token: "t", Reason: "dead_token", Until: until}}
	})
	require.Equal(t, http.StatusSeeOther, answer(h, local(http.MethodPost, "/b/api/do/resume", formOf(t, h, "/b/api/do/resume?token=t"))).Code)
	require.Equal(t, []string{"quarantine api t dead_token 0s until " + until.String()}, s.changes()[4:])

	form.Set("for", "a while")
	again := answer(h, local(http.MethodPost, "/b/api/do/pause", form))
	require.Contains(t, again.Body.String(), "Nothing was done: say how long as 90s, 10m or 1h30m.")
	for _, address := range []string{"/b/api/do/drop", "/b/other/do/pause", "/b/api/do/forget"} {
		form.Del("account")
		require.Equal(t, http.StatusNotFound, answer(h, local(http.MethodPost, address, form)).Code, address)
	}
	require.Len(t, s.changes(), 5)
}

// formOf returns the form of a question as it is asked, as far as it is hidden.
func formOf(t *testing.T, h http.Handler, address string) url.Values {
	t.Helper()
	asked := answer(h, local(http.MethodGet, address, nil))
	require.Equal(t, http.StatusOK, asked.Code, asked.Body)
	form := make(url.Values)
	for _, field := range regexp.MustCompile(`type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(asked.Body.String(), -1) {
		form.Set(field[1], field[2])
	}
	require.NotEmpty(t, form.Get("proof"))
	return form
}

// local is a request of this machine.
func local(method, address string, form url.Values) *http.Request {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "http://localhost:8300"+address, body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr = "127.0.0.1:40000"
	return r
}
