package memstore

import (
	"math"
	"sort"

	"github.com/ration-go/ration/internal/deque"
)

// A segment is entries of an account's log whose slots never decrease. In memory all
// exact logs are kept like this. lua/log.lua is the same in Redis, step by step;
// the comments there say why.
//
// Instants and durations are microseconds.
type segment struct {
	scopes  string // of the requests, between commas
	number  int    // among the segments of these scopes
	entries deque.List[logEntry]
	total   int64      // units ever booked
	last    int64      // no slot comes before it
	passed  []logEntry // cancelled slots that have passed, for the current decision
}

// A logEntry is one booking. Its before, the units booked before it, names it.
type logEntry struct {
	slot   int64
	before int64
	cost   int64
}

func (e logEntry) after() int64 { return e.before + e.cost }

const (
	maxCancelled   = 512
	maxSegments    = 8  // of the same scopes
	maxAllSegments = 72 // of all, beside the first of each scopes
	trimBatch      = 64
	maxCandidates  = 32
	searchBudget   = 512
	searchCost     = 4
	dayMicros      = 24 * 60 * 60 * 1_000_000
)

// spent returns the units that count of those booked from before on.
func (r *segment) spent(before int64) int64 {
	units := r.total - before
	for _, passed := range r.passed {
		if passed.before >= before {
			units -= passed.cost
		}
	}
	return units
}

// newest returns the slot of the newest entry that, with all that counts since
// it, is more than need units.
func (r *segment) newest(need int64) (slot int64, found bool) {
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
func (r *segment) since(slot int64) int64 {
	n := r.entries.Len()
	i := sort.Search(n, func(i int) bool { return r.entries.At(i).slot > slot })
	if i == n {
		return 0
	}
	return r.spent(r.entries.At(i).before)
}

// enter enters units behind all others.
func (r *segment) enter(slot, cost int64) logEntry {
	e := logEntry{slot: slot, before: r.total, cost: cost}
	r.entries.Push(e)
	r.total += cost
	r.last = slot
	return e
}

// find returns the place of an entry.
func (r *segment) find(e logEntry) (int, bool) {
	n := r.entries.Len()
	i := sort.Search(n, func(i int) bool { return r.entries.At(i).before >= e.before })
	return i, i < n && *r.entries.At(i) == e
}

// split makes an entry two.
func (r *segment) split(e logEntry, first int64) {
	i, found := r.find(e)
	if !found {
		return
	}
	rest := logEntry{slot: e.slot, before: e.before + first, cost: e.cost - first}
	r.entries.At(i).cost = first
	r.entries.Insert(i+1, rest)
}

// cut removes the last entry.
func (r *segment) cut() {
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
func (r *segment) trim(now, window, largest int64) (slot int64, removed bool) {
	if r.entries.Len() < trimBatch {
		return 0, false
	}
	e := *r.entries.At(trimBatch - 1)
	behind := r.total - e.after()
	for _, passed := range r.passed {
		behind -= passed.cost
	}
	if e.slot < now-window-dayMicros || (e.slot < now-window && behind >= largest) {
		r.entries.Drop(trimBatch)
		return e.slot, true
	}
	return 0, false
}

// after is since; each search counts down the budget.
func (r *segment) after(slot int64, budget *int) int64 {
	if slot >= r.last || r.entries.Len() == 0 {
		return 0
	}
	*budget--
	return r.since(slot)
}

// search is newest, or slot if there is none. It counts down the budget.
func (r *segment) search(need, slot int64, budget *int) int64 {
	*budget -= searchCost
	if at, found := r.newest(need); found {
		return at
	}
	return slot
}

// segments are those that one limit counts.
type segments []*segment

func (rs segments) since(slot int64) (units int64) {
	for _, r := range rs {
		units += r.since(slot)
	}
	return units
}

func (rs segments) last() (slot int64) {
	for _, r := range rs {
		slot = max(slot, r.last)
	}
	return slot
}

// endOfFirst returns the end of the segment of those scopes that ends first, if there may
// be no more segments: no booking of the scopes can come before it. Otherwise 0.
func (rs segments) endOfFirst(scopes string) int64 {
	count, first := 0, int64(math.MaxInt64)
	for _, r := range rs {
		if r.scopes == scopes {
			count, first = count+1, min(first, r.last)
		}
	}
	if count == 0 || (count < maxSegments && len(rs) < maxAllSegments) {
		return 0
	}
	return first
}

// A stretch is the part of a segment between two instants, by what counts after each.
type stretch struct {
	segment     *segment
	most, least int64
	units       int64 // after a slot between the two
}

// opens returns the first slot not before low after which no more than room units
// count up to the slot high.
func (rs segments) opens(low, high, room int64, budget *int) int64 {
	if len(rs) == 1 {
		return max(low, rs[0].search(rs[0].after(high, budget)+room, low, budget))
	}
	var few [8]stretch
	some, units := few[:0], int64(0)
	for _, r := range rs {
		one := stretch{segment: r, most: r.after(low, budget)}
		if one.most > 0 {
			one.least = r.after(high, budget)
		}
		if one.most > one.least {
			some, units = append(some, one), units+one.most-one.least
		}
	}
	if units <= room {
		return low
	}
	for turn := 0; len(some) > 1 && high-low > 1 && *budget > -2*searchBudget; turn++ {
		middle := low + (high-low)/2
		if turn%3 < 2 {
			middle = max(low+1, min(guess(some, units, room, turn%3 == 1, middle, budget), high-1))
		}
		behind := int64(0)
		for i := range some {
			some[i].units = some[i].segment.after(middle, budget)
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
		return some[0].segment.search(some[0].least+room, high, budget)
	}
	return high
}

// guess returns an instant by which the share of the longest segment has left that must leave
// of all of them; or, if again is set, one twice as far from the nearer end.
func guess(some []stretch, units, room int64, again bool, otherwise int64, budget *int) int64 {
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
	return longest.segment.search(longest.most-left, otherwise, budget)
}

// between returns the first slot in [from, until) at which no window holds more than
// room, if there is one and it need not be looked for any longer.
func (rs segments) between(from, until, room, window int64, budget *int) (slot int64, found bool) {
	last := rs.last()
	slot = from
	for place := 0; slot < until && place < maxCandidates; place++ {
		ends := max(slot, min(slot+window-1, last))
		for full := false; !full; {
			if *budget <= 0 {
				return 0, false
			}
			begins := rs.opens(slot-window, ends, room, budget)
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
func (rs segments) earliest(from, cost, most, window int64, budget *int) int64 {
	room, last := most-cost, rs.last()
	if last == 0 {
		return from
	}
	if slot, found := rs.between(from, last, room, window, budget); found {
		return slot
	}
	slot := max(from, last)
	return rs.opens(slot-window, slot, room, budget) + window
}

// earliestAt is earliest as of now: what has passed takes nothing from the search of
// what is ahead.
func (rs segments) earliestAt(now, from, cost, most, window int64, budget *int) int64 {
	if from < now && from < rs.last() {
		if slot, found := rs.between(from, now, most-cost, window, budget); found {
			return slot
		}
		from = now
	}
	return rs.earliest(from, cost, most, window, budget)
}

// usage returns the units used of a limit, and when the next is free.
func (rs segments) usage(now, most, window int64) (used, freeAt int64) {
	if used = rs.since(now - window); used == 0 {
		return 0, 0
	}
	budget := searchBudget
	return used, rs.opens(now-window, rs.last(), min(used, most)-1, &budget) + window
}
