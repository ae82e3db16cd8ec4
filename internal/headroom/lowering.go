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
	// All of the limits are tried again when nothing was refused for restTimes as long as calls were, if that is sooner.
	restTimes = 10
	// leastLeft is the share of the units that are in use at a refusal, and were served, that is left of a limit at least:
	// what is less would only make the calls of this window wait.
	leastLeft = 0.95
	// Refusals within sameMoment, or a quarter of a shorter window, are of calls that were in flight
	// together.
	sameMoment = time.Second / 2
)

// A Lowering is what a worker knows of limits that may be too high: the provider refuses calls again and again
// and says nothing of what it allows. The limit that was exceeded is lowered by a third with each moment in
// which calls are refused, but for the first: a provider may have had a bad one.
//
// If it was an incident, a short one costs a short time: after refusals for a minute, and ten minutes without one, all of
// the limits are tried again. If that is refused too, the incident goes on, and the next trial is after ten times as
// long as it has lasted then. That the limits are too high is certain when this would be more than some windows: from
// then on all are raised a little when nothing was refused for some windows. A step up that is refused is taken back, and
// the next is waited for twice as long. So the limits stay just below what the provider allows, at the cost of a few
// refusals that become rarer and rarer. The zero Lowering has seen none. It is safe for concurrent use.
type Lowering struct {
	mu sync.Mutex // protects all below
	lowered
}

// lowered is what a Lowering knows.
type lowered struct {
	begun    time.Time     // when calls were refused first
	refused  time.Time     // when calls were refused last
	restored time.Time     // when all of the limits were in force again
	low      bool          // the limits in force are lower than all
	moments  int           // in how many they were, since the limits were full or a step up was taken back
	patience int           // in windows; zero: leastPatience
	fits     []limit.Limit // what was in force before the last step up, by this worker or another; nil: none was
	set      []limit.Limit // what Lower or Raise returned last
	since    time.Time     // since when that is in force; zero: Raise has not been told yet
	unserved [2]int        // calls that were refused in this window, as long as the longest, and in the last one
	counting time.Time     // when this one began
}

// Refused notes that calls were refused under limits with that longest window, and reports whether it is another moment
// than the last.
func (l *Lowering) Refused(limits []limit.Limit, longest time.Duration, now time.Time) (another bool) {
	same := sameMoment
	for _, one := range limits {
		same = min(same, one.Window/4)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shift(longest, now)
	l.unserved[0]++
	if now.Sub(l.refused) <= same {
		return false
	}
	quiet := min(now.Sub(l.refused), now.Sub(l.restored))
	if l.begun.IsZero() || !l.low && quiet > leastPatience*longest {
		l.begun, l.moments, l.patience, l.fits = now, 0, 0, nil // it is another incident
	}
	l.moments++
	l.refused = now
	return true
}

// shift begins another window to count refusals in, if one has passed. It needs mu.
func (l *Lowering) shift(longest time.Duration, now time.Time) {
	switch passed := now.Sub(l.counting); {
	case passed > 2*longest:
		l.unserved, l.counting = [2]int{}, now
	case passed > longest:
		l.unserved, l.counting = [2]int{0, l.unserved[0]}, now
	}
}

// Unserved returns how many calls of this worker were refused in the last window or two of that length: the log counts them, and
// the provider does not. As many of those that are in flight will be.
func (l *Lowering) Unserved(longest time.Duration, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shift(longest, now)
	return l.unserved[0] + l.unserved[1]
}

// Keep returns what takes back all that is noted from now on.
func (l *Lowering) Keep() (undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.lowered
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lowered = kept
	}
}

// rest returns how long nothing must have been refused until limits with that longest window are raised, and whether
// all of them are tried then. It needs mu.
func (l *Lowering) rest(longest time.Duration) (rest time.Duration, all bool) {
	rest = time.Duration(max(l.patience, leastPatience)) * longest
	if lasted := l.refused.Sub(l.begun); lasted < rest/restTimes && l.patience == 0 {
		return restTimes * lasted, true
	}
	return rest, false
}

// due returns when limits with that longest window, which are in force since an instant, are raised if nothing is refused
// until then, and whether all of them are tried then. It needs mu.
func (l *Lowering) due(longest time.Duration, since time.Time) (at time.Time, all bool) {
	if l.refused.After(since) {
		since = l.refused
	}
	rest, all := l.rest(longest)
	return since.Add(rest), all
}

// Lower returns what to use of the limits in force, the longest of which has that window, after another moment in which
// calls were refused; nil: the same as before. The limit with that index was exceeded, when so many units of it were in use that the
// provider has served; negative: none was, as far as is known.
func (l *Lowering) Lower(inForce, full []limit.Limit, longest time.Duration, index, used int) []limit.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fits != nil && above(inForce, l.fits):
		if _, trial := l.rest(longest); !trial {
			l.patience = min(2*max(l.patience, leastPatience), mostPatience)
		}
		l.moments = 0 // what was too much may be felt once more
	case l.moments < 2 || index < 0:
		return nil
	default:
		l.fits = slices.Clone(inForce)
		l.fits[index] = lower(inForce[index], full[index], used)
	}
	l.set, l.since, l.low = l.fits, time.Time{}, true
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

// lower returns a limit of which fallTo is left, at least what mostLowered leaves of the full one, and of a window
// leastLeft of the units in use.
func lower(l, full limit.Limit, used int) limit.Limit {
	least := max(1, int(math.Ceil(float64(full.Max)*(1-mostLowered))))
	if l.Algorithm != limit.GCRA {
		least = max(least, int(leastLeft*float64(min(used, l.Max))))
	}
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
	if !l.low || !slices.Equal(inForce, l.set) || len(inForce) != len(full) {
		return nil
	}
	if l.since.IsZero() {
		l.since = since
	}
	if !since.Equal(l.since) {
		return nil
	}
	due, all := l.due(longest, since)
	if now.Before(due) {
		return nil
	}
	l.fits, l.set, l.since = inForce, slices.Clone(inForce), time.Time{}
	if all {
		l.set, l.low, l.restored = slices.Clone(full), false, now
		return l.set
	}
	for i, one := range full {
		l.set[i].Max = min(one.Max, l.set[i].Max+max(1, int(riseBy*float64(l.set[i].Max))))
		l.set[i].Burst = min(one.Burst, l.set[i].Burst+max(1, int(riseBy*float64(l.set[i].Burst))))
	}
	if slices.Equal(l.set, full) {
		l.moments, l.low, l.restored = 0, false, now
	}
	return l.set
}

// RaiseIn returns in how long Raise returns other limits than those with that longest window, which are in force since an
// instant, if nothing is refused until then; negative: it will not.
func (l *Lowering) RaiseIn(longest time.Duration, since, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.low {
		return -1
	}
	due, _ := l.due(longest, since)
	return max(0, due.Sub(now))
}

// IsLow reports whether Raise may return limits.
func (l *Lowering) IsLow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.low
}
