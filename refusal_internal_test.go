package ration

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever a provider says, the wait is from nothing to the longest window, and
// what is not understood says nothing.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{
		"", "0", "1", "120", "1.5", "0.000001", "-5", "+5", "1e9", "NaN", "Inf", "0x10", "1_000", "5s", "120, 5", "1.", ".5", "1.2.3",
		"9223372036", "9223372037", "9223372036854775807", "18446744073709551616", strings.Repeat("9", 40), strings.Repeat("9", 41), strings.Repeat("0", 1<<10),
		"Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Saturday, 01-Jan-00 00:02:00 GMT", "Sat Jan  1 00:02:00 2000",
		"Sat, 01 Jan 2000 00:02:00 UTC", "\x00", "1\r\n2", "\xff", "５",
	} {
		f.Add(value, int64(946_684_800))
	}
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT", int64(math.MinInt32))
	f.Fuzz(func(t *testing.T, value string, unix int64) {
		now := time.Unix(unix%(1<<40), 0)
		wait, said := retryAfter(http.Header{"Retry-After": {value}}, now)
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.LessOrEqual(t, wait, maxWindow)
		if !said {
			require.Zero(t, wait)
		}
		var whole uint32
		if _, err := fmt.Sscanf(value, "%d", &whole); err == nil && fmt.Sprint(whole) == value {
			require.True(t, said)
			require.Equal(t, min(time.Duration(whole)*time.Second, maxWindow), wait)
		}
		if date, err := http.ParseTime(value); err == nil && len(value) <= 40 && date.Sub(now) < maxWindow {
			require.True(t, said)
			require.Equal(t, max(0, date.Sub(now)), wait)
		}
		_, said = retryAfter(http.Header{"Retry-After": {value, value}}, now)
		require.False(t, said, "two values")
		_, said = retryAfter(http.Header{}, now)
		require.False(t, said, "no value")
	})
}
