package provider

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/ratelimitfield"

	"github.com/ration-go/ration/limit"
)

// Numbers in answers are written by anyone. What is malformed, not finite or out of
// bounds says nothing.

const (
	longestWait = 7 * 24 * time.Hour // longer than the longest ban that is documented, of 3 days
	longestHold = 24 * time.Hour     // the longest window that resets are told of
	MaxUnits    = 1_000_000_000_000  // more than any quota
)

// parseNumber reads a decimal number, without an exponent.
func ParseNumber(s string) (float64, bool) {
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
func Seconds(n float64) time.Duration {
	if !(n > 0) {
		return 0
	}
	if n >= limit.MaxWindow.Seconds() {
		return limit.MaxWindow
	}
	return time.Duration(math.Ceil(n*1e6-1e-6)) * time.Microsecond
}

// A count is a figure of a header: a number, and what was said with it.
type Count struct {
	value    float64
	Said     bool
	window   float64               // in seconds; 0: not said
	policies []ratelimitfield.Item // those behind the first member of a list
}

// parseCount reads "100", "57.0", "100;w=21600" and "10, 10;w=1, 50;w=60".
func ParseCount(s string) Count {
	if n, ok := ParseNumber(s); ok {
		return Count{value: n, Said: true}
	}
	items := ratelimitfield.List([]string{s})
	if len(items) == 0 || !items[0].Quota.Said {
		return Count{}
	}
	c := Count{value: items[0].Quota.Value, Said: true, window: items[0].Window.Value, policies: items[1:]}
	for _, policy := range c.policies {
		if c.window == 0 && policy.Quota.Value == c.value {
			c.window = policy.Window.Value
		}
	}
	return c
}

// limitOf returns a limit as it is kept: from one unit up.
func LimitOf(n float64) Optional[int64] {
	if n < 1 || n > MaxUnits {
		return Optional[int64]{}
	}
	return Some(int64(n))
}

// usedOf returns what was used as it is kept: rounded up, and not negative.
func UsedOf(n float64) Optional[int64] {
	if n < 0 || n > MaxUnits {
		return Optional[int64]{}
	}
	return Some(int64(math.Ceil(n)))
}

// remainingOf returns what is left as it is kept: whole units. Negative is overdrawn
// where the limit is told or the request was refused for it, and otherwise a sign
// that nothing is known.
func RemainingOf(n float64, overdrawn bool) Optional[int64] {
	if n > MaxUnits || n < -MaxUnits || n < 0 && !overdrawn {
		return Optional[int64]{}
	}
	return Some(int64(math.Floor(max(0, n))))
}

// lengthOf returns the length of a window of so many seconds.
func LengthOf(n float64) Optional[time.Duration] {
	if !(n > 0) || n > limit.MaxWindow.Seconds() {
		return Optional[time.Duration]{}
	}
	return Some(Seconds(n))
}

// percentOf returns a percentage as it is kept, without the noise of its last digits.
func PercentOf(n float64) Optional[float64] {
	if math.IsNaN(n) || n < 0 || n > 1e6 {
		return Optional[float64]{}
	}
	return Some(math.Round(n*1e6) / 1e6)
}
