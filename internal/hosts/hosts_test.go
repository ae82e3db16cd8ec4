package hosts_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/hosts"
)

func TestAHostIsThatOfAURLWithItsPort(t *testing.T) {
	for _, row := range []struct {
		host, url string
		has       bool
	}{
		{"api.test", "https://api.test/x", true},
		{"API.test", "https://api.TEST:8443/x", true},
		{"api.test:8443", "https://api.test:8443/x", true},
		{"api.test:8443", "https://api.test/x", false},
		{"api.test:443", "https://api.test/x", true},
		{"api.test:443", "http://api.test/x", false},
		{"api.test:80", "http://api.test/x", true},
		{"api.test", "https://api.test.evil/x", false},
		{"[::1]:8080", "http://[::1]:8080/", true},
		{"[::1]", "http://[::1]/", true},
	} {
		u, err := url.Parse(row.url)
		require.NoError(t, err)
		require.Equal(t, row.has, hosts.Has([]string{"other.test", row.host}, u), "%s: %s", row.host, row.url)
	}
}

func TestAListThatCannotBeMeantIsAnError(t *testing.T) {
	require.NoError(t, hosts.Check(nil))
	require.NoError(t, hosts.Check([]string{"api.test", "api.test:8080"}))
	require.ErrorContains(t, hosts.Check([]string{}), "leave it nil")
	require.ErrorContains(t, hosts.Check([]string{"http://127.0.0.1:8080/"}), `such as "127.0.0.1:8080"`)
	for _, host := range []string{"", "*.api.test", "api.test/v1", "user@api.test"} {
		require.ErrorContains(t, hosts.Check([]string{"api.test", host}), "write a host as it stands in a URL", host)
	}
}
