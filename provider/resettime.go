package provider

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
)

// A ResetForm is how a provider writes when a window resets.
type ResetForm uint8

const (
	// ResetAny tells them apart: a date, a duration such as 6m0s, and of numbers
	// the seconds until then below 10^8, Unix time from 10^9, in milliseconds
	// from 10^12. It cannot see milliseconds until then.
	ResetAny ResetForm = iota
	// ResetSeconds is the seconds until then.
	ResetSeconds
	// ResetMilliseconds is the milliseconds until then.
	ResetMilliseconds
	// ResetUnix is Unix time, in seconds.
	ResetUnix
)

// longestText is that of a date or a duration. Longer values are not read.
const longestText = 100

// dates are how instants are written beside those of HTTP. One without a zone is in UTC.
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

// parseDate reads an instant: an HTTP-date in its three spellings, ISO 8601 with or
// without seconds, or a JavaScript date.
func parseDate(s string) (time.Time, bool) {
	if len(s) > longestText {
		return time.Time{}, false
	}
	s, _, _ = strings.Cut(s, " (") // the name of the zone behind a JavaScript date
	if date, err := http.ParseTime(s); err == nil {
		return date, true
	}
	for _, layout := range dates {
		if date, err := time.Parse(layout, s); err == nil {
			return date, true
		}
	}
	return time.Time{}, false
}

// parseReset returns how long it is until a reset. One that has passed is not told:
// either the clocks differ, or there is more by now.
func ParseReset(s string, form ResetForm, now time.Time) Optional[time.Duration] {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > longestText {
		return Optional[time.Duration]{}
	}
	n, isNumber := ParseNumber(s)
	if !isNumber {
		if c := ParseCount(s); c.Said { // 41;w=60
			n, isNumber = c.value, true
		}
	}
	var left time.Duration
	switch {
	case isNumber:
		left = resetIn(n, form, now)
	default:
		if d, err := time.ParseDuration(s); err == nil {
			left = d
		} else if date, ok := parseDate(s); ok {
			left = date.Sub(now)
		}
	}
	if left <= 0 {
		return Optional[time.Duration]{}
	}
	return Some(min(left, limit.MaxWindow))
}

func resetIn(n float64, form ResetForm, now time.Time) time.Duration {
	switch {
	case n <= 0:
		return 0
	case form == ResetSeconds:
		return Seconds(n)
	case form == ResetMilliseconds:
		return Seconds(n / 1000)
	case form == ResetAny && n < 1e8:
		return Seconds(n)
	case form == ResetAny && n < 1e9:
		return 0 // neither three years from now nor an instant of this age
	case n >= 1e21:
		return 0 // not even in nanoseconds
	}
	for n >= 1e12 {
		n /= 1000
	}
	return Seconds(n - float64(now.UnixMicro())/1e6)
}

// midnight returns how long it is until the next midnight in a zone. A zone that
// this machine does not know is not told.
func Midnight(zone string, now time.Time) Optional[time.Duration] {
	in, err := time.LoadLocation(zone)
	if err != nil {
		return Optional[time.Duration]{}
	}
	year, month, day := now.In(in).Date()
	return Some(time.Date(year, month, day+1, 0, 0, 0, 0, in).Sub(now))
}
