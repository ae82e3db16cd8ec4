package header

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
)

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
	"2006-01-02 15:04:05",
	time.RFC1123Z,
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
		switch {
		case n < 1e8:
			return Seconds(n)
		case n < 1e9:
			return 0 // neither three years from now nor an instant of this century
		}
		return untilUnix(n, now)
	})
}

// ResetSeconds is like [Reset]. A number is seconds until then.
func ResetSeconds(s string, now time.Time) (left time.Duration, known bool) {
	return reset(s, now, Seconds)
}

// ResetMilliseconds is like [Reset]. A number is milliseconds until then.
func ResetMilliseconds(s string, now time.Time) (left time.Duration, known bool) {
	return reset(s, now, func(n float64) time.Duration { return Seconds(n / 1000) })
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
	if isNumber {
		if n > 0 {
			left = until(n)
		}
	} else if d, err := time.ParseDuration(s); err == nil {
		left = d
	} else if at, known := date(s); known {
		left = at.Sub(now)
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
