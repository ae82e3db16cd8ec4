package rates

import (
	"sync"
	"time"
)

// Ages are since when callers wait. The zero Ages are nobody's. They may be used by several goroutines at once.
type Ages struct {
	mu    sync.Mutex // protects all below, and the callers' fields
	first *Age
}

// An Age is since when one caller waits.
type Age struct {
	since          time.Time
	before, behind *Age
}

// Begin says that a caller waits since then, until [Ages.End].
func (a *Ages) Begin(since time.Time) *Age {
	one := &Age{since: since}
	a.mu.Lock()
	defer a.mu.Unlock()
	if one.behind = a.first; one.behind != nil {
		one.behind.before = one
	}
	a.first = one
	return one
}

// End says that a caller waits no longer.
func (a *Ages) End(one *Age) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one.before != nil {
		one.before.behind = one.behind
	} else {
		a.first = one.behind
	}
	if one.behind != nil {
		one.behind.before = one.before
	}
}

// Longest returns how long the caller waits that has waited longest; zero: nobody does.
func (a *Ages) Longest(now time.Time) (longest time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for one := a.first; one != nil; one = one.behind {
		longest = max(longest, now.Sub(one.since))
	}
	return longest
}
