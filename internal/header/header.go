// Package header reads the values that responses have about limits, in headers and in
// bodies: numbers, counts, resets, waits and names. A value that is malformed, not finite
// or out of bounds is not there: each function returns whether its value is known.
package header

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
)

// Bounds of what is read of one response.
const (
	MaxText    = 8 << 10           // bytes of a body or a header that are searched for words
	MaxWindows = 32                // windows that are kept
	MaxUnits   = 1_000_000_000_000 // units of a quota
)

// Number reads a decimal number, without an exponent.
func Number(s string) (n float64, known bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 32 || strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && c != '.' && c != '-' && c != '+'
	}) {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, false
	}
	return n, true
}

// Seconds converts seconds to a duration, rounded up to a microsecond. A negative number
// is 0. The result is at most a year, so that sums of it do not overflow.
func Seconds(n float64) time.Duration {
	if !(n > 0) {
		return 0
	}
	if n >= limit.MaxWindow.Seconds() {
		return limit.MaxWindow
	}
	return time.Duration(math.Ceil(n*1e6-1e-6)) * time.Microsecond
}

// Length converts seconds to the length of a window.
func Length(seconds float64) (length time.Duration, known bool) {
	if !(seconds > 0) || seconds > limit.MaxWindow.Seconds() {
		return 0, false
	}
	return Seconds(seconds), true
}

// The names under which waits are sent, with "|" between. The second kind is in
// milliseconds, and refines the first, which is rounded up to seconds.
const (
	RetryAfterNames             = "Retry-After|RetryAfter|X-Retry-After|X-RateLimit-Retry-After"
	RetryAfterMillisecondsNames = "Retry-After-Ms|X-Ms-Retry-After-Ms"
)

// RetryAfter returns the wait that a header asks for under any of these names, and the
// name; it is empty if there is none. A wait of 0 is none: in a refusal it says only that
// the server does not know. Of several values the longest counts.
func RetryAfter(h http.Header, now time.Time) (wait time.Duration, by string) {
	for name := range strings.SplitSeq(RetryAfterNames, "|") {
		for _, value := range h.Values(name) {
			if one := retryAfter(value, now); one > wait {
				wait, by = one, name
			}
		}
		if by != "" {
			break
		}
	}
	for name := range strings.SplitSeq(RetryAfterMillisecondsNames, "|") {
		value := h.Get(name)
		if value == "" {
			continue
		}
		n, known := Number(value)
		if !known || n <= 0 {
			continue
		}
		// If the two differ by a second or more it is not for rounding, and the longer
		// one counts.
		if fine := Seconds(n / 1000); fine > 0 && (by == "" || fine > wait-time.Second) {
			return fine, name
		}
	}
	return wait, by
}

// retryAfter reads one Retry-After: the seconds of RFC 9110, which some send with a
// fraction, or a date, or a duration, which a few send. It returns 0 if there is no wait.
func retryAfter(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if len(s) > longestText {
		return 0
	}
	var wait time.Duration
	if n, known := Number(s); known {
		if wait = Seconds(n); n >= 1e9 { // an instant: nobody asks for 30 years
			wait = untilUnix(n, now)
		}
	} else {
		wait = untilText(s, now)
	}
	return max(wait, 0)
}

// untilText reads a date, as the time from now until then, or a duration; 0 if it is neither.
func untilText(s string, now time.Time) time.Duration {
	if at, known := date(s); known {
		return at.Sub(now)
	}
	d, _ := time.ParseDuration(s)
	return d
}

// longestText is the longest date or duration that is read, in bytes.
const longestText = 100

// dates are the layouts of instants, beside those of HTTP. One without a zone is in UTC.
var dates = [...]string{
	time.RFC3339Nano,
	"2006-01-02T15:04Z07:00", // Jira, without seconds
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05 MST",
	"2006-01-02 15:04:05-0700 MST",
	"2006-Jan-02 15:04:05-0700 MST",
	"2006-Jan-02 15:04:05-0700",
	"2006/01/02 15:04:05 -0700",
	"2006/01/02 15:04:05",
	"2006-01-02 15:04:05",
	time.RFC1123Z,
	// As the HTTP-date of careless servers: a day of one digit, and UTC for GMT. Other names of zones
	// are not read: time.Parse does not know how far off they are.
	"Mon, 2 Jan 2006 15:04:05 GMT",
	"Mon, 2 Jan 2006 15:04:05 UTC",
	"Mon, 2 Jan 2006 15:04:05 -0700",
	"Monday, 2-Jan-06 15:04:05 UTC",
	"Mon Jan 02 2006 15:04:05 GMT-0700", // JavaScript's Date, as lemlist sends it
	time.UnixDate,
}

// date reads an instant: an HTTP-date in its three forms, ISO 8601 with or without
// seconds, or a JavaScript date.
func date(s string) (at time.Time, known bool) {
	if len(s) > longestText {
		return time.Time{}, false
	}
	s, _, _ = strings.Cut(s, " (") // the name of the zone behind a JavaScript date
	if at, err := http.ParseTime(s); err == nil {
		return at, true
	}
	for _, layout := range dates {
		if at, err := time.Parse(layout, s); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// Reset returns the time from now until a reset, which is a date, a duration such as 6m0s,
// or a number. A number below 10^8 is seconds until then; one from 10^9 is Unix time, in
// milliseconds from 10^12.
//
// A reset that has passed is not known: the clocks differ, or there is more by now.
func Reset(s string, now time.Time) (left time.Duration, known bool) {
	return reset(s, now, func(n float64) time.Duration {
		if n >= 1e8 && n < 1e9 {
			return 0 // neither three years from now nor an instant of this century
		}
		return Until(n, now)
	})
}

// ResetSeconds is like [Reset]. A number is seconds until then, unless it is Unix time.
func ResetSeconds(s string, now time.Time) (left time.Duration, known bool) {
	return reset(s, now, func(n float64) time.Duration { return Until(n, now) })
}

// ResetMilliseconds is like [Reset]. A number is milliseconds until then, unless it is Unix time.
func ResetMilliseconds(s string, now time.Time) (left time.Duration, known bool) {
	return reset(s, now, func(n float64) time.Duration { return Until(n/1000, now) })
}

// Until returns so many seconds, or the time from now until so many seconds in Unix time if the number is
// 10^9 or more: no window lasts for 30 years.
func Until(n float64, now time.Time) time.Duration {
	if n >= 1e9 {
		return untilUnix(n, now)
	}
	return Seconds(n)
}

// ResetUnix is like [Reset]. A number is Unix time, in milliseconds from 10^12.
func ResetUnix(s string, now time.Time) (left time.Duration, known bool) {
	return reset(s, now, func(n float64) time.Duration { return untilUnix(n, now) })
}

func reset(s string, now time.Time, until func(n float64) time.Duration) (left time.Duration, known bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > longestText {
		return 0, false
	}
	n, isNumber := Number(s)
	if !isNumber {
		c := ParseCount(s) // 41;w=60
		n, isNumber = c.Value, c.Known
	}
	if !isNumber {
		left = untilText(s, now)
	} else if n > 0 {
		left = until(n)
	}
	if left <= 0 {
		return 0, false
	}
	return min(left, limit.MaxWindow), true
}

// untilUnix returns the time from now until an instant in Unix time: in seconds, or in a
// smaller unit if the number is too large for that.
func untilUnix(n float64, now time.Time) time.Duration {
	if n >= 1e21 {
		return 0 // too large even for nanoseconds
	}
	for n >= 1e12 {
		n /= 1000
	}
	return Seconds(n - float64(now.UnixMicro())/1e6)
}

// Midnight returns the time from now until the next midnight in a zone of the IANA
// database. It is not known if this machine does not know the zone.
func Midnight(zone string, now time.Time) (left time.Duration, known bool) {
	in, err := time.LoadLocation(zone)
	if err != nil {
		return 0, false
	}
	year, month, day := now.In(in).Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, in).Sub(now), true
}

// Name returns a name that a provider sent, or nothing if it is none: a name has up to 64
// visible ASCII characters, and no '+'. Names are printed and stored, and a provider may
// send anything.
func Name(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 64 || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '+' }) {
		return ""
	}
	return s
}

// IsAddress reports whether a text is an IP address.
func IsAddress(s string) bool {
	_, err := netip.ParseAddr(strings.TrimSpace(s))
	return err == nil
}
