package ration

import (
	"slices"
	"sort"
)

// slidingLog is the exact log of one account in memory. lua/slidinglog.lua is
// the same in Redis, step by step; the comments there say why.
//
// Instants and durations are microseconds.
type slidingLog struct {
	entries []logEntry // in the order of booking, which is that of slots
	holes   []logEntry // entries that were handed back, in the same order
	total   int64      // units ever booked
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
	trimBatch = 64
	dayMicros = 24 * 60 * 60 * 1_000_000
)

// span is a limit in the log's units.
type span struct{ max, window int64 }

// spans is a set of limits that are kept at once.
type spans struct {
	list    []span
	most    int64 // the smallest Max: the largest cost
	largest int64 // the largest Max
	window  int64 // the longest Window
}

func newSpans(limits []Limit) spans {
	s := spans{most: maxUnits}
	for _, l := range limits {
		one := span{max: int64(l.Max), window: l.Window.Microseconds()}
		s.list = append(s.list, one)
		s.most = min(s.most, one.max)
		s.largest = max(s.largest, one.max)
		s.window = max(s.window, one.window)
	}
	return s
}

// last returns the slot that none comes before.
func (l *slidingLog) last() int64 {
	if len(l.entries) == 0 {
		return 0
	}
	return l.entries[len(l.entries)-1].slot
}

// passed returns the cost of the holes that have passed unused, from the entry
// that has the given units before it.
func (l *slidingLog) passed(now, before int64) int64 {
	var sum int64
	for i := len(l.holes) - 1; i >= 0 && l.holes[i].before >= before; i-- {
		if l.holes[i].slot < now {
			sum += l.holes[i].cost
		}
	}
	return sum
}

// spent returns the units that count from the i-th entry on.
func (l *slidingLog) spent(now int64, i int) int64 {
	before := l.entries[i].before
	return l.total - before - l.passed(now, before)
}

// blocker returns the slot of the newest entry that, with all that counts since
// it, is more than need units.
func (l *slidingLog) blocker(now, need int64) (slot int64, found bool) {
	n := len(l.entries)
	i := sort.Search(n, func(i int) bool { return l.spent(now, i) <= need })
	if i == 0 {
		return 0, false
	}
	return l.entries[i-1].slot, true
}

// earliest returns the smallest slot that keeps the order and every limit.
func (l *slidingLog) earliest(now int64, limits spans, cost int64) int64 {
	slot := l.last()
	for _, limit := range limits.list {
		if from, found := l.blocker(now, limit.max-cost); found {
			slot = max(slot, from+limit.window)
		}
	}
	return slot
}

// handedBack returns the index of the first hole of at least cost units that
// does not come before from, or -1.
func (l *slidingLog) handedBack(cost, from int64) int {
	return slices.IndexFunc(l.holes, func(h logEntry) bool { return h.slot >= from && h.cost >= cost })
}

// take books the i-th hole, or as much of it as cost is.
func (l *slidingLog) take(i int, cost int64) logEntry {
	mine := l.holes[i]
	if mine.cost == cost {
		l.holes = slices.Delete(l.holes, i, i+1)
		return mine
	}
	rest := logEntry{slot: mine.slot, before: mine.before + cost, cost: mine.cost - cost}
	mine.cost = cost
	l.holes[i] = rest
	at, _ := l.find(mine.before)
	l.entries[at] = mine
	l.entries = slices.Insert(l.entries, at+1, rest)
	return mine
}

// enter books a new entry behind all others.
func (l *slidingLog) enter(slot, cost int64) logEntry {
	e := logEntry{slot: slot, before: l.total, cost: cost}
	l.entries = append(l.entries, e)
	l.total += cost
	return e
}

// giveBack makes the entry a hole, or removes it from the end of the log.
func (l *slidingLog) giveBack(e logEntry) {
	at, found := l.find(e.before)
	if !found || l.entries[at] != e {
		return
	}
	i, already := slices.BinarySearchFunc(l.holes, e.before, byBefore)
	if already {
		return
	}
	l.holes = slices.Insert(l.holes, i, e)
	for range maxHoles + 1 {
		h, n := len(l.holes)-1, len(l.entries)-1
		if h < 0 || n < 0 || l.holes[h] != l.entries[n] {
			break
		}
		l.total = l.entries[n].before
		l.holes, l.entries = l.holes[:h], l.entries[:n]
	}
	if len(l.holes) > maxHoles {
		l.holes = slices.Delete(l.holes, 0, 1)
	}
}

// trim removes a batch of entries that can matter no more.
func (l *slidingLog) trim(now int64, limits spans) {
	unspent := l.passed(now, 0)
	if len(l.holes) > 0 {
		old := slices.IndexFunc(l.holes, func(h logEntry) bool { return h.slot >= now-limits.window-dayMicros })
		if old < 0 {
			old = len(l.holes)
		}
		l.holes = slices.Delete(l.holes, 0, old)
	}
	if len(l.entries) < trimBatch {
		return
	}
	e := l.entries[trimBatch-1]
	since := l.total - e.after() - unspent
	if e.slot < now-limits.window-dayMicros || (e.slot < now-limits.window && since >= limits.largest) {
		l.entries = l.entries[trimBatch:]
		i, _ := slices.BinarySearchFunc(l.holes, e.after(), byBefore)
		l.holes = slices.Delete(l.holes, 0, i)
	}
}

// usage returns the units used of one limit, and when the next is free.
func (l *slidingLog) usage(now int64, limit span) (used, freeAt int64) {
	n := len(l.entries)
	oldest := sort.Search(n, func(i int) bool { return l.entries[i].slot > now-limit.window })
	if oldest == n {
		return 0, 0
	}
	used = l.spent(now, oldest)
	if used == 0 {
		return 0, 0
	}
	from, _ := l.blocker(now, min(used, limit.max)-1)
	return used, from + limit.window
}

func (l *slidingLog) find(before int64) (int, bool) {
	return slices.BinarySearchFunc(l.entries, before, byBefore)
}

func byBefore(e logEntry, before int64) int {
	switch {
	case e.before < before:
		return -1
	case e.before > before:
		return 1
	}
	return 0
}
