package provider

import (
	"net/http"
	"strings"
	"time"
)

// Names under which waits are sent. The second is in milliseconds, and refines the
// first, which is rounded up to seconds.
const (
	retryHeaders      = "Retry-After|RetryAfter|X-Retry-After|X-RateLimit-Retry-After"
	retryMilliseconds = "Retry-After-Ms|X-Ms-Retry-After-Ms"
)

// retryHeader returns what Retry-After says, under any of its names, and the name. A
// wait of nothing is not told: on a refusal it says no more than that the server
// did not know. Of several values the longest counts.
func retryHeader(h http.Header, now time.Time) (wait Optional[time.Duration], by string) {
	for name := range strings.SplitSeq(retryHeaders, "|") {
		for _, value := range h.Values(name) {
			if one := parseRetryAfter(value, now); one.Known && one.Value > wait.Value {
				wait, by = one, name
			}
		}
		if wait.Known {
			break
		}
	}
	for name := range strings.SplitSeq(retryMilliseconds, "|") {
		n, ok := ParseNumber(h.Get(name))
		if !ok || n <= 0 {
			continue
		}
		// A twin that is a second or more away is no rounding: then the longer
		// one counts.
		fine := Seconds(n / 1000)
		if !wait.Known || fine > wait.Value-time.Second {
			return Some(fine), name
		}
	}
	return wait, by
}

// parseRetryAfter reads one Retry-After: the seconds of RFC 9110, which some send with
// a fraction, or a date, and the durations that a few send.
func parseRetryAfter(s string, now time.Time) Optional[time.Duration] {
	s = strings.TrimSpace(s)
	if len(s) > longestText {
		return Optional[time.Duration]{}
	}
	var wait time.Duration
	if n, ok := ParseNumber(s); ok {
		if wait = Seconds(n); n >= 1e9 { // an instant: nobody asks for 30 years
			wait = resetIn(n, ResetUnix, now)
		}
	} else if date, ok := parseDate(s); ok {
		wait = date.Sub(now)
	} else if d, err := time.ParseDuration(s); err == nil {
		wait = d
	}
	if wait <= 0 {
		return Optional[time.Duration]{}
	}
	return Some(wait)
}
