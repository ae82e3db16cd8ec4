package memstore

import (
	"math"
	"slices"
	"sort"
)

// A log is the bookings of an account, or those of a scope, in the order of their slots, and
// of equal slots in that of booking. In memory all exact logs are kept like this.
//
// It is kept in chunks, each of which knows the units before it: to add at the end is one
// step, to count and to find are binary searches, and to add or remove elsewhere moves the
// entries of one chunk. Trimming removes whole chunks.
//
// Instants and durations are microseconds.
type log struct {
	scope  string  // of the requests; empty: all are here
	sets   int     // of scopes that the requests had
	chunks []chunk // none is empty
	last   int64   // the slot of the last entry; 0: there is none
	total  int64   // the units of all chunks and of those that were trimmed
	spare  []entry // of a chunk that was removed, or nil
}

type chunk struct {
	entries []entry
	before  int64 // the units of the chunks before it
}

// An entry is one booking.
type entry struct {
	slot   int64
	number int64 // of the booking: those of later ones are higher
	upto   int64 // the units of the chunk up to this entry, which included
}

// before returns the units of the chunk before its i-th entry.
func (c *chunk) beforeEntry(i int) int64 {
	if i == 0 {
		return 0
	}
	return c.entries[i-1].upto
}

const chunkLength = 512

// later returns the place of the first entry with a later slot, which there must be.
func (l *log) later(slot int64) (at, i int) {
	at = sort.Search(len(l.chunks)-1, func(at int) bool {
		entries := l.chunks[at].entries
		return entries[len(entries)-1].slot > slot
	})
	entries := l.chunks[at].entries
	return at, sort.Search(len(entries), func(i int) bool { return entries[i].slot > slot })
}

// after returns the units with later slots.
func (l *log) after(slot int64) int64 {
	if slot >= l.last || len(l.chunks) == 0 {
		return 0
	}
	at, i := l.later(slot)
	c := &l.chunks[at]
	return l.total - c.before - c.beforeEntry(i)
}

// newest returns the slot of the newest entry that is, with all behind it, more than need
// units; if there is none, the least of all instants.
func (l *log) newest(need int64) int64 {
	mark := l.total - need // of all units ever, the one that the entry has
	if len(l.chunks) == 0 || mark <= l.chunks[0].before {
		return math.MinInt64
	}
	at := len(l.chunks) - 1
	if l.chunks[at].before >= mark {
		at = sort.Search(at, func(at int) bool { return l.chunks[at].before >= mark }) - 1
	}
	entries := l.chunks[at].entries
	mark -= l.chunks[at].before
	// Where every entry costs a unit it is the mark-th.
	if i := mark - 1; i < int64(len(entries)) && entries[i].upto == mark {
		return entries[i].slot
	}
	return entries[sort.Search(len(entries), func(i int) bool { return entries[i].upto >= mark })].slot
}

// add enters units behind all with no later slot.
func (l *log) add(slot, number, cost int64) {
	if slot < l.last {
		at, i := l.later(slot)
		l.insert(at, i, entry{slot: slot, number: number}, cost)
		return
	}
	n := len(l.chunks)
	if n == 0 || len(l.chunks[n-1].entries) == chunkLength {
		entries := l.spare
		// A short log is small: its one chunk grows.
		if l.spare = nil; entries == nil && n > 0 {
			entries = make([]entry, 0, chunkLength)
		}
		l.chunks, n = append(l.chunks, chunk{entries, l.total}), n+1
	}
	l.total += cost
	c := &l.chunks[n-1]
	c.entries = append(c.entries, entry{slot, number, l.total - c.before})
	l.last = slot
}

// insert puts an entry before the i-th of a chunk.
func (l *log) insert(at, i int, e entry, cost int64) {
	if c := &l.chunks[at]; len(c.entries) == chunkLength {
		const half = chunkLength / 2
		second := chunk{append(make([]entry, 0, chunkLength), c.entries[half:]...), c.before + c.beforeEntry(half)}
		for j := range second.entries {
			second.entries[j].upto -= second.before - c.before
		}
		c.entries = c.entries[:half]
		l.chunks = slices.Insert(l.chunks, at+1, second)
		if i > half {
			at, i = at+1, i-half
		}
	}
	c := &l.chunks[at]
	e.upto = c.beforeEntry(i)
	c.entries = slices.Insert(c.entries, i, e)
	l.shift(at, i, cost)
}

// shift adds units to the i-th entry of a chunk: what is behind it lies behind so many more.
func (l *log) shift(at, i int, cost int64) {
	for j := i; j < len(l.chunks[at].entries); j++ {
		l.chunks[at].entries[j].upto += cost
	}
	for j := at + 1; j < len(l.chunks); j++ {
		l.chunks[j].before += cost
	}
	l.total += cost
}

// find returns the place of a booking.
func (l *log) find(slot, number int64) (at, i int, found bool) {
	if slot > l.last || len(l.chunks) == 0 {
		return 0, 0, false
	}
	reaches := func(e entry) bool { return e.slot > slot || e.slot == slot && e.number >= number }
	at = sort.Search(len(l.chunks)-1, func(at int) bool {
		entries := l.chunks[at].entries
		return reaches(entries[len(entries)-1])
	})
	entries := l.chunks[at].entries
	i = sort.Search(len(entries), func(i int) bool { return reaches(entries[i]) })
	return at, i, i < len(entries) && entries[i].slot == slot && entries[i].number == number
}

// remove removes a booking, and reports whether it was there.
func (l *log) remove(slot, number int64) bool {
	at, i, found := l.find(slot, number)
	if !found {
		return false
	}
	c := &l.chunks[at]
	l.shift(at, i, c.beforeEntry(i)-c.entries[i].upto)
	c.entries = slices.Delete(c.entries, i, i+1)
	if len(c.entries) == 0 {
		l.drop(at)
	}
	l.last = 0
	if n := len(l.chunks); n > 0 {
		entries := l.chunks[n-1].entries
		l.last = entries[len(entries)-1].slot
	}
	return true
}

// change adds units to a booking, or with a negative number takes some away, and removes one of which none are left.
func (l *log) change(slot, number, units int64) {
	at, i, found := l.find(slot, number)
	if !found {
		return
	}
	if c := &l.chunks[at]; c.entries[i].upto-c.beforeEntry(i)+units == 0 {
		l.remove(slot, number)
	} else {
		l.shift(at, i, units)
	}
}

// drop removes a chunk, whose memory the next one has.
func (l *log) drop(at int) {
	l.spare = l.chunks[at].entries[:0]
	l.chunks = slices.Delete(l.chunks, at, at+1)
}

// trim removes the first chunk if all of it lies before an instant.
func (l *log) trim(before int64) {
	if len(l.chunks) == 0 {
		return
	}
	entries := l.chunks[0].entries
	if entries[len(entries)-1].slot >= before {
		return
	}
	if l.drop(0); len(l.chunks) == 0 {
		l.last = 0
	}
}
