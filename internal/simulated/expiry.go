package simulated

import (
	"sort"
	"time"
)

// expiry is the rule that a call counts until a moment that depends on its arrival alone, and that never more than
// limit count. Its mark is that moment, which no later call may precede.
type expiry struct {
	limit int
	until func(at time.Duration) time.Duration
}

func (e expiry) mark(a *arrivals, place int) int64 { return int64(e.until(a.stamps[place])) }

func (e expiry) room(a *arrivals, place int) int { return e.limit - a.counting(place) }

func (e expiry) bears(a *arrivals, place, later int) bool {
	return int64(a.stamps[later]) < a.marks[place]
}

func (e expiry) roomAt(a *arrivals) time.Duration {
	return time.Duration(a.marks[len(a.marks)-e.limit])
}

func (e expiry) fullAt(a *arrivals) time.Duration { return time.Duration(a.marks[len(a.marks)-1]) }

// firstUse is the rule of CountFirstUse. Its mark is when the call's window ends.
//
// A call that was overtaken by the one that began the window begins it a little earlier. Should the window after it have
// begun already then those calls that this moves into another window are not judged anew.
type firstUse struct {
	limit  int
	window time.Duration
}

func (f firstUse) mark(a *arrivals, place int) int64 {
	at := a.stamps[place]
	if place > 0 && int64(at) < a.marks[place-1] {
		return a.marks[place-1]
	}
	return int64(at + f.window)
}

func (f firstUse) room(a *arrivals, place int) int { return f.limit - a.counting(place) }

func (f firstUse) bears(a *arrivals, place, later int) bool {
	return int64(a.stamps[later]) < a.marks[place]
}

func (f firstUse) roomAt(a *arrivals) time.Duration {
	return time.Duration(a.marks[len(a.marks)-f.limit])
}

func (f firstUse) fullAt(a *arrivals) time.Duration { return time.Duration(a.marks[len(a.marks)-1]) }

// counting is the number of calls that still count at the call at that place, itself included, where marks are when
// calls cease to.
func (a *arrivals) counting(place int) int {
	at := int64(a.stamps[place])
	return place + 1 - sort.Search(place, func(i int) bool { return a.marks[i] > at })
}

// fixedWindow cuts the time into windows of that length by the clock of a zone, as CountFixedWindow says. Moments count
// from start, which is read at each call; the clock is the wall clock as it stood then.
type fixedWindow struct {
	start  *time.Time
	length time.Duration
	zone   *time.Location
}

// begin is when the window that at is in began. The zone must be UTC.
func (w fixedWindow) begin(at time.Duration) time.Duration {
	return at - w.elapsed(w.start.Add(at))
}

// end is when the window that at is in ends.
func (w fixedWindow) end(at time.Duration) time.Duration {
	now := w.start.Add(at).In(w.zone)
	number := w.number(now)
	for {
		next := now.Add(w.length - w.elapsed(now))
		_, set := now.ZoneBounds() // when the clock is set, zero if never again
		switch {
		case set.IsZero() || !next.After(set) && w.number(next) != number:
			return next.Sub(*w.start)
		case w.number(set) != number:
			return set.Sub(*w.start)
		}
		now = set // the clock was set within the window, which goes on
	}
}

// number is that of t's window since 1970 on the clock of t's zone.
func (w fixedWindow) number(t time.Time) int64 {
	return int64((reading(t) - w.elapsed(t)) / w.length)
}

// elapsed is what the clock of t's zone reads since its last whole multiple of the length.
func (w fixedWindow) elapsed(t time.Time) time.Duration {
	return (reading(t)%w.length + w.length) % w.length
}

// reading is what the clock of t's zone reads since it read 1970-01-01 00:00.
func reading(t time.Time) time.Duration {
	_, offset := t.Zone()
	return time.Duration(t.UnixNano()) + time.Duration(offset)*time.Second
}
