package simulated

import (
	"sort"
	"time"
)

// expiry is the rule that at most limit calls count, each until a moment that depends on its arrival alone. That moment
// is the call's state. A later call's is never earlier.
type expiry struct {
	limit int
	until func(at time.Duration) time.Duration
}

func (e expiry) state(a *arrivals, place int) int64 { return int64(e.until(a.stamps[place])) }

func (e expiry) room(a *arrivals, place int) int { return e.limit - a.counting(place) }

func (e expiry) affects(a *arrivals, place, later int) bool {
	return int64(a.stamps[later]) < a.states[place]
}

func (e expiry) roomAt(a *arrivals) time.Duration {
	return time.Duration(a.states[len(a.states)-e.limit])
}

func (e expiry) fullAt(a *arrivals) time.Duration { return time.Duration(a.states[len(a.states)-1]) }

// firstUse is the rule of CountFirstUse. A call's state is when its window ends.
//
// If the call that began the window had overtaken another call, that call moves the window's beginning back a little. If
// the next window has begun already, the calls that this moves into another window are not judged again.
type firstUse struct {
	limit  int
	window time.Duration
}

func (f firstUse) state(a *arrivals, place int) int64 {
	at := a.stamps[place]
	if place > 0 && int64(at) < a.states[place-1] {
		return a.states[place-1]
	}
	return int64(at + f.window)
}

func (f firstUse) room(a *arrivals, place int) int { return f.limit - a.counting(place) }

func (f firstUse) affects(a *arrivals, place, later int) bool {
	return int64(a.stamps[later]) < a.states[place]
}

func (f firstUse) roomAt(a *arrivals) time.Duration {
	return time.Duration(a.states[len(a.states)-f.limit])
}

func (f firstUse) fullAt(a *arrivals) time.Duration { return time.Duration(a.states[len(a.states)-1]) }

// counting returns the number of calls that count at the call at that place, itself included. Their states must be the
// moments from which they do not count.
func (a *arrivals) counting(place int) int {
	at := int64(a.stamps[place])
	return place + 1 - sort.Search(place, func(i int) bool { return a.states[i] > at })
}

// fixedWindow divides time into windows of that length by the clock of a zone, as CountFixedWindow says. Moments are
// relative to start, which is read at each call, and to the wall clock as it was then.
type fixedWindow struct {
	start  *time.Time
	length time.Duration
	zone   *time.Location
}

// begin returns when the window of at began. The zone must be UTC.
func (w fixedWindow) begin(at time.Duration) time.Duration {
	return at - w.elapsed(w.start.Add(at))
}

// end returns when the window of at ends.
func (w fixedWindow) end(at time.Duration) time.Duration {
	now := w.start.Add(at).In(w.zone)
	number := w.number(now)
	for {
		next := now.Add(w.length - w.elapsed(now))
		_, set := now.ZoneBounds() // when the clock is set next, zero if never
		switch {
		case set.IsZero() || !next.After(set) && w.number(next) != number:
			return next.Sub(*w.start)
		case w.number(set) != number:
			return set.Sub(*w.start)
		}
		now = set // the clock was set within the window, which goes on
	}
}

// number returns the number of t's window since 1970 on the clock of t's zone.
func (w fixedWindow) number(t time.Time) int64 {
	return int64((reading(t) - w.elapsed(t)) / w.length)
}

// elapsed returns the time on the clock of t's zone since its last whole multiple of the length.
func (w fixedWindow) elapsed(t time.Time) time.Duration {
	return (reading(t)%w.length + w.length) % w.length
}

// reading returns the time on the clock of t's zone since it showed 1970-01-01 00:00.
func reading(t time.Time) time.Duration {
	_, offset := t.Zone()
	return time.Duration(t.UnixNano()) + time.Duration(offset)*time.Second
}
