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

// A Meter notes the stalls of its process.
type Meter struct {
	stop func() // ends the goroutine, and waits for it
	all  []Stall
}

// Start begins to note stalls.
func Start() *Meter {
	const nap = time.Millisecond
	m := new(Meter)
	stop := make(chan struct{})
	var asleep sync.WaitGroup
	asleep.Go(func() {
		ticker := time.NewTimer(nap)
		defer ticker.Stop()
		for {
			due := time.Now().Add(nap)
			ticker.Reset(nap)
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			if now := time.Now(); now.Sub(due) >= Least {
				m.all = append(m.all, Stall{due, now})
			}
		}
	})
	m.stop = sync.OnceFunc(func() { close(stop); asleep.Wait() })
	return m
}

// Stop ends the meter and returns what it noted, oldest first.
func (m *Meter) Stop() []Stall {
	m.stop()
	return m.all
}

// Within reports whether one of the stalls was longer than a margin and ended between two instants.
func Within(all []Stall, margin time.Duration, from, to time.Time) bool {
	return slices.ContainsFunc(all, func(s Stall) bool {
		return s.End.Sub(s.Begin) > margin && s.End.After(from) && s.Begin.Before(to)
	})
}
