package rationtest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider/presets"
)

// NewBudget returns a budget without a margin, so that slots are exact.
func NewBudget(limits ...ration.Limit) *ration.Budget {
	return &ration.Budget{Name: "test", Limits: limits, Store: new(ration.MemoryStore), Margin: -1}
}

// Tokens returns a token for each secret.
func Tokens(secrets ...string) []ration.Token {
	var all []ration.Token
	for _, secret := range secrets {
		all = append(all, ration.NewToken(secret))
	}
	return all
}

// NewRequest returns a request with the test's context.
func NewRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	return req
}

// Get sends a GET and drains the answer.
func Get(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	resp, err := client.Do(NewRequest(t, http.MethodGet, url, nil))
	require.NoError(t, err)
	Drain(t, resp)
	return resp
}

// Drain reads a response's body to its end and closes it.
func Drain(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(b)
}

// Seconds makes durations of whole seconds.
func Seconds(of ...int) []time.Duration {
	var all []time.Duration
	for _, s := range of {
		all = append(all, time.Duration(s)*time.Second)
	}
	return all
}

// A RoundTripper is a function that is an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Snapshot returns what a RoundTripper must not change in a request.
func Snapshot(req *http.Request) http.Request {
	kept := *req.Clone(req.Context())
	kept.Header, kept.Trailer = maps.Clone(req.Header), maps.Clone(req.Trailer)
	kept.GetBody, kept.Body = nil, nil // functions are never equal
	return kept
}

// RequireQuarantined fails unless the error says for each token of the pool, in order, why
// it is quarantined and for how long.
func RequireQuarantined(t *testing.T, err error, want ...ration.QuarantinedToken) {
	t.Helper()
	require.ErrorIs(t, err, ration.ErrNoToken)
	none, is := errors.AsType[*ration.NoTokenError](err)
	require.True(t, is)
	require.Len(t, none.Tokens, len(want))
	for i, got := range none.Tokens {
		require.WithinDuration(t, want[i].Until, got.Until, time.Microsecond)
		require.ErrorContains(t, err, fmt.Sprintf("%s (%s, tried again at %s)", got.ID, got.Reason, got.Until.UTC().Format(time.RFC3339)))
		got.Until = want[i].Until
		require.Equal(t, want[i], got)
	}
}

// RequireRemaining fails unless so many units are left of each limit.
func RequireRemaining(t *testing.T, b *ration.Budget, token ration.Token, want ...int) {
	t.Helper()
	usage, err := b.Usage(t.Context(), token)
	require.NoError(t, err)
	var got []int
	for _, l := range usage.Limits {
		got = append(got, l.Remaining)
	}
	require.Equal(t, want, got)
}

// Preset returns a provider by name.
func Preset(t *testing.T, name string) *ration.Provider {
	t.Helper()
	p, err := presets.Named(name)
	require.NoError(t, err)
	return p
}

// Every returns a limit of one call in so many seconds.
func Every(seconds int) ration.Limit {
	return ration.Limit{Max: 1, Window: time.Duration(seconds) * time.Second}
}
