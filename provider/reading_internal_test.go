package provider

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
)

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func TestParseResetTellsTheFormsApart(t *testing.T) {
	for _, test := range []struct {
		text string
		form ResetForm
		want time.Duration // 0: not told
	}{
		{"17", ResetAny, 17 * time.Second},
		{"0.5", ResetAny, 500 * time.Millisecond},
		{"41;w=60", ResetAny, 41 * time.Second},
		{"1768478460", ResetAny, time.Minute},
		{"1768478460.25", ResetAny, time.Minute + 250*time.Millisecond},
		{"1768478460250", ResetAny, time.Minute + 250*time.Millisecond},
		{"99999999", ResetAny, limit.MaxWindow},
		{"500000000", ResetAny, 0},
		{"41000", ResetMilliseconds, 41 * time.Second},
		{"1768478460", ResetUnix, time.Minute},
		{"30", ResetUnix, 0},
		{"200000000", ResetSeconds, limit.MaxWindow},
		{"20ms", ResetAny, 20 * time.Millisecond},
		{"20m", ResetAny, 20 * time.Minute},
		{"6m0s", ResetAny, 6 * time.Minute},
		{"4h51m22s", ResetAny, 4*time.Hour + 51*time.Minute + 22*time.Second},
		{"33.023s", ResetAny, 33*time.Second + 23*time.Millisecond},
		{"2026-01-15T12:01:00Z", ResetAny, time.Minute},
		{"2026-01-15T13:01:00+01:00", ResetAny, time.Minute},
		{"2026-01-15T12:01Z", ResetAny, time.Minute},
		{"2026-01-15T12:01:00", ResetAny, time.Minute},
		{"2026-01-15 12:01:00", ResetAny, time.Minute},
		{"2026-01-15T12:01:00.250Z", ResetAny, time.Minute + 250*time.Millisecond},
		{"Thu, 15 Jan 2026 12:01:00 GMT", ResetAny, time.Minute},
		{"Thursday, 15-Jan-26 12:01:00 GMT", ResetAny, time.Minute},
		{"Thu Jan 15 12:01:00 2026", ResetAny, time.Minute},
		{"Thu Jan 15 2026 13:01:00 GMT+0100 (Central European Standard Time)", ResetAny, time.Minute},
		{"1768478340", ResetAny, 0},
		{"", ResetAny, 0},
		{"0", ResetAny, 0},
		{"-5", ResetAny, 0},
		{"soon", ResetAny, 0},
		{"NaN", ResetAny, 0},
		{"1e3", ResetAny, 0},
		{"999999999999999999999999999999", ResetAny, 0},
	} {
		got := ParseReset(test.text, test.form, noon)
		require.Equal(t, test.want, got.Value, test.text)
		require.Equal(t, test.want > 0, got.Known, test.text)
	}
}

func TestParseCountReadsWhatIsAroundIt(t *testing.T) {
	for text, want := range map[string]float64{"100": 100, "57.0": 57, " 5 ": 5, "-1": -1, "100;w=21600": 100, "10, 10;w=1, 50;w=60": 10} {
		require.Equal(t, want, ParseCount(text).value, text)
		require.True(t, ParseCount(text).Said, text)
	}
	require.Equal(t, 21600.0, ParseCount("100;w=21600").window)
	require.Equal(t, 1.0, ParseCount("10, 10;w=1, 50;w=60").window)
	for _, text := range []string{"", "a", "1000: 1000", "1e5", "0x10", "--1", "1-2", "Inf", "1.2.3", "١"} {
		require.False(t, ParseCount(text).Said, text)
	}
	used, limit := ParseRatio("32/40")
	require.Equal(t, []float64{32, 40}, []float64{used.value, limit.value})
	for _, text := range []string{"32", "/40", "32/", "a/b"} {
		_, limit := ParseRatio(text)
		require.False(t, limit.Said, text)
	}
}

func TestRetryHeader(t *testing.T) {
	for _, test := range []struct {
		header [][2]string
		want   time.Duration
		by     string
	}{
		{[][2]string{{"Retry-After", "2.0"}}, 2 * time.Second, "Retry-After"},
		{[][2]string{{"Retry-After", "Thu, 15 Jan 2026 12:01:00 GMT"}}, time.Minute, "Retry-After"},
		{[][2]string{{"Retry-After", "1768478460"}}, time.Minute, "Retry-After"},
		{[][2]string{{"Retry-After", "2"}, {"Retry-After-Ms", "1146"}}, 1146 * time.Millisecond, "Retry-After-Ms"},
		{[][2]string{{"Retry-After", "60"}, {"Retry-After-Ms", "10"}}, time.Minute, "Retry-After"},
		{[][2]string{{"X-Ms-Retry-After-Ms", "10"}}, 10 * time.Millisecond, "X-Ms-Retry-After-Ms"},
		{[][2]string{{"Retry-After", "0"}}, 0, ""},
		{[][2]string{{"Retry-After", ""}}, 0, ""},
		{[][2]string{{"Beta-Retry-After", "50"}}, 0, ""},
	} {
		h := http.Header{}
		for _, pair := range test.header {
			h.Add(pair[0], pair[1])
		}
		wait, by := retryHeader(h, noon)
		require.Equal(t, test.want, wait.Value, "%v", test.header)
		require.Equal(t, test.by, by, "%v", test.header)
	}
}

func TestDelayInWords(t *testing.T) {
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
		got := delayInWords(&a).Value
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
