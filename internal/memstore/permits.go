package memstore

import (
	"maps"
	"slices"
	"time"

	"github.com/ration-go/ration/store"
)

// permits are those of one limit of calls in flight. lua/permits.lua is the same in Redis.
type permits struct {
	label   string
	lowered int   // the limit after refusals
	since   int64 // when it was lowered last; 0: it was not
	told    int64 // when it was last told that some are wanted
	workers map[string]*permitShare
}

// A permitShare is what one worker has of a limit.
type permitShare struct {
	used, wanted, share int
	knows               int // the share that it has said to know
	ends                int64
}

// counts returns how many permits the worker may have in use.
func (s *permitShare) counts() int { return max(s.used, s.share, s.knows) }

const (
	// turnMicros is how long who wants more than an even share has one of those that are over.
	turnMicros = int64(2 * time.Second / time.Microsecond)
	// tellMicros is how often it is told at most that permits are wanted.
	tellMicros = int64(100 * time.Millisecond / time.Microsecond)
)

// share gives a worker its share of a limit.
func (b *budget) share(worker string, r *store.PermitRequest, now int64) store.Permits {
	of := b.permits[r.Limit]
	if of == nil {
		of = &permits{workers: make(map[string]*permitShare)}
		if b.permits == nil {
			b.permits = make(map[string]*permits)
		}
		b.permits[r.Limit] = of
	}
	of.label = r.Label
	maps.DeleteFunc(of.workers, func(_ string, s *permitShare) bool { return s.ends <= now })
	own := of.workers[worker]
	if own == nil {
		own = new(permitShare)
	}
	before := own.counts()
	own.used, own.wanted, own.share, own.knows, own.ends = r.Used, max(r.Used, r.Wanted), 0, r.Share, now+store.PermitsFor.Microseconds()
	of.workers[worker] = own

	inFlight, taken := 0, 0
	for name, s := range of.workers {
		if inFlight += s.used; name != worker {
			taken += s.counts()
		}
	}
	most := r.Max
	if of.since > 0 {
		most = min(most, of.lowered+int((now-of.since)/store.RaisePermitsAfter.Microseconds()))
	}
	if r.Refused > 0 && now-of.since >= time.Second.Microseconds() { // as many as were served at the same time may be
		most = max(1, most-max(1, most*3/10), min(most-1, r.Used+taken-r.Refused))
		of.lowered, of.since = most, now
	}

	names := slices.Sorted(maps.Keys(of.workers))
	wants := make([]int, len(names))
	for i, name := range names {
		wants[i] = of.workers[name].wanted
	}
	turn := now / turnMicros
	own.share = max(0, min(store.FairShare(most, wants, slices.Index(names, worker), turn), most-taken))

	short, surplus := false, own.counts() < before
	for i, name := range names {
		s := of.workers[name]
		short = short || s.share < s.wanted
		surplus = surplus || name != worker && s.share > max(s.used, store.FairShare(most, wants, i, turn))
	}
	if short && surplus && now-of.told >= tellMicros {
		of.told = now
		for _, w := range b.watchers {
			w.told(store.News{Permits: r.Limit})
		}
	}
	reply := store.Permits{Limit: r.Limit, Label: r.Label, Share: own.share, Max: most, Used: inFlight, Short: short}
	if own.wanted == 0 && own.counts() == 0 {
		delete(of.workers, worker)
	}
	if len(of.workers) == 0 && of.since == 0 {
		delete(b.permits, r.Limit)
	}
	return reply
}

// leave returns the permits of a worker that has ended.
func (b *budget) leave(worker string) {
	for limit, of := range b.permits {
		if of.workers[worker] == nil {
			continue
		}
		if delete(of.workers, worker); len(of.workers) == 0 && of.since == 0 {
			delete(b.permits, limit)
		}
		for _, w := range b.watchers {
			w.told(store.News{Permits: limit})
		}
	}
}
