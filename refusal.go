package ration

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// pauses returns the pauses for the refusals of one request that say nothing of
// their own. They never stop.
func (t *Transport) pauses() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstPause),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(t.maxPause()),
		backoff.WithMaxElapsedTime(0),
	)
}

// retries is how often a request is sent again.
func (t *Transport) retries() int {
	if t.Retries == 0 {
		return defaultRetries
	}
	return t.Retries
}

func (t *Transport) maxPause() time.Duration {
	if t.MaxPause <= 0 {
		return defaultMaxPause
	}
	return t.MaxPause
}

// pause keeps the refused account silent, in the whole fleet, for as long as the
// response asks or else for the given time. A store that fails here is met again
// by the next booking, which reports it.
func (t *Transport) pause(req *http.Request, resp *http.Response, grant Grant, otherwise time.Duration) {
	length, said := retryAfter(resp.Header, time.Now())
	if !said {
		length = otherwise
	}
	length = min(length, t.maxPause()).Truncate(time.Microsecond)
	if length <= 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(req.Context()), handBackWithin)
	defer stop()
	_, _ = t.Pool.budget.pause(ctx, grant.account, length, 0)
}

// handBack hands back a grant on which nothing was sent.
func (t *Transport) handBack(grant Grant) {
	ctx, stop := context.WithTimeout(context.Background(), handBackWithin)
	defer stop()
	_ = grant.Cancel(ctx)
}

// retryAfter reads Retry-After as RFC 9110 has it, whole seconds or a date, and
// the fractions of a second that some providers send. What is malformed, or more
// than one value, says nothing. A date that has passed is no wait.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, said bool) {
	values := h.Values("Retry-After")
	if len(values) != 1 {
		return 0, false
	}
	value := strings.TrimSpace(values[0])
	if value == "" || len(value) > 40 {
		return 0, false
	}
	if value[0] >= '0' && value[0] <= '9' {
		if strings.ContainsFunc(value, func(c rune) bool { return c != '.' && (c < '0' || c > '9') }) {
			return 0, false
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(seconds) {
			return 0, false
		}
		// A float of more nanoseconds than a Duration holds would turn
		// negative: a wait of no time at all.
		if seconds > maxWindow.Seconds() {
			return maxWindow, true
		}
		return time.Duration(math.Ceil(seconds * float64(time.Second))), true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(0, date.Sub(now)), maxWindow), true
}
