package ration

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/ratelimitfield"
)

// Numbers in answers are written by anyone. What is malformed, not finite or out of
// bounds says nothing.

const (
	longestWait = 7 * 24 * time.Hour // longer than the longest ban that is documented, of 3 days
	longestHold = 24 * time.Hour     // the longest window that resets are told of
	mostUnits   = maxUnits           // more than any quota
)

// parseNumber reads a decimal number, without an exponent.
func parseNumber(s string) (float64, bool) {
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

// seconds returns so many as a duration, rounded up to a microsecond. It is at most
// a year, so that sums of it do not overflow.
func seconds(n float64) time.Duration {
	if !(n > 0) {
		return 0
	}
	if n >= maxWindow.Seconds() {
		return maxWindow
	}
	return time.Duration(math.Ceil(n*1e6-1e-6)) * time.Microsecond
}

// A count is a figure of a header: a number, and what was said with it.
type count struct {
	value    float64
	said     bool
	window   float64               // in seconds; 0: not said
	policies []ratelimitfield.Item // those behind the first member of a list
}

// parseCount reads "100", "57.0", "100;w=21600" and "10, 10;w=1, 50;w=60".
func parseCount(s string) count {
	if n, ok := parseNumber(s); ok {
		return count{value: n, said: true}
	}
	items := ratelimitfield.List([]string{s})
	if len(items) == 0 || !items[0].Quota.Said {
		return count{}
	}
	c := count{value: items[0].Quota.Value, said: true, window: items[0].Window.Value, policies: items[1:]}
	for _, policy := range c.policies {
		if c.window == 0 && policy.Quota.Value == c.value {
			c.window = policy.Window.Value
		}
	}
	return c
}

// limitOf returns a limit as it is kept: from one unit up.
func limitOf(n float64) Told[int64] {
	if n < 1 || n > mostUnits {
		return Told[int64]{}
	}
	return told(int64(n))
}

// usedOf returns what was used as it is kept: rounded up, and not negative.
func usedOf(n float64) Told[int64] {
	if n < 0 || n > mostUnits {
		return Told[int64]{}
	}
	return told(int64(math.Ceil(n)))
}

// remainingOf returns what is left as it is kept: whole units. Negative is overdrawn
// where the limit is told or the request was refused for it, and otherwise a sign
// that nothing is known.
func remainingOf(n float64, overdrawn bool) Told[int64] {
	if n > mostUnits || n < -mostUnits || n < 0 && !overdrawn {
		return Told[int64]{}
	}
	return told(int64(math.Floor(max(0, n))))
}

// lengthOf returns the length of a window of so many seconds.
func lengthOf(n float64) Told[time.Duration] {
	if !(n > 0) || n > maxWindow.Seconds() {
		return Told[time.Duration]{}
	}
	return told(seconds(n))
}

// percentOf returns a percentage as it is kept, without the noise of its last digits.
func percentOf(n float64) Told[float64] {
	if math.IsNaN(n) || n < 0 || n > 1e6 {
		return Told[float64]{}
	}
	return told(math.Round(n*1e6) / 1e6)
}
