package header

import (
	"net/http"
	"strings"
	"time"
)

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
		n, known := Number(h.Get(name))
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
	} else if at, known := date(s); known {
		wait = at.Sub(now)
	} else if d, err := time.ParseDuration(s); err == nil {
		wait = d
	}
	return max(wait, 0)
}
