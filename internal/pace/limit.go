package pace

import (
	"fmt"
	"math"
	"time"

	"github.com/ration-go/ration/limit"
)

const (
	// mark is what is left of a pace's Window when milliseconds are taken off: no other limit has it, so that a pace is known
	// wherever limits are kept, and counts apart from a limit of GCRA that was told.
	mark = time.Microsecond
	// leastUnits is how many units a pace's Window holds at least at the rate that was told: so fine is its rate.
	leastUnits = 2000
)

// Of returns the limit that keeps a fleet to the state's pace, beside those that were told; false: there is no pace.
func (s *State) Of(told []limit.Limit) (l limit.Limit, paced bool) {
	if s == nil || s.Rate == 0 {
		return limit.Limit{}, false
	}
	t := ToldBy(told)
	longest := time.Duration(0)
	for _, one := range told {
		longest = max(longest, one.Window)
	}
	times := time.Duration(math.Ceil(leastUnits / max(1, t.Rate*min(longest, longestRate).Seconds())))
	window := (longest * max(1, min(times, leastUnits))).Truncate(time.Millisecond) + mark
	window = min(window, limit.MaxWindow-time.Millisecond+mark)
	most := int(min(max(1, math.Round(s.Rate*window.Seconds())), limit.MaxUnits))
	return limit.Limit{Max: most, Window: window, Algorithm: limit.GCRA, Burst: min(max(1, s.Burst), most), Margin: -1}, true
}

// Is reports whether a limit is a pace.
func Is(l limit.Limit) bool { return l.Algorithm == limit.GCRA && l.Window%time.Millisecond == mark }

// Split returns what was told of limits, and the pace beside them; nil: there is none.
func Split(limits []limit.Limit) (told []limit.Limit, paced *limit.Limit) {
	last := len(limits) - 1
	if last < 1 || !Is(limits[last]) {
		return limits, nil
	}
	return limits[:last:last], &limits[last]
}

// By returns the state of a pace of which nothing but the limit is known; nil: there is none.
func By(l *limit.Limit) *State {
	if l == nil {
		return nil
	}
	return &State{Rate: float64(l.Max) / l.Window.Seconds(), Burst: l.BurstOrDefault()}
}

// Told is what limits allow that were told.
type Told struct {
	Rate     float64       // units a second, by the limit that allows the most; of a window longer than a minute, all in that
	Capacity int           // what that lets leave at once
	Settles  time.Duration // after so long at Rate it has no units left to catch up with
	Drains   bool          // it is a bucket: how many units are in it says little of how many have left lately
}

// longestRate is the longest time by which the rate of a window is meant: of a longer one all may be spent sooner.
const longestRate = time.Minute

// ToldBy returns what limits allow. A limit that allows less in the long run than another is kept beside the pace, whatever
// that is: a pace is for what is too much in the short run.
func ToldBy(limits []limit.Limit) (t Told) {
	for _, l := range limits {
		settles := min(l.Window, longestRate)
		rate := float64(l.Max) / settles.Seconds()
		if l.Algorithm == limit.GCRA {
			rate = float64(l.Max) / l.Window.Seconds()
		}
		if rate <= t.Rate {
			continue
		}
		t = Told{Rate: rate, Capacity: l.Capacity(), Settles: settles}
		if l.Algorithm == limit.GCRA {
			t.Drains = true
			t.Settles = time.Duration(float64(t.Capacity) / rate * float64(time.Second))
		}
	}
	return t
}

// Shown returns a pace by a second, a minute, an hour or a day, as a program may give it.
func Shown(l limit.Limit) limit.Limit {
	rate := float64(l.Max) / l.Window.Seconds()
	for _, window := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		if units := math.Round(rate * window.Seconds()); units >= leastShown || window > time.Hour {
			most := max(1, int(units))
			return limit.Limit{Max: most, Window: window, Algorithm: limit.GCRA, Burst: min(l.BurstOrDefault(), most)}
		}
	}
	return l
}

// leastShown is how many units a pace has at least as it is shown, so that it is exact to a hundredth.
const leastShown = 100

// Text returns a pace as people are told of it: "2940/1m, burst 40".
func Text(l limit.Limit) string {
	l = Shown(l)
	burst := l.Burst
	l.Algorithm, l.Burst = 0, 0
	return fmt.Sprintf("%v, burst %d", l, burst)
}
