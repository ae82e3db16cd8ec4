package ration

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A lead is how long before a slot something is begun that must be done when the slot comes: what it has taken in the last
// seconds but for one time of eight. A budget has two. It asks for slots so long before them, counted from when the store reads its
// clock, and begins to wake callers so long before theirs. A lead is zero but where the machine, or the store, has more to do
// than it can, or the store is far away. Where fewer than one time of eight is late, as where replies are lost, it stays
// zero: it keeps each caller waiting, and being late costs one slot. The zero lead is ready, and safe for concurrent use.
type lead struct {
	length atomic.Int64 // a time.Duration
	quick  atomic.Int64 // how many were in time with a lead of zero, since latest was changed

	mu           sync.Mutex // protects all below
	begun        time.Time  // of the seconds of latest
	latest, last tookCounts
}

// tookCounts count what some took, in steps: how many took up to 1 ms, 1.25 ms, 1.25^2 ms and so on, up to 20 minutes.
type tookCounts [64]int64

const (
	// mostLead is how many times as long as what a slow way to the provider may cost a lead is at most: a quarter of the
	// shortest window.
	mostLead = delayShare / 4
	// leadFor is for how long what was noted counts at least, and half of how long at most.
	leadFor = 2 * time.Second
	// leadStep is the next step of tookCounts by the one before, and lateShare the share that may be late.
	leadStep, lateShare = 1.25, 0.12
)

// note takes in that it took so long, for a slot of an account so long after it was begun. Beyond the account's tolerance the
// caller could not use a slot that had come. Slots that lie further ahead than the lead tell nothing, as nobody waits for their
// answers, nor does the answer to a booking that was made before, nor what took longer than any lead: of a process that
// was stopped, it would keep callers waiting long after.
func (l *lead) note(took, wait time.Duration, of *budgetAccount, now time.Time) {
	length, tolerance, most := time.Duration(l.length.Load()), of.tolerance, mostLead*of.mostDelay
	switch {
	case tolerance == 0 || wait < 0 || wait > length || took > most:
		return
	case took <= tolerance/2 && length == 0:
		l.quick.Add(1)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	l.latest[0] += l.quick.Swap(0) // the quick ones as if they had taken no time
	step := 0
	if took > time.Millisecond {
		step = min(len(l.latest)-1, int(math.Ceil(math.Log(float64(took)/float64(time.Millisecond))/math.Log(leadStep))))
	}
	l.latest[step]++
	if length = l.most(lateShare); length <= tolerance/2 {
		length = 0
	}
	l.length.Store(int64(min(most, length)))
}

// most returns what it took each time but for that share. It needs mu.
func (l *lead) most(share float64) time.Duration {
	all := 0.0
	for i := range l.latest {
		all += float64(l.latest[i] + l.last[i])
	}
	for i := len(l.latest) - 1; i > 0; i-- {
		if share -= float64(l.latest[i]+l.last[i]) / all; share < 0 {
			return time.Duration(math.Pow(leadStep, float64(i)) * float64(time.Millisecond))
		}
	}
	return 0
}

// turn forgets what is too old. It needs mu.
func (l *lead) turn(now time.Time) {
	switch passed := now.Sub(l.begun); {
	case passed >= 2*leadFor:
		l.begun, l.latest, l.last = now, tookCounts{}, tookCounts{}
	case passed >= leadFor:
		l.begun, l.latest, l.last = now, tookCounts{}, l.latest
	}
}

// of returns the lead of a request that is sent now.
func (l *lead) of() time.Duration {
	if l.length.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn(time.Now()); l.latest == (tookCounts{}) && l.last == (tookCounts{}) {
		l.length.Store(0)
	}
	return time.Duration(l.length.Load())
}
