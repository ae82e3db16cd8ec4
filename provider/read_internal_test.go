package provider

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitInWords(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"Please try again in 1.146s. Visit":    1146 * time.Millisecond,
		"Please try again in 6m0.5s.":          6*time.Minute + 500*time.Millisecond,
		"Please retry after 26 seconds.":       26 * time.Second,
		"Please retry in 56.642851685s.":       56642852 * time.Microsecond,
		"Take a break for 5 minutes before":    5 * time.Minute,
		"try again in 20ms":                    20 * time.Millisecond,
		"wait 2 hours":                         2 * time.Hour,
		"Wait a bit and try again.":            0,
		"Please wait a few minutes before you": 0,
		"try again in 5 apples":                0,
		"limit of 10 per 5 seconds":            0,
	} {
		a := Response{Body: []byte(text)}
		got := waitInWords(&a).Value
		require.InDelta(t, want, got, float64(time.Microsecond), text)
	}
}

func TestScopes(t *testing.T) {
	for scope, helps := range map[Scope]bool{
		"token": true, "user+core": true, "token+bucket": true, "account": true, "member": true, "org": true,
		"app": false, "ip": false, "app+endpoint": false, "method+workspace+app": false, "project+model": false,
		"object": false, "resource": false, "": false, "endpoint": false, "bucket": false,
	} {
		require.Equal(t, helps, scope.OtherTokenHelps(), "%q", scope)
	}
	require.True(t, Scope("user+core").Has("core"))
	require.False(t, Scope("user+core").Has("cor"))
	require.Equal(t, Scope("user"), ScopeUser.With("a name\nwith a break"))
}

// A body that is too large just now may be sent again later (RFC 9110, 15.5.14); any other never.
func TestWhetherTooLargeIsForGood(t *testing.T) {
	for retryAfter, want := range map[string]struct {
		reason    Reason
		retryable bool
	}{"": {ReasonTooLarge, false}, "120": {ReasonOverload, true}} {
		r := Response{Status: http.StatusRequestEntityTooLarge, Header: http.Header{}, Arrived: time.Now()}
		if retryAfter != "" {
			r.Header.Set("Retry-After", retryAfter)
		}
		f := new(Provider).Read(r)
		require.Equal(t, want.reason, f.Reason)
		require.Equal(t, want.retryable, f.Retryable)
		require.Equal(t, retryAfter != "", f.Wait.Known)
	}
}
