package header_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
)

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func TestResetTellsTheFormsApart(t *testing.T) {
	for _, test := range []struct {
		text string
		read func(string, time.Time) (time.Duration, bool)
		want time.Duration // 0: not told
	}{
		{"17", header.Reset, 17 * time.Second},
		{"0.5", header.Reset, 500 * time.Millisecond},
		{"41;w=60", header.Reset, 41 * time.Second},
		{"1768478460", header.Reset, time.Minute},
		{"1768478460.25", header.Reset, time.Minute + 250*time.Millisecond},
		{"1768478460250", header.Reset, time.Minute + 250*time.Millisecond},
		{"99999999", header.Reset, limit.MaxWindow},
		{"500000000", header.Reset, 0},
		{"41000", header.ResetMilliseconds, 41 * time.Second},
		{"1768478460", header.ResetUnix, time.Minute},
		{"30", header.ResetUnix, 0},
		{"200000000", header.ResetSeconds, limit.MaxWindow},
		{"20ms", header.Reset, 20 * time.Millisecond},
		{"20m", header.Reset, 20 * time.Minute},
		{"6m0s", header.Reset, 6 * time.Minute},
		{"4h51m22s", header.Reset, 4*time.Hour + 51*time.Minute + 22*time.Second},
		{"33.023s", header.Reset, 33*time.Second + 23*time.Millisecond},
		{"2026-01-15T12:01:00Z", header.Reset, time.Minute},
		{"2026-01-15T13:01:00+01:00", header.Reset, time.Minute},
		{"2026-01-15T12:01Z", header.Reset, time.Minute},
		{"2026-01-15T12:01:00", header.Reset, time.Minute},
		{"2026-01-15 12:01:00", header.Reset, time.Minute},
		{"2026-01-15T12:01:00.250Z", header.Reset, time.Minute + 250*time.Millisecond},
		{"Thu, 15 Jan 2026 12:01:00 GMT", header.Reset, time.Minute},
		{"Thursday, 15-Jan-26 12:01:00 GMT", header.Reset, time.Minute},
		{"Thu Jan 15 12:01:00 2026", header.Reset, time.Minute},
		{"Thu Jan 15 2026 13:01:00 GMT+0100 (Central European Standard Time)", header.Reset, time.Minute},
		{"1768478340", header.Reset, 0},
		{"", header.Reset, 0},
		{"0", header.Reset, 0},
		{"-5", header.Reset, 0},
		{"soon", header.Reset, 0},
		{"NaN", header.Reset, 0},
		{"1e3", header.Reset, 0},
		{"999999999999999999999999999999", header.Reset, 0},
	} {
		got, known := test.read(test.text, noon)
		require.Equal(t, test.want, got, test.text)
		require.Equal(t, test.want > 0, known, test.text)
	}
}

func TestParseCountReadsWhatIsAroundIt(t *testing.T) {
	for text, want := range map[string]float64{"100": 100, "57.0": 57, " 5 ": 5, "-1": -1, "100;w=21600": 100, "10, 10;w=1, 50;w=60": 10} {
		require.Equal(t, want, header.ParseCount(text).Value, text)
		require.True(t, header.ParseCount(text).Known, text)
	}
	require.Equal(t, 21600.0, header.ParseCount("100;w=21600").Window)
	require.Equal(t, 1.0, header.ParseCount("10, 10;w=1, 50;w=60").Window)
	for _, text := range []string{"", "a", "1000: 1000", "1e5", "0x10", "--1", "1-2", "Inf", "1.2.3", "١"} {
		require.False(t, header.ParseCount(text).Known, text)
	}
	used, limit := header.ParseRatio("32/40")
	require.Equal(t, []float64{32, 40}, []float64{used.Value, limit.Value})
	for _, text := range []string{"32", "/40", "32/", "a/b"} {
		_, limit := header.ParseRatio(text)
		require.False(t, limit.Known, text)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		header [][2]string
		want   time.Duration
		by     string
	}{
		{[][2]string{{"Retry-After", "2.0"}}, 2 * time.Second, "Retry-After"},
		{[][2]string{{"Retry-After", "Thu, 15 Jan 2026 12:01:00 GMT"}}, time.Minute, "Retry-After"},
		{[][2]string{{"Retry-After", "Thu, 15 Jan 2026 12:01:00 UTC"}}, time.Minute, "Retry-After"},
		{[][2]string{{"Retry-After", "Thursday, 15-Jan-26 12:01:00 UTC"}}, time.Minute, "Retry-After"},
		{[][2]string{{"Retry-After", "Mon, 2 Feb 2026 12:00:00 GMT"}}, 18 * 24 * time.Hour, "Retry-After"},
		{[][2]string{{"Retry-After", "Mon, 2 Feb 2026 13:00:00 +0100"}}, 18 * 24 * time.Hour, "Retry-After"},
		{[][2]string{{"Retry-After", "Mon, 2 Feb 2026 12:00:00 PST"}}, 0, ""},
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
		wait, by := header.RetryAfter(h, noon)
		require.Equal(t, test.want, wait, "%v", test.header)
		require.Equal(t, test.by, by, "%v", test.header)
	}
}

func TestMidnightFollowsTheClocks(t *testing.T) {
	spring := time.Date(2026, 3, 8, 8, 0, 0, 0, time.UTC) // midnight; the day has 23 hours
	for _, row := range []struct {
		zone string
		now  time.Time
		want time.Duration // 0: unknown
	}{
		{"America/Los_Angeles", noon, 20 * time.Hour},
		{"UTC", noon, 12 * time.Hour},
		{"No/Where", noon, 0},
		{"America/Los_Angeles", spring, 23 * time.Hour},
	} {
		left, known := header.Midnight(row.zone, row.now)
		require.Equal(t, row.want, left, row.zone)
		require.Equal(t, row.want > 0, known, row.zone)
	}
}
