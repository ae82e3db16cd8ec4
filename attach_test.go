package ration_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

func TestAttachPutsTheSecretIntoTheCopyOnly(t *testing.T) {
	const secret = "s3cr&t=/ä+ %"
	const escaped = "s3cr%26t%3D%2F%C3%A4%2B+%25"
	for _, row := range []struct {
		name   string
		attach provider.Attach
		url    string
		header http.Header // of the caller's request
		want   string      // the URL that is sent
		sent   http.Header
	}{
		{"bearer is the default", nil, "http://api.test/p?a=1", http.Header{}, "http://api.test/p?a=1",
			http.Header{"Authorization": {"Bearer " + secret}}},
		{"header", provider.HeaderNamed("x-api-key"), "http://api.test/", http.Header{"X-Api-Key": {"old"}, "Authorization": {"Basic x"}}, "http://api.test/",
			http.Header{"X-Api-Key": {secret}, "Authorization": {"Basic x"}}},
		{"query", provider.QueryNamed("access_token"), "http://api.test/", http.Header{}, "http://api.test/?access_token=" + escaped, http.Header{}},
		{"query keeps others as they stand", provider.QueryNamed("access_token"), "http://api.test/?b=2&a=1&a=%20+&c&=v&%zz=1", http.Header{},
			"http://api.test/?b=2&a=1&a=%20+&c&=v&%zz=1&access_token=" + escaped, http.Header{}},
		{"query takes the place of each that is there", provider.QueryNamed("access_token"), "http://api.test/?access_token=old&z=1&access_token&y=2", http.Header{},
			"http://api.test/?z=1&y=2&access_token=" + escaped, http.Header{}},
		{"query takes the place of an encoded one", provider.QueryNamed("access_token"), "http://api.test/?access%5Ftoken=old&a=1", http.Header{},
			"http://api.test/?a=1&access_token=" + escaped, http.Header{}},
		{"query's own name is encoded", provider.QueryNamed("the key&"), "http://api.test/?a=1&the+key%26=old", http.Header{},
			"http://api.test/?a=1&the+key%26=" + escaped, http.Header{}},
		{"query keeps the path and leaves out the fragment's like", provider.QueryNamed("k"), "http://api.test/a%2Fb;c/?k2=1#k=2", http.Header{},
			"http://api.test/a%2Fb;c/?k2=1&k=" + escaped + "#k=2", http.Header{}},
		{"your own", func(req *http.Request, secret string) error {
			req.SetBasicAuth("key", secret)
			return nil
		}, "http://api.test/", http.Header{}, "http://api.test/",
			http.Header{"Authorization": {"Basic a2V5OnMzY3ImdD0vw6QrICU="}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			api := rationtest.NewAPI(nil)
			transport := &ration.Transport{Base: api, Attach: row.attach, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken(secret))}
			req := rationtest.NewRequest(t, http.MethodGet, row.url, nil)
			req.Header = row.header.Clone()
			resp, err := transport.RoundTrip(req)
			require.NoError(t, err)
			calls := api.Calls()
			require.Equal(t, row.want, calls[0].URL)
			require.Equal(t, row.sent, calls[0].Header)
			require.Equal(t, row.url, req.URL.String())
			require.Equal(t, row.header, req.Header)
			require.Equal(t, row.url, resp.Request.URL.String())
			require.Equal(t, row.header, resp.Request.Header)
		})
	}
}

// Of hosts that are named, the scheme and the port matter only if they are.
func TestOnlyNamedHostsGetAToken(t *testing.T) {
	for _, row := range []struct {
		hosts []string
		url   string
		want  bool
	}{
		{[]string{"api.test"}, "https://api.test/", true},
		{[]string{"api.test"}, "https://API.Test/", true},
		{[]string{"API.test"}, "https://api.test/", true},
		{[]string{"api.test"}, "http://api.test/", true},
		{[]string{"api.test"}, "https://api.test:8443/", true},
		{[]string{"api.test:8443"}, "https://api.test:8443/", true},
		{[]string{"api.test:8443"}, "https://api.test/", false},
		{[]string{"api.test:8443"}, "https://api.test:443/", false},
		{[]string{"other.test", "api.test"}, "https://api.test/", true},
		{[]string{"::1"}, "http://[::1]:80/", true},
		{[]string{"[::1]:80"}, "http://[::1]:80/", true},
		{[]string{"api.test"}, "https://www.api.test/", false},
		{[]string{"api.test"}, "https://api.test.evil.test/", false},
		{[]string{"api.test"}, "https://evil.test/api.test", false},
		{[]string{"api.test"}, "https://api.test@evil.test/", false},
		{[]string{"api.test"}, "https://169.254.169.254/", false},
		{nil, "https://api.test/", true},
	} {
		t.Run(row.url, func(t *testing.T) {
			api := rationtest.NewAPI(nil)
			budget, token := rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a")
			client := &http.Client{Transport: &ration.Transport{Base: api, Hosts: row.hosts, Pool: ration.NewPool(budget, token)}}
			var told []string
			budget.OnEvent = func(e ration.Event) {
				require.Equal(t, ration.HostNotNamed, e.Kind)
				told = append(told, e.Host)
			}
			resp := rationtest.Get(t, client, row.url)
			left, err := budget.Remaining(t.Context(), token)
			require.NoError(t, err)
			_, granted := ration.GrantOf(resp)
			require.Equal(t, row.want, granted)
			if row.want {
				require.Equal(t, []string{"a"}, api.Tokens())
				require.Equal(t, 4, left)
			} else {
				require.NotContains(t, api.Calls()[0].Header.Get("Authorization"), "Bearer")
				require.Equal(t, 5, left)
				rationtest.Get(t, client, row.url)
				require.Equal(t, []string{strings.ToLower(resp.Request.URL.Host)}, told, "once")
			}
			require.Equal(t, !row.want, len(told) > 0)
		})
	}
}

func TestForeignHostNeedsNeitherPoolNorWait(t *testing.T) {
	api := rationtest.NewAPI(nil)
	transport := &ration.Transport{Base: api, Hosts: []string{"api.test"}}
	req := rationtest.NewRequest(t, http.MethodGet, "http://other.test/", nil)
	_, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.Len(t, api.Calls(), 1)
}

// A layer above that attaches a token of its own does not know the one whose quota is booked.
func TestAnAuthorizationHeaderIsNotReplacedInSilence(t *testing.T) {
	for name, attach := range map[string]provider.Attach{"by default": nil, "bearer": provider.Bearer} {
		t.Run(name, func(t *testing.T) {
			api := rationtest.NewAPI(nil)
			budget, token := rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("ours")
			transport := &ration.Transport{Base: api, Attach: attach, Pool: ration.NewPool(budget, token)}
			body := rationtest.NewBody("content")
			req := rationtest.NewRequest(t, http.MethodPost, "http://api.test/", body)
			req.Header.Set("Authorization", "Bearer theirs")
			_, err := transport.RoundTrip(req)
			require.ErrorContains(t, err, "oauth2.Transport")
			require.ErrorContains(t, err, "ReplaceAuthorization")
			require.Empty(t, api.Calls())
			require.Equal(t, 1, body.Closed)
			left, err := budget.Remaining(t.Context(), token)
			require.NoError(t, err)
			require.Equal(t, 5, left)

			transport = &ration.Transport{Base: api, Attach: attach, Pool: ration.NewPool(budget, token), ReplaceAuthorization: true}
			req = rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil)
			req.Header.Set("Authorization", "Bearer theirs")
			_, err = transport.RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, []string{"ours"}, api.Tokens())
			require.Equal(t, "Bearer theirs", req.Header.Get("Authorization"))
		})
	}
}

func TestAttachThatFailsGivesTheSlotBack(t *testing.T) {
	type key struct{}
	refused := errors.New("no signature for a-secret")
	api := rationtest.NewAPI(nil)
	budget, token := rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a-secret")
	transport := &ration.Transport{Base: api, Pool: ration.NewPool(budget, token), Attach: func(req *http.Request, _ string) error {
		require.Equal(t, "the caller's", req.Context().Value(key{}))
		return refused
	}}
	body := rationtest.NewBody("content")
	req := rationtest.NewRequest(t, http.MethodPost, "http://api.test/", body)
	_, err := transport.RoundTrip(req.WithContext(context.WithValue(t.Context(), key{}, "the caller's")))
	require.ErrorIs(t, err, refused)
	require.NotContains(t, err.Error(), "a-secret")
	require.Empty(t, api.Calls())
	require.Equal(t, 1, body.Closed)
	left, err := budget.Remaining(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, 5, left)
}
