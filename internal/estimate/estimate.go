// Package estimate reckons how many units a request will use from what others like it have used lately.
package estimate

import (
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/sweep"
)

const (
	// least is from how many uses on they are known well enough.
	least = 10
	// most is how many of the last ones count.
	most = 64
	// share is the part of them that used no more than is reckoned, in hundredths: of a higher part the largest of 64 would decide.
	share = 95
	// forgotten is how long after the last use of a kind nothing is known of it.
	forgotten = time.Hour
	// mostKinds is how many kinds are kept at once; of any further one nothing is known.
	mostKinds = 1000
)

// An Estimates has what requests have used, by their kind: those of one model, or endpoint. The zero Estimates knows nothing. It is safe
// for concurrent use.
type Estimates struct {
	mu    sync.Mutex // protects all
	kinds sweep.Map[string, *kind]
}

// A kind is what requests of one kind have used of each unit.
type kind struct {
	last time.Time
	used map[string]*uses
}

// Uses are the last of one unit.
type uses struct {
	ring [most]int
	n    int // how many there were
}

// Note notes that a request has used so many of a unit.
func (e *Estimates) Note(of, unit string, units int) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds.Sweep(func(_ string, k *kind) bool { return now.Sub(k.last) > forgotten })
	k := e.kinds.Get(of)
	if k == nil {
		if e.kinds.Len() >= mostKinds {
			return
		}
		k = &kind{used: make(map[string]*uses)}
		e.kinds.Set(of, k)
	}
	k.last = now
	u := k.used[unit]
	if u == nil {
		u = new(uses)
		k.used[unit] = u
	}
	u.ring[u.n%most] = units
	u.n++
}

// Of returns what a request of a kind will use: of each unit what 95 of 100 did not exceed, a little more so that not every request
// is reckoned otherwise than the one before, and where too few are known what the program says. said is not changed.
func (e *Estimates) Of(of string, said map[string]int) map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.kinds.Get(of)
	if k == nil || time.Since(k.last) > forgotten {
		return said
	}
	all := maps.Clone(said)
	for unit, u := range k.used {
		if u.n < least {
			continue
		}
		if all == nil {
			all = make(map[string]int)
		}
		all[unit] = u.reckon()
	}
	return all
}

func (u *uses) reckon() int {
	known := slices.Sorted(slices.Values(u.ring[:min(u.n, most)]))
	return roundUp(known[(share*len(known)+99)/100-1])
}

// roundUp rounds a number up to 4 binary digits, which is by less than an eighth.
func roundUp(n int) int {
	step := 1 << max(0, bits.Len(uint(n))-4)
	return (n + step - 1) / step * step
}
