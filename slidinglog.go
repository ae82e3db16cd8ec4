package ration

import (
	"math"
	"sort"
)

// A run is entries of an account's log whose slots never decrease. In memory all
// exact logs are kept like this. lua/log.lua is the same in Redis, step by step;
// the comments there say why.
//
// Instants and durations are microseconds.
type run struct {
	scopes  string // of the requests, between commas
	number  int    // among the runs of these scopes
	entries blockList[logEntry]
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
	maxHoles  = 512
	maxRuns   = 8
	trimBatch = 64
	maxPlaces = 32
	maxLooks  = 512
	dayMicros = 24 * 60 * 60 * 1_000_000
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
	n := r.entries.len()
	within := func(i int) bool { return i == n || r.spent(r.entries.at(i).before) <= need }
	if within(0) {
		return 0, false
	}
	// Where every entry costs a unit it is the one behind which need others are.
	at := n - int(min(need, int64(n))) - 1
	if at < 0 || within(at) || !within(at+1) {
		at = sort.Search(n, within) - 1
	}
	return r.entries.at(at).slot, true
}

// since returns the units that count with slots after the given one.
func (r *run) since(slot int64) int64 {
	n := r.entries.len()
	i := sort.Search(n, func(i int) bool { return r.entries.at(i).slot > slot })
	if i == n {
		return 0
	}
	return r.spent(r.entries.at(i).before)
}

// enter enters units behind all others.
func (r *run) enter(slot, cost int64) logEntry {
	e := logEntry{slot: slot, before: r.total, cost: cost}
	r.entries.push(e)
	r.total += cost
	r.last = slot
	return e
}

// find returns the place of an entry.
func (r *run) find(e logEntry) (int, bool) {
	n := r.entries.len()
	i := sort.Search(n, func(i int) bool { return r.entries.at(i).before >= e.before })
	return i, i < n && *r.entries.at(i) == e
}

// split makes an entry two.
func (r *run) split(e logEntry, first int64) {
	i, found := r.find(e)
	if !found {
		return
	}
	rest := logEntry{slot: e.slot, before: e.before + first, cost: e.cost - first}
	r.entries.at(i).cost = first
	r.entries.insert(i+1, rest)
}

// cut removes the last entry.
func (r *run) cut() {
	n := r.entries.len() - 1
	r.total = r.entries.at(n).before
	r.entries.pop()
	r.last = 0
	if n > 0 {
		r.last = r.entries.at(n - 1).slot
	}
}

// trim removes a batch of entries that can matter no more, and returns the last
// slot of it.
func (r *run) trim(now, window, largest int64) (slot int64, removed bool) {
	if r.entries.len() < trimBatch {
		return 0, false
	}
	e := *r.entries.at(trimBatch - 1)
	behind := r.total - e.after()
	for _, hole := range r.passed {
		behind -= hole.cost
	}
	if e.slot < now-window-dayMicros || (e.slot < now-window && behind >= largest) {
		r.entries.drop(trimBatch)
		return e.slot, true
	}
	return 0, false
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
	if count < maxRuns {
		return 0
	}
	return first
}

// leaves returns the slot at which, of all that counts after the given one, so
// many units have been booked.
func (rs runs) leaves(slot, units int64) int64 {
	most := rs.since(slot) - units
	if len(rs) == 1 {
		at, _ := rs[0].newest(most)
		return at
	}
	span := rs.last() - slot
	return slot + 1 + int64(sort.Search(int(span-1), func(i int) bool { return rs.since(slot+1+int64(i)) <= most }))
}

// full returns the end of a window that ends in [low, high] and holds more than
// room, and how much; the latest that there is.
func (rs runs) full(low, high, window, room int64, looks *int) (at, units int64, found bool) {
	*looks--
	units = rs.since(low-window) - rs.since(high)
	if units <= room {
		return 0, 0, false
	}
	if low == high || *looks <= 0 {
		return low, units, true
	}
	middle := low + (high-low)/2
	if at, units, found = rs.full(middle+1, high, window, room, looks); found {
		return at, units, true
	}
	return rs.full(low, middle, window, room, looks)
}

// between returns the first slot in [from, until) at which no window holds more than
// room, if there is one and it need not be looked for any longer.
func (rs runs) between(from, until, room, window int64) (slot int64, found bool) {
	looks, last := maxLooks, rs.last()
	slot = from
	for place := 0; slot < until && place < maxPlaces && looks > 0; place++ {
		at, units, full := rs.full(slot, max(slot, min(slot+window-1, last)), window, room, &looks)
		if !full {
			return slot, true
		}
		slot = max(slot+1, rs.leaves(at-window, units-room)+window)
	}
	return 0, false
}

// earliest returns the first slot not before from at which no window holds more
// than most with the new booking in it.
func (rs runs) earliest(from, cost, most, window int64) int64 {
	room, last := most-cost, rs.last()
	if last == 0 {
		return from
	}
	if len(rs) == 1 && from >= last {
		if slot, found := rs[0].newest(room); found {
			return max(from, slot+window)
		}
		return from
	}
	if slot, found := rs.between(from, last, room, window); found {
		return slot
	}
	slot := max(from, last)
	if units := rs.since(slot - window); units > room {
		slot = max(slot, rs.leaves(slot-window, units-room)+window)
	}
	return slot
}

// earliestAt is earliest as of now: what has passed takes nothing from the search of
// what is ahead.
func (rs runs) earliestAt(now, from, cost, most, window int64) int64 {
	if from < now && from < rs.last() {
		if slot, found := rs.between(from, now, most-cost, window); found {
			return slot
		}
		from = now
	}
	return rs.earliest(from, cost, most, window)
}

// usage returns the units used of a limit, and when the next is free.
func (rs runs) usage(now, most, window int64) (used, freeAt int64) {
	if used = rs.since(now - window); used == 0 {
		return 0, 0
	}
	return used, rs.leaves(now-window, max(1, used-most+1)) + window
}
