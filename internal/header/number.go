// Package header reads the values that responses have about limits, in headers and in
// bodies: numbers, counts, resets, waits and names. A value that is malformed, not finite
// or out of bounds is not there: each function returns whether its value is known.
package header

import (
	"math"
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

// Limit converts a number to the units of a limit, which has 1 or more.
func Limit(n float64) (units int64, known bool) {
	if n < 1 || n > MaxUnits {
		return 0, false
	}
	return int64(n), true
}

// Used converts a number to used units, rounded up.
func Used(n float64) (units int64, known bool) {
	if n < 0 || n > MaxUnits {
		return 0, false
	}
	return int64(math.Ceil(n)), true
}

// Remaining converts a number to remaining units, rounded down. A negative number is 0 if
// the quota may be overdrawn: the response has its limit, or is a refusal. Otherwise it is
// how some providers say that they do not count.
func Remaining(n float64, mayBeOverdrawn bool) (units int64, known bool) {
	if n > MaxUnits || n < -MaxUnits || n < 0 && !mayBeOverdrawn {
		return 0, false
	}
	return int64(math.Floor(max(0, n))), true
}

// Length converts seconds to the length of a window.
func Length(seconds float64) (length time.Duration, known bool) {
	if !(seconds > 0) || seconds > limit.MaxWindow.Seconds() {
		return 0, false
	}
	return Seconds(seconds), true
}

// Percent rounds a percentage to 6 decimals, which hides the noise of a conversion from a
// share. It may be above 100.
func Percent(n float64) (percent float64, known bool) {
	if math.IsNaN(n) || n < 0 || n > 1e6 {
		return 0, false
	}
	return math.Round(n*1e6) / 1e6, true
}
