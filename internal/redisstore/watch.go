package redisstore

import (
	"sync"
	"time"
)

// Each call of a script is given up when its time is over. A timer of its own for each
// would be set and stopped for nothing, and to set one wakes the thread that waits for
// Redis's answers: one timer does for all, set for the call that ends first, and left
// to go off in vain if that has been answered.
type watch struct {
	mu          sync.Mutex // protects all below
	first, last *watched   // of those under way, in the order of their ends
	set         time.Time  // when the timer goes off; in the past if none is set
}

// A watched is a call under way. It is part of what it watches.
type watched struct {
	ends          time.Time
	over          func()
	before, after *watched
	under         bool // way: it is in the list
}

// begin watches a call: if it has not ended by then, over is called.
func (w *watch) begin(c *watched, now, ends time.Time, over func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.ends, c.over, c.under = ends, over, true
	// Most have the same time, so it is the last.
	c.before = w.last
	for c.before != nil && c.before.ends.After(ends) {
		c.before = c.before.before
	}
	if c.before == nil {
		c.after, w.first = w.first, c
	} else {
		c.after, c.before.after = c.before.after, c
	}
	if c.after == nil {
		w.last = c
	} else {
		c.after.before = c
	}
	if !w.set.After(now) || w.set.After(ends) {
		w.setFor(now, ends)
	}
}

// end ends the watch of a call.
func (w *watch) end(c *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.under {
		w.remove(c)
	}
}

// remove needs mu.
func (w *watch) remove(c *watched) {
	if c.before == nil {
		w.first = c.after
	} else {
		c.before.after = c.after
	}
	if c.after == nil {
		w.last = c.before
	} else {
		c.after.before = c.before
	}
	c.before, c.after, c.under = nil, nil, false
}

// setFor needs mu. A timer that was set for later goes off as well, and finds nothing.
func (w *watch) setFor(now, ends time.Time) {
	w.set = ends
	time.AfterFunc(ends.Sub(now), w.look)
}

// look ends the calls whose time is over.
func (w *watch) look() {
	now := time.Now()
	var over []func()
	w.mu.Lock()
	for w.first != nil && !w.first.ends.After(now) {
		over = append(over, w.first.over)
		w.remove(w.first)
	}
	if w.first != nil && (!w.set.After(now) || w.set.After(w.first.ends)) {
		w.setFor(now, w.first.ends)
	}
	w.mu.Unlock()
	for _, f := range over {
		f()
	}
}
