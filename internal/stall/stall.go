// Package stall notes when a machine left a process waiting for longer than it had asked for. A judge
// of calls in short windows that was itself stopped cannot say which of them were too close.
package stall

import (
	"slices"
	"sync"
	"time"
)

// A Stall is a time in which a goroutine that wanted to run did not.
type Stall struct {
	Begin, End time.Time // when it wanted to run, and when it did
}

// Least is the shortest stall that is noted: a busy scheduler is late by less.
const Least = 5 * time.Millisecond

// Probe wakes each period until done, and calls woke with when it wanted to run and when it did.
func Probe(done <-chan struct{}, period time.Duration, woke func(due, now time.Time)) {
	timer := time.NewTimer(period)
	defer timer.Stop()
	for {
		due := time.Now().Add(period)
		timer.Reset(period)
		select {
		case <-done:
			return
		case <-timer.C:
			woke(due, time.Now())
		}
	}
}

// Note begins to note the stalls of this process. Its result ends that, and returns the stalls, oldest
// first; it is to be called once.
func Note() (stop func() []Stall) {
	var all []Stall
	var probing sync.WaitGroup
	done := make(chan struct{})
	probing.Go(func() {
		Probe(done, time.Millisecond, func(due, now time.Time) {
			if now.Sub(due) >= Least {
				all = append(all, Stall{due, now})
			}
		})
	})
	return func() []Stall {
		close(done)
		probing.Wait()
		return all
	}
}

// Within reports whether one of the stalls was longer than a margin and ended between two instants.
func Within(all []Stall, margin time.Duration, from, to time.Time) bool {
	return slices.ContainsFunc(all, func(s Stall) bool {
		return s.End.Sub(s.Begin) > margin && s.End.After(from) && s.Begin.Before(to)
	})
}
