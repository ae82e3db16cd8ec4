package ration

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
)

// rates counts what a process's callers got, and says how much of it was lately. It may be used by several goroutines at once.
type rates struct {
	slots, refused atomic.Int64

	mu   sync.Mutex
	past []rateSample // the oldest first: one is older than a minute at most
}

// A rateSample is what was counted up to an instant.
type rateSample struct {
	at             time.Time
	slots, refused int64
}

// Rates are over so long: those of slots are of the present, and refusals are rare.
const (
	slotsOver    = 10 * time.Second
	refusalsOver = time.Minute
)

// since returns the youngest sample that is at least so old, or the oldest. There is one.
func (r *rates) since(now time.Time, age time.Duration) rateSample {
	i := len(r.past) - 1
	for i > 0 && now.Sub(r.past[i].at) < age {
		i--
	}
	return r.past[i]
}

// add adds the rates to a load.
func (r *rates) add(load *store.Load, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sample := rateSample{now, r.slots.Load(), r.refused.Load()}
	if len(r.past) > 0 {
		before := r.since(now, slotsOver)
		// Some calls within a millisecond are no thousands a second.
		load.SlotsPerSecond = float64(sample.slots-before.slots) / max(now.Sub(before.at), time.Second).Seconds()
		load.RefusedLastMinute = int(sample.refused - r.since(now, refusalsOver).refused)
	}
	// Who asks often leaves no more samples than who asks once a second.
	if len(r.past) == 0 || now.Sub(r.past[len(r.past)-1].at) >= time.Second {
		r.past = append(r.past, sample)
	}
	if old := slices.IndexFunc(r.past, func(s rateSample) bool { return now.Sub(s.at) < refusalsOver }); old > 1 {
		r.past = slices.Delete(r.past, 0, old-1)
	}
}
