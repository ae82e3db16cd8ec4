package observe

import (
	"sync"
	"time"
)

// Resets are the ends of an account's windows as the store was told them last. The zero Resets are ready,
// and safe for concurrent use.
type Resets struct {
	mu   sync.Mutex // protects ends
	ends []time.Time
}

// IsNews notes the end of a limit's window that a response said, and reports whether it is another than
// the one that was noted before.
func (r *Resets) IsNews(o Observation, end time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, make([]time.Time, max(0, o.Limit+1-len(r.ends)))...)
	if end.Sub(r.ends[o.Limit]).Abs() <= time.Second/2+o.ResetWithin() {
		return false
	}
	r.ends[o.Limit] = end
	return true
}
