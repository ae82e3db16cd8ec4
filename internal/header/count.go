package header

import (
	"math"
	"regexp"
	"strings"

	"github.com/ration-go/ration/internal/ratelimitfield"
)

// A Count is the number in a header such as X-RateLimit-Limit, and what stands beside it.
type Count struct {
	Value    float64               // zero unless Known
	Known    bool                  // false: the header has no number
	Window   float64               // the length of its window in seconds; 0: unknown
	Of       float64               // the number behind a '/'; 0: none
	Policies []ratelimitfield.Item // the members of the list behind the first
}

// ParseCount reads "100", "57.0", "100;w=21600" and "10, 10;w=1, 50;w=60", "100/1m", "100 per minute" and "59/60". Of "1,000"
// nobody knows whether it is one number or two.
func ParseCount(s string) Count {
	if n, known := Number(s); known {
		return Count{Value: n, Known: true}
	}
	if found := per.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s))); found != nil && len(s) <= longestText {
		n, known := Number(found[1])
		times, _ := Number(found[2])
		unit, isUnit := periods[found[3]]
		if !isUnit {
			unit = periods[strings.TrimSuffix(found[3], "s")]
		}
		return Count{Value: n, Known: known && unit > 0, Window: max(1, times) * unit}
	}
	if thousands.MatchString(s) {
		return Count{}
	}
	if before, after, found := strings.Cut(s, "/"); found {
		n, known := Number(before)
		of, also := Number(after)
		return Count{Value: n, Known: known && also, Of: of}
	}
	items := ratelimitfield.List([]string{s})
	if len(items) == 0 || !items[0].Quota.Known {
		return Count{}
	}
	c := Count{Value: items[0].Quota.Value, Known: true, Window: items[0].Window.Value, Policies: items[1:]}
	for _, policy := range c.Policies {
		if c.Window == 0 && policy.Quota.Value == c.Value {
			c.Window = policy.Window.Value
		}
	}
	return c
}

// ParseRatio reads USED/LIMIT. Both are known, or neither.
func ParseRatio(s string) (used, limit Count) {
	before, after, found := strings.Cut(s, "/")
	if !found {
		return Count{}, Count{}
	}
	if used, limit = ParseCount(before), ParseCount(after); !used.Known || !limit.Known {
		return Count{}, Count{}
	}
	return used, limit
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

// Percent rounds a percentage to 6 decimals, which hides the noise of a conversion from a
// share. It may be above 100.
func Percent(n float64) (percent float64, known bool) {
	if math.IsNaN(n) || n < 0 || n > 1e6 {
		return 0, false
	}
	return math.Round(n*1e6) / 1e6, true
}

// per is a number of units in a time: "150/15m", "100 per minute", "60/60s", "5 requests / second".
var per = regexp.MustCompile(`^([0-9.]+) ?(?:requests?|calls?|req)? ?(?:/|per|in|every) ?([0-9]+)? ?([a-z]+)$`)

// periods are the seconds of the units of time, in the singular.
var periods = map[string]float64{"ms": 0.001, "msec": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hr": 3600, "hour": 3600, "d": 86400, "day": 86400,
	"week": 7 * 86400, "month": 30 * 86400}

// thousands is a number with its thousands apart, or a list of numbers of three digits.
var thousands = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+$`)

// Numbers reads a list of two bare numbers or more, "991, 2"; it returns nil if the text is none, or may be one number.
func Numbers(s string) []float64 {
	if !strings.Contains(s, ",") || len(s) > longestText || thousands.MatchString(s) {
		return nil
	}
	var list []float64
	for one := range strings.SplitSeq(s, ",") {
		n, known := Number(one)
		if !known {
			return nil
		}
		list = append(list, n)
	}
	return list
}
