// Package watch keeps one watch of a store for all callers that wait.
package watch

import (
	"context"
	"sync"
	"time"
)

// Linger is how long a watch goes on when nobody waits any more. A worker whose callers wait
// now and then would otherwise begin a watch for each.
const Linger = 3 * time.Second

// A Watch is the watch of one budget. The zero Watch is ready.
type Watch struct {
	mu      sync.Mutex // protects all below
	waiting int        // callers
	stop    func()     // ends the watch; nil: there is none
	since   time.Time  // when waiting became zero
	timer   *time.Timer
}

// Begin says that a caller waits from now on, until it calls End. The first has start begin
// the watch, which returns how to stop it.
func (w *Watch) Begin(start func() (stop func())) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting++
	if w.stop == nil {
		w.stop = start()
	}
}

// End says that a caller waits no longer.
func (w *Watch) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting--; w.waiting > 0 {
		return
	}
	w.since = time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(Linger, w.stopIfIdle)
	}
}

// stopIfIdle ends the watch if nobody has waited for Linger.
func (w *Watch) stopIfIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left := Linger - time.Since(w.since); w.waiting > 0 {
		w.timer = nil // the next End sets it
	} else if left > 0 {
		w.timer.Reset(left)
	} else {
		w.stop()
		w.stop, w.timer = nil, nil
	}
}

// Every calls f every so often until stop is called, which ends the context. No goroutine waits
// meanwhile.
func Every(length time.Duration, f func(ctx context.Context)) (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	var mu sync.Mutex // or f could end, and begin the timer again, behind a stop
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(length, func() {
		f(ctx)
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			timer.Reset(length)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		end()
		timer.Stop()
	}
}
