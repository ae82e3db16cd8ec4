package observe

import (
	"sync"
	"time"
)

// A Report is what a response has said is left of a limit.
type Report struct {
	// Left is in units.
	Left int
	// At is when, on the store's clock. Zero: none has said anything.
	At time.Time
}

// Reports keeps the last report of each limit of an account. The zero Reports has none. It is safe
// for concurrent use.
type Reports struct {
	mu   sync.Mutex // protects last
	last map[int]Report
}

// Note notes what a response says that was read at that instant.
func (r *Reports) Note(observed []Observation, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range observed {
		if o.Left < 0 {
			continue
		}
		if r.last == nil {
			r.last = make(map[int]Report)
		}
		r.last[o.Limit] = Report{o.Left, at}
	}
}

// Of returns the last report of the limit with that index.
func (r *Reports) Of(limit int) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[limit]
}
