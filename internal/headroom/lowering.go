package headroom

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/limit"
)

const (
	// fallTo is what is left of a limit behind a refusal, and riseBy the share of it by which it is
	// raised.
	fallTo, riseBy = 0.7, 0.05
	// Limits are raised after leastPatience windows without a refusal at first, and after mostPatience
	// at last.
	leastPatience, mostPatience = 5, 100
	// Refusals within sameMoment, or a quarter of a shorter window, are of calls that were in flight
	// together.
	sameMoment = time.Second / 2
)

// A Lowering is what a worker knows of limits that are too high: the provider refuses calls again and again
// and says nothing of what it allows. The limit that was exceeded is lowered by a third with each moment in
// which calls are refused, but for the first: a provider may have had a bad one. All are raised a little when
// nothing was refused for some windows. A step up that is refused is taken back, and the next is waited for
// twice as long. So the limits stay just below what the provider allows, at the cost of a few refusals that
// become rarer and rarer. The zero Lowering has seen none. It is safe for concurrent use.
type Lowering struct {
	mu       sync.Mutex    // protects all below
	refused  time.Time     // when calls were refused last
	moments  int           // in how many they were, since the limits were full or a step up was taken back
	patience int           // in windows; zero: leastPatience
	fits     []limit.Limit // what was in force before the last step up, by this worker or another; nil: none was
	set      []limit.Limit // what Lower or Raise returned last
	since    time.Time     // since when that is in force; zero: Raise has not been told yet
}

// Refused notes that calls were refused, and reports whether it is another moment than the last.
func (l *Lowering) Refused(limits []limit.Limit, now time.Time) (another bool) {
	same := sameMoment
	for _, one := range limits {
		same = min(same, one.Window/4)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.refused) <= same {
		return false
	}
	l.moments++
	l.refused = now
	return true
}

// Lower returns what to use of the limits in force, after another moment in which calls were refused; nil:
// the same as before. The limit with that index was exceeded; negative: none, as far as is known.
func (l *Lowering) Lower(inForce, full []limit.Limit, index int) []limit.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fits != nil && above(inForce, l.fits):
		l.patience = min(2*max(l.patience, leastPatience), mostPatience)
		l.moments = 0 // what was too much may be felt once more
	case l.moments < 2 || index < 0:
		return nil
	default:
		l.fits = slices.Clone(inForce)
		l.fits[index] = lower(inForce[index], full[index])
	}
	l.set, l.since = l.fits, time.Time{}
	return l.set
}

// above reports whether limits are higher than others, and none is lower.
func above(limits, others []limit.Limit) bool {
	if len(limits) != len(others) || slices.Equal(limits, others) {
		return false
	}
	for i, one := range others {
		if !sameKind(limits[i], one) || limits[i].Max < one.Max {
			return false
		}
	}
	return true
}

// lower returns a limit of which fallTo is left, and at least what mostLowered leaves of the full one.
func lower(l, full limit.Limit) limit.Limit {
	least := max(1, int(math.Ceil(float64(full.Max)*(1-mostLowered))))
	l.Max = max(least, int(float64(l.Max)*fallTo))
	if l.Burst > 0 {
		l.Burst = min(max(1, int(float64(l.Burst)*fallTo)), l.Max)
	}
	return l
}

// Raise returns what to use of limits that are in force since an instant, the longest of which has that
// window, after a call that was served; nil: the same as before. It raises none that others have set since: they do.
func (l *Lowering) Raise(inForce, full []limit.Limit, longest time.Duration, since, now time.Time) []limit.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == nil || !slices.Equal(inForce, l.set) || len(inForce) != len(full) {
		return nil
	}
	if l.since.IsZero() {
		l.since = since
	}
	if !since.Equal(l.since) {
		return nil
	}
	if l.refused.After(since) {
		since = l.refused
	}
	if now.Sub(since) < time.Duration(max(l.patience, leastPatience))*longest {
		return nil
	}
	l.fits, l.set, l.since = inForce, slices.Clone(inForce), time.Time{}
	for i, one := range full {
		l.set[i].Max = min(one.Max, l.set[i].Max+max(1, int(riseBy*float64(l.set[i].Max))))
		l.set[i].Burst = min(one.Burst, l.set[i].Burst+max(1, int(riseBy*float64(l.set[i].Burst))))
	}
	if slices.Equal(l.set, full) {
		l.moments = 0
	}
	return l.set
}

// IsLow reports whether Raise may return limits.
func (l *Lowering) IsLow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set != nil
}
