package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ration-go/ration/store"
)

// deadlines calls a function for each call of a script that takes too long. It has one
// timer for all of them, set for the call that ends first: a timer for each call would
// most often be set and stopped for nothing, and setting one wakes the thread that waits
// for Redis's replies. The timer is left to go off in vain if the call has ended by then.
type deadlines struct {
	mu          sync.Mutex // protects all below
	first, last *deadline  // of the calls under way, in the order of their deadlines
	timer       time.Time  // when the timer goes off; in the past if none is set
}

// A deadline is that of one call, and part of it.
type deadline struct {
	at            time.Time
	passed        func()
	before, after *deadline
	pending       bool // it is in the list
}

// add has passed called at that instant, unless remove comes before.
func (d *deadlines) add(one *deadline, now, at time.Time, passed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one.at, one.passed, one.pending = at, passed, true
	// Most calls have the same timeout, so this one is the last.
	one.before = d.last
	for one.before != nil && one.before.at.After(at) {
		one.before = one.before.before
	}
	if one.before == nil {
		one.after, d.first = d.first, one
	} else {
		one.after, one.before.after = one.before.after, one
	}
	if one.after == nil {
		d.last = one
	} else {
		one.after.before = one
	}
	if !d.timer.After(now) || d.timer.After(at) {
		d.setTimer(now, at)
	}
}

// remove does nothing if the deadline has passed.
func (d *deadlines) remove(one *deadline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !one.pending {
		return
	}
	if one.before == nil {
		d.first = one.after
	} else {
		one.before.after = one.after
	}
	if one.after == nil {
		d.last = one.before
	} else {
		one.after.before = one.before
	}
	one.before, one.after, one.pending = nil, nil, false
}

// setTimer needs mu. A timer that was set for later goes off as well, and finds nothing.
func (d *deadlines) setTimer(now, at time.Time) {
	d.timer = at
	time.AfterFunc(at.Sub(now), d.expire)
}

// expire ends the calls whose deadlines have passed.
func (d *deadlines) expire() {
	now := time.Now()
	var passed []func()
	d.mu.Lock()
	for d.first != nil && !d.first.at.After(now) {
		one := d.first
		passed = append(passed, one.passed)
		if d.first = one.after; d.first == nil {
			d.last = nil
		} else {
			d.first.before = nil
		}
		one.after, one.pending = nil, false
	}
	if d.first != nil && (!d.timer.After(now) || d.timer.After(d.first.at)) {
		d.setTimer(now, d.first.at)
	}
	d.mu.Unlock()
	for _, f := range passed {
		f()
	}
}

const defaultTimeout = 2 * time.Second

func (s *Store) timeout() time.Duration {
	if s.Timeout <= 0 {
		return defaultTimeout
	}
	return s.Timeout
}

func (s *Store) timeoutError(op string) error {
	return &store.StoreError{Op: op, Err: fmt.Errorf("no answer within %v: %w", s.timeout(), context.DeadlineExceeded)}
}
