package header

import (
	"strings"

	"github.com/ration-go/ration/internal/ratelimitfield"
)

// A Count is the number in a header such as X-RateLimit-Limit, and what stands beside it.
type Count struct {
	Value    float64
	Known    bool
	Window   float64               // the length of its window in seconds; 0: unknown
	Policies []ratelimitfield.Item // the members of the list behind the first
}

// ParseCount reads "100", "57.0", "100;w=21600" and "10, 10;w=1, 50;w=60".
func ParseCount(s string) Count {
	if n, known := Number(s); known {
		return Count{Value: n, Known: true}
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
