// Package lead works out how long before a slot something must begin that is to be done when the slot comes.
package lead

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A lead is what it has taken lately, but
// for a share of times that may be late. The zero lead is ready, and safe for concurrent use.
type lead struct {
	length atomic.Int64 // a time.Duration
	quick  atomic.Int64 // how many were in time with a lead of zero, since latest was changed

	mu           sync.Mutex    // protects all below
	counts       time.Duration // for how long what was noted counts at least, and half of how long at most
	begun        time.Time     // when latest began
	latest, last tookCounts
}

// tookCounts count what some took, in steps: how many took up to 1 ms, 1.25 ms, 1.25^2 ms and so on, up to 20 minutes.
type tookCounts [64]int64

// step is the next one of tookCounts by the one before.
const step = 1.25

// Bounds are what a lead must keep with an account.
type Bounds struct {
	// Tolerance is how late after its slot a caller may leave; 0: as late as it likes, and no lead is needed.
	Tolerance time.Duration
	// Most is the longest lead.
	Most time.Duration
}

// note takes in that it took so long. Beyond the tolerance the caller could not use a slot that had come. What took
// longer than any lead tells nothing: of a process that was stopped, it would keep callers waiting long after. It counts for
// that long at least, and that share of times may be late.
func (l *lead) note(took time.Duration, of Bounds, now time.Time, counts time.Duration, late float64) {
	length := time.Duration(l.length.Load())
	switch {
	case length == 0 && (of.Tolerance == 0 || took <= of.Tolerance/2):
		l.quick.Add(1)
		return
	case of.Tolerance == 0 || took > of.Most:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts = counts
	l.turn(now)
	l.latest[0] += l.quick.Swap(0) // the quick ones as if they had taken no time
	at := 0
	if took > time.Millisecond {
		at = min(len(l.latest)-1, int(math.Ceil(math.Log(float64(took)/float64(time.Millisecond))/math.Log(step))))
	}
	l.latest[at]++
	if length = l.most(late); length <= of.Tolerance/2 {
		length = 0
	}
	l.length.Store(int64(min(of.Most, length)))
}

// most returns what it took each time but for that share. It needs mu.
func (l *lead) most(share float64) time.Duration {
	all := 0.0
	for i := range l.latest {
		all += float64(l.latest[i] + l.last[i])
	}
	for i := len(l.latest) - 1; i > 0; i-- {
		if share -= float64(l.latest[i]+l.last[i]) / all; share < 0 {
			return time.Duration(math.Pow(step, float64(i)) * float64(time.Millisecond))
		}
	}
	return 0
}

// turn forgets what is too old. It needs mu.
func (l *lead) turn(now time.Time) {
	switch passed := now.Sub(l.begun); {
	case passed >= 2*l.counts:
		l.begun, l.latest, l.last = now, tookCounts{}, tookCounts{}
	case passed >= l.counts:
		l.begun, l.latest, l.last = now, tookCounts{}, l.latest
	}
}

// Of returns the lead of what is begun now.
func (l *lead) Of() time.Duration {
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

// An Ask is how long before its slot a process asks for it, so that the answer is there when the slot comes, counted from when
// the store reads its clock. It is zero but where the machine, or the store, has more to do than it can, or the store is far
// away. Where fewer than one of eight answers is late, as where replies are lost, it stays zero: it keeps each caller
// waiting, and a late answer costs one slot.
type Ask struct{ lead }

// Note takes in that an answer took so long, with a slot so long after the store was asked. Slots that lie further ahead than the
// lead tell nothing, as nobody waits for their answers, nor does the answer to a booking that was made before.
func (l *Ask) Note(took, wait time.Duration, of Bounds, now time.Time) {
	if wait >= 0 && wait <= time.Duration(l.length.Load()) {
		l.lead.note(took, of, now, 2*time.Second, 0.12)
	}
}

// A Wake is how long before their slots callers are woken. It costs no time, as each caller waits for the rest, so it goes by
// all but the slowest, and for as long as it may take until a crowd wakes again.
type Wake struct{ lead }

const (
	// FirstWake is the lead until FirstWakes callers have woken.
	FirstWake, FirstWakes = 10 * time.Millisecond, 64
	// MostWake bounds the lead. A machine that takes longer has more callers than it can wake, and waking them earlier is only
	// more to do.
	MostWake = 50 * time.Millisecond
)

// Note takes in that a caller is ready to leave so long after it was woken, or that it is too late now to wake one.
func (l *Wake) Note(took time.Duration, of Bounds, now time.Time) {
	l.lead.note(took, of, now, 30*time.Second, 0.02)
}

// Of returns how long before their slots callers are woken.
func (l *Wake) Of() time.Duration {
	if l.length.Load() == 0 && l.quick.Load() < FirstWakes {
		return FirstWake
	}
	if length := l.lead.Of(); length <= MostWake {
		return length
	}
	return 0
}
