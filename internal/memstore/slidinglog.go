package memstore

import (
	"math"
	"sort"

	"github.com/ration-go/ration/internal/deque"
)

// A run is entries of an account's log whose slots never decrease. In memory all
// exact logs are kept like this. lua/log.lua is the same in Redis, step by step;
// the comments there say why.
//
// Instants and durations are microseconds.
type run struct {
	scopes  string // of the requests, between commas
	number  int    // among the runs of these scopes
	entries deque.List[logEntry]
	total   int64      // units ever booked
	last    int64      // no slot comes before it
	passed  []logEntry // holes whose slot has passed, for the decision under way
}

// A logEntry is one booking. Its before, the units booked before it, names it.
type logEntry struct {
	slot   int64
	before int64
	cost   int64
}

func (e logEntry) after() int64 { return e.before + e.cost }

const (
	maxHoles    = 512
	maxRuns     = 8  // of the same scopes
	maxAllRuns  = 72 // of all, beside the first of each scopes
	trimBatch   = 64
	maxPlaces   = 32
	maxLooks    = 512
	searchLooks = 4
	dayMicros   = 24 * 60 * 60 * 1_000_000
)

// spent returns the units that count of those booked from before on.
func (r *run) spent(before int64) int64 {
	units := r.total - before
	for _, hole := range r.passed {
		if hole.before >= before {
			units -= hole.cost
		}
	}
	return units
}

// newest returns the slot of the newest entry that, with all that counts since
// it, is more than need units.
func (r *run) newest(need int64) (slot int64, found bool) {
	n := r.entries.Len()
	within := func(i int) bool { return i == n || r.spent(r.entries.At(i).before) <= need }
	if within(0) {
		return 0, false
	}
	// Where every entry costs a unit it is the one behind which need others are.
	at := n - int(min(need, int64(n))) - 1
	if at < 0 || within(at) || !within(at+1) {
		at = sort.Search(n, within) - 1
	}
	return r.entries.At(at).slot, true
}

// since returns the units that count with slots after the given one.
func (r *run) since(slot int64) int64 {
	n := r.entries.Len()
	i := sort.Search(n, func(i int) bool { return r.entries.At(i).slot > slot })
	if i == n {
		return 0
	}
	return r.spent(r.entries.At(i).before)
}

// enter enters units behind all others.
func (r *run) enter(slot, cost int64) logEntry {
	e := logEntry{slot: slot, before: r.total, cost: cost}
	r.entries.Push(e)
	r.total += cost
	r.last = slot
	return e
}

// find returns the place of an entry.
func (r *run) find(e logEntry) (int, bool) {
	n := r.entries.Len()
	i := sort.Search(n, func(i int) bool { return r.entries.At(i).before >= e.before })
	return i, i < n && *r.entries.At(i) == e
}

// split makes an entry two.
func (r *run) split(e logEntry, first int64) {
	i, found := r.find(e)
	if !found {
		return
	}
	rest := logEntry{slot: e.slot, before: e.before + first, cost: e.cost - first}
	r.entries.At(i).cost = first
	r.entries.Insert(i+1, rest)
}

// cut removes the last entry.
func (r *run) cut() {
	n := r.entries.Len() - 1
	r.total = r.entries.At(n).before
	r.entries.Pop()
	r.last = 0
	if n > 0 {
		r.last = r.entries.At(n - 1).slot
	}
}

// trim removes a batch of entries that can matter no more, and returns the last
// slot of it.
func (r *run) trim(now, window, largest int64) (slot int64, removed bool) {
	if r.entries.Len() < trimBatch {
		return 0, false
	}
	e := *r.entries.At(trimBatch - 1)
	behind := r.total - e.after()
	for _, hole := range r.passed {
		behind -= hole.cost
	}
	if e.slot < now-window-dayMicros || (e.slot < now-window && behind >= largest) {
		r.entries.Drop(trimBatch)
		return e.slot, true
	}
	return 0, false
}

// after is since, of which looks counts down how often it is to be found out.
func (r *run) after(slot int64, looks *int) int64 {
	if slot >= r.last || r.entries.Len() == 0 {
		return 0
	}
	*looks--
	return r.since(slot)
}

// search is newest, which looks counts down as well; slot if there is none.
func (r *run) search(need, slot int64, looks *int) int64 {
	*looks -= searchLooks
	if at, found := r.newest(need); found {
		return at
	}
	return slot
}

// runs are those that a limit counts.
type runs []*run

func (rs runs) since(slot int64) (units int64) {
	for _, r := range rs {
		units += r.since(slot)
	}
	return units
}

func (rs runs) last() (slot int64) {
	for _, r := range rs {
		slot = max(slot, r.last)
	}
	return slot
}

// endOfFirst returns when the first run of those scopes ends that another booking
// can be entered behind, where no more may be begun.
func (rs runs) endOfFirst(scopes string) int64 {
	count, first := 0, int64(math.MaxInt64)
	for _, r := range rs {
		if r.scopes == scopes {
			count, first = count+1, min(first, r.last)
		}
	}
	if count == 0 || (count < maxRuns && len(rs) < maxAllRuns) {
		return 0
	}
	return first
}

// A stretch is what counts of a run after its two ends.
type stretch struct {
	run         *run
	most, least int64
	units       int64 // after a slot between the two
}

// opens returns the first slot not before low after which no more than room units
// count up to the slot high.
func (rs runs) opens(low, high, room int64, looks *int) int64 {
	if len(rs) == 1 {
		return max(low, rs[0].search(rs[0].after(high, looks)+room, low, looks))
	}
	var few [8]stretch
	some, units := few[:0], int64(0)
	for _, r := range rs {
		one := stretch{run: r, most: r.after(low, looks)}
		if one.most > 0 {
			one.least = r.after(high, looks)
		}
		if one.most > one.least {
			some, units = append(some, one), units+one.most-one.least
		}
	}
	if units <= room {
		return low
	}
	for turn := 0; len(some) > 1 && high-low > 1 && *looks > -2*maxLooks; turn++ {
		middle := low + (high-low)/2
		if turn%3 < 2 {
			middle = max(low+1, min(guess(some, units, room, turn%3 == 1, middle, looks), high-1))
		}
		behind := int64(0)
		for i := range some {
			some[i].units = some[i].run.after(middle, looks)
			behind += some[i].units - some[i].least
		}
		later, left := behind > room, some[:0]
		for _, one := range some {
			if later {
				one.most = one.units
			} else {
				one.least = one.units
			}
			if one.most > one.least {
				left = append(left, one)
			}
		}
		some = left
		if later {
			low, units = middle, behind
		} else {
			high, units, room = middle, units-behind, room-behind
		}
	}
	if len(some) == 1 {
		return some[0].run.search(some[0].least+room, high, looks)
	}
	return high
}

// guess returns where in the run that has the most entries so many of them have left as
// of all are to have left; or one as far again from the end.
func guess(some []stretch, units, room int64, again bool, otherwise int64, looks *int) int64 {
	longest := &some[0]
	for i := range some {
		if one := &some[i]; one.most-one.least > longest.most-longest.least {
			longest = one
		}
	}
	part := float64(units-room) / float64(units)
	switch {
	case again && part < 0.5:
		part = 2 * part
	case again:
		part = 2*part - 1
	}
	left := max(1, int64(math.Ceil(float64(longest.most-longest.least)*part)))
	return longest.run.search(longest.most-left, otherwise, looks)
}

// between returns the first slot in [from, until) at which no window holds more than
// room, if there is one and it need not be looked for any longer.
func (rs runs) between(from, until, room, window int64, looks *int) (slot int64, found bool) {
	last := rs.last()
	slot = from
	for place := 0; slot < until && place < maxPlaces; place++ {
		ends := max(slot, min(slot+window-1, last))
		for full := false; !full; {
			if *looks <= 0 {
				return 0, false
			}
			begins := rs.opens(slot-window, ends, room, looks)
			if begins == slot-window {
				return slot, true
			}
			full = begins > ends-window
			ends = begins + window - 1
		}
		slot = ends + 1
	}
	return 0, false
}

// earliest returns the first slot not before from at which no window holds more
// than most with the new booking in it.
func (rs runs) earliest(from, cost, most, window int64, looks *int) int64 {
	room, last := most-cost, rs.last()
	if last == 0 {
		return from
	}
	if slot, found := rs.between(from, last, room, window, looks); found {
		return slot
	}
	slot := max(from, last)
	return rs.opens(slot-window, slot, room, looks) + window
}

// earliestAt is earliest as of now: what has passed takes nothing from the search of
// what is ahead.
func (rs runs) earliestAt(now, from, cost, most, window int64, looks *int) int64 {
	if from < now && from < rs.last() {
		if slot, found := rs.between(from, now, most-cost, window, looks); found {
			return slot
		}
		from = now
	}
	return rs.earliest(from, cost, most, window, looks)
}

// usage returns the units used of a limit, and when the next is free.
func (rs runs) usage(now, most, window int64) (used, freeAt int64) {
	if used = rs.since(now - window); used == 0 {
		return 0, 0
	}
	looks := maxLooks
	return used, rs.opens(now-window, rs.last(), min(used, most)-1, &looks) + window
}
