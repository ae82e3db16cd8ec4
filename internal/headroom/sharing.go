package headroom

import (
	"sync"
	"time"
)

const (
	// firstShare is the share of a limit that is left to competing clients at first, and mostShare the
	// largest.
	firstShare = 0.1
	mostShare  = 0.5
	// After quietWindows windows without external usage the share is halved, or given up if it is
	// firstShare.
	quietWindows = 3
	// Units that are missing once may have been spent long ago: the second time is at least a
	// missingAgain-th of the longest window later.
	missingAgain = 50
)

// Sharing decides what share of an account's limits is left to competing clients. Each method returns the
// share to leave from now on, and whether that is another. The zero Sharing is ready, and safe for
// concurrent use.
type Sharing struct {
	mu       sync.Mutex // protects all below
	seen     time.Time  // when external usage was seen last
	enlarged time.Time  // when a throttled response enlarged the share last
	missing  time.Time  // when units were first missing; zero: not since the share was given up
}

// Refused notes a throttled response that the log did not foresee. All calls in flight are throttled
// together: that counts once. The window is the longest of the limits.
func (s *Sharing) Refused(share float64, window time.Duration, now time.Time) (float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = now
	if now.Sub(s.enlarged) <= window/4 {
		return share, false
	}
	s.enlarged = now
	return min(max(firstShare, 2*share), mostShare), true
}

// Missing notes that the log lacked units that the provider had counted.
func (s *Sharing) Missing(share float64, window time.Duration, now time.Time) (float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = now
	if s.missing.IsZero() {
		s.missing = now
		return share, false
	}
	if share > 0 || now.Sub(s.missing) < window/missingAgain {
		return share, false
	}
	return firstShare, true
}

// Quiet notes a response without external usage. The share is left since an instant.
func (s *Sharing) Quiet(share float64, since time.Time, window time.Duration, now time.Time) (float64, bool) {
	if share == 0 {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet(since, now) <= quietWindows*window {
		return share, false
	}
	s.seen = now
	if share /= 2; share < 0.9*firstShare { // about half of firstShare: limits are rounded
		share, s.missing = 0, time.Time{}
	}
	return share, true
}

// Ends reports whether the last window has begun behind which the share is reduced if no external usage is
// seen: the time to look closely.
func (s *Sharing) Ends(share float64, since time.Time, window time.Duration, now time.Time) bool {
	if share == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quiet(since, now) > (quietWindows-1)*window
}

// quiet returns for how long no external usage was seen while the share was left. It needs mu.
func (s *Sharing) quiet(since, now time.Time) time.Duration {
	return min(now.Sub(s.seen), now.Sub(since))
}
