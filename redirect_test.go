package ration_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

// redirecting answers with a redirect to the URL that is named beside the
// request's, and with 200 where there is none.
func redirecting(chain ...string) func(int, *http.Request) (*http.Response, error) {
	return func(_ int, req *http.Request) (*http.Response, error) {
		for i, from := range chain[:len(chain)-1] {
			if sent, _, _ := strings.Cut(req.URL.String(), "?"); sent == from {
				return rationtest.Respond(req, http.StatusFound, "", []string{"Location", chain[i+1]}), nil
			}
		}
		return rationtest.Respond(req, http.StatusOK, "", nil), nil
	}
}

// Each row is a chain of redirects, and for each hop whether it carries the
// token and is charged.
func TestRedirectCarriesTheTokenOnlyToWhereTheCallerWent(t *testing.T) {
	api := []string{"api.test"}
	for _, row := range []struct {
		name  string
		hosts []string
		chain []string
		want  []bool
	}{
		{"same host, 3 hops", nil, []string{"https://api.test/1", "https://api.test/2", "https://api.test/3", "https://api.test/4"}, []bool{true, true, true, true}},
		{"same host, other case", nil, []string{"https://api.test/1", "https://API.TEST/2"}, []bool{true, true}},
		{"other host", nil, []string{"https://api.test/1", "https://evil.test/2"}, []bool{true, false}},
		{"subdomain", nil, []string{"https://api.test/1", "https://old.api.test/2"}, []bool{true, false}},
		{"other port", nil, []string{"https://api.test/1", "https://api.test:8443/2"}, []bool{true, false}},
		{"metadata service", nil, []string{"https://api.test/1", "http://169.254.169.254/2"}, []bool{true, false}},
		{"https to http", nil, []string{"https://api.test/1", "http://api.test/2"}, []bool{true, false}},
		{"http to https", nil, []string{"http://api.test/1", "https://api.test/2"}, []bool{true, false}},
		{"away and back", nil, []string{"https://api.test/1", "https://evil.test/2", "https://api.test/3"}, []bool{true, false, false}},
		{"away and on", nil, []string{"https://api.test/1", "https://evil.test/2", "https://evil.test/3", "https://worse.test/4"}, []bool{true, false, false, false}},

		{"named: same host", api, []string{"https://api.test/1", "https://api.test/2"}, []bool{true, true}},
		{"named: other host", api, []string{"https://api.test/1", "https://evil.test/2", "https://evil.test/3"}, []bool{true, false, false}},
		{"named: other port", api, []string{"https://api.test/1", "https://api.test:8443/2"}, []bool{true, true}},
		{"named: only the port", []string{"api.test:8443"}, []string{"https://api.test:8443/1", "https://api.test/2"}, []bool{true, false}},
		{"named: from another host", api, []string{"https://short.test/1", "https://api.test/2"}, []bool{false, true}},
		{"named: https to http", api, []string{"https://api.test/1", "http://api.test/2", "http://api.test/3"}, []bool{true, false, false}},
		{"named: https to http and back", api, []string{"https://api.test/1", "http://api.test/2", "https://api.test/3"}, []bool{true, false, false}},
		{"named: away and back", api, []string{"https://api.test/1", "https://evil.test/2", "https://api.test/3", "https://api.test/4"}, []bool{true, false, false, false}},
		{"named: http on the same host", api, []string{"http://api.test/1", "http://api.test/2"}, []bool{true, true}},
		{"named: http on another named host", []string{"api.test", "also.test"}, []string{"http://api.test/1", "http://also.test/2"}, []bool{true, false}},
		{"named: another named host", []string{"api.test", "also.test"}, []string{"https://api.test/1", "https://also.test/2", "https://api.test/3"}, []bool{true, true, true}},
		{"named: http to https", api, []string{"http://api.test/1", "https://api.test/2"}, []bool{true, true}},
		{"named: from another host's http", api, []string{"http://short.test/1", "http://api.test/2"}, []bool{false, false}},
		{"named: from another host's https to http", api, []string{"https://short.test/1", "http://api.test/2"}, []bool{false, false}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, names := range []bool{true, false} {
				t.Run("base names the request: "+strconv.FormatBool(names), func(t *testing.T) {
					to := redirecting(row.chain...)
					base := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
						resp, err := to(n, req)
						if !names {
							resp.Request = nil // http.Transport sets it, others forget
						}
						return resp, err
					})
					budget, token := rationtest.NewBudget(ration.PerHour(10)), ration.NewToken("a")
					client := &http.Client{Transport: &ration.Transport{Base: base, Hosts: row.hosts, Pool: ration.NewPool(budget, token)}}
					rationtest.Get(t, client, row.chain[0])
					var got []bool
					charged := 0
					for _, c := range base.Calls() {
						carried := c.Header.Get("Authorization") != ""
						got = append(got, carried)
						if carried {
							charged++
						}
					}
					require.Equal(t, row.want, got)
					left, err := budget.Remaining(t.Context(), token)
					require.NoError(t, err)
					require.Equal(t, 10-charged, left)
				})
			}
		})
	}
}

func TestRedirectedHopsWaitForTheirOwnSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(redirecting("http://api.test/1", "http://api.test/2", "http://other.test/3"))
		client := &http.Client{Transport: &ration.Transport{Base: api,
			Pool: ration.NewPool(rationtest.NewBudget(ration.Limit{Max: 1, Window: time.Minute}), ration.NewToken("a"))}}
		rationtest.Get(t, client, "http://api.test/1")
		require.Equal(t, rationtest.Seconds(0, 60, 60), api.Times())
	})
}

// A redirect repeats the query of the request that the caller made, and names
// it as its Referer: neither has the secret.
func TestRedirectDoesNotTellTheSecretInTheReferer(t *testing.T) {
	base := rationtest.NewAPI(redirecting("http://api.test/1", "http://evil.test/2"))
	client := &http.Client{Transport: &ration.Transport{Base: base, Attach: provider.QueryNamed("access_token"),
		Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(10)), ration.NewToken("SECRET"))}}
	rationtest.Get(t, client, "http://api.test/1")
	calls := base.Calls()
	require.Equal(t, "http://api.test/1?access_token=SECRET", calls[0].URL)
	require.Equal(t, "http://evil.test/2", calls[1].URL)
	require.Equal(t, "http://api.test/1", calls[1].Header.Get("Referer"))
}

// CheckRedirect sees the caller's own requests, and what it decides holds.
func TestCheckRedirectSeesNoSecret(t *testing.T) {
	base := rationtest.NewAPI(redirecting("http://api.test/1", "http://api.test/2", "http://evil.test/3"))
	var seen []string
	client := &http.Client{
		Transport: &ration.Transport{Base: base, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(10)), ration.NewToken("a"))},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			require.Empty(t, req.Header.Get("Authorization"))
			require.Empty(t, req.Response.Request.Header.Get("Authorization"))
			seen = append(seen, req.URL.String())
			if req.URL.Host == "evil.test" {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	resp := rationtest.Get(t, client, "http://api.test/1")
	require.Equal(t, http.StatusFound, resp.StatusCode)
	require.Equal(t, []string{"http://api.test/2", "http://evil.test/3"}, seen)
	require.Equal(t, []string{"a", "a"}, base.Tokens())
}
