// Package rates counts what a process's callers got.
package rates

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
)

// Rates count what a process's callers got, and say how much of it was lately. The zero Rates have counted nothing. They may be used by
// several goroutines at once.
type Rates struct {
	// Slots is how many slots they got, and Refused how many responses refused a call.
	Slots, Refused atomic.Int64

	mu   sync.Mutex // protects all below
	past []reading  // the oldest first: one is older than a minute at most
}

// A reading is what was counted up to an instant.
type reading struct {
	at             time.Time
	slots, refused int64
}

// Rates are over so long: those of slots are of the present, and refusals are rare.
const (
	slotsOver    = 10 * time.Second
	refusalsOver = time.Minute
)

// since returns the youngest reading that is at least so old, or the oldest. There is one.
func (r *Rates) since(now time.Time, age time.Duration) reading {
	i := len(r.past) - 1
	for i > 0 && now.Sub(r.past[i].at) < age {
		i--
	}
	return r.past[i]
}

// Add adds the rates to a load.
func (r *Rates) Add(load *store.Load, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sample := reading{now, r.Slots.Load(), r.Refused.Load()}
	if len(r.past) > 0 {
		before := r.since(now, slotsOver)
		// Some calls within a millisecond are no thousands a second.
		load.SlotsPerSecond = float64(sample.slots-before.slots) / max(now.Sub(before.at), time.Second).Seconds()
		load.RefusedLastMinute = int(sample.refused - r.since(now, refusalsOver).refused)
	}
	// Who asks often leaves no more readings than who asks once a second.
	if len(r.past) == 0 || now.Sub(r.past[len(r.past)-1].at) >= time.Second {
		r.past = append(r.past, sample)
	}
	if old := slices.IndexFunc(r.past, func(s reading) bool { return now.Sub(s.at) < refusalsOver }); old > 1 {
		r.past = slices.Delete(r.past, 0, old-1)
	}
}
