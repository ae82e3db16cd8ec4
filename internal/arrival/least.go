package arrival

import (
	"sync"
	"time"
)

// period is for how long, and at most twice as long, the least of some times counts: routes change.
const period = time.Minute

// A Least keeps the least of the times that something took, of the last one to two minutes: how far away
// it is. What took longer than that waited for something else. A machine that is busy for seconds does not
// make it grow. The zero Least has seen nothing. It is safe for concurrent use.
type Least struct {
	mu          sync.Mutex    // protects all below
	now, before time.Duration // of this period and of the last one
	begun       time.Time     // when this period began; zero: long ago
}

// Note takes in that something took so long, until now, and returns the least.
func (l *Least) Note(took time.Duration, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch passed := now.Sub(l.begun); {
	case passed > 2*period:
		l.now, l.before, l.begun = took, took, now
	case passed > period:
		l.now, l.before, l.begun = took, l.now, now
	}
	l.now = min(l.now, took)
	return min(l.now, l.before)
}

// Value returns the least; zero: nothing was seen.
func (l *Least) Value() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.now, l.before)
}
