package external

import (
	"cmp"
	"math"
	"slices"

	"github.com/ration-go/ration/limit"
)

// A window is [begins, ends). Reset told the end, or not. What is in it counts until then
// or, if it may have begun later, longer.
type window struct {
	begins, ends, until int64
	told                bool
}

// alignedAt returns the window of the limit's zone that contains an instant.
func (m meter) alignedAt(instant int64) window {
	zone := limit.ZoneAt(m.Zone, m.now)
	local := zone.Latest(instant)
	local -= (local%m.Window + m.Window) % m.Window
	w := window{begins: zone.Reaches(local), ends: zone.Reaches(local + m.Window)}
	w.until = w.ends
	return w
}

// live returns the FirstUse windows but those that came to nothing. One that began with
// what was cancelled begins with any of the others.
func (m meter) live() (all []window) {
	known := m.windows[m.Name]
	for i, w := range known {
		first, last := int64(0), int64(0)
		for _, b := range m.bookings {
			if b.slot >= w.begins && b.slot < w.ends && m.covers(b) {
				first, last = cmp.Or(first, b.slot), b.slot
			}
		}
		if w.until = w.ends; !w.told && first == 0 {
			continue
		}
		if !w.told && first > w.begins {
			w.until = max(w.ends, last+m.Window+m.margin())
		}
		if i+1 < len(known) {
			w.until = max(w.ends, min(w.until, known[i+1].begins))
		}
		all = append(all, w)
	}
	return all
}

// windowAt returns the FirstUse window that contains an instant, or the one that a call at
// that instant would begin.
func (m meter) windowAt(instant int64) window {
	w := window{begins: instant, ends: instant + m.Window + m.margin()}
	for _, known := range m.live() {
		if known.begins <= instant && instant < known.until {
			return known
		}
		if known.begins > instant {
			w.ends = min(w.ends, known.begins)
		}
	}
	w.until = w.ends
	return w
}

// opens returns the first slot not before from that lies in a window, with its margin, or
// may begin one that has its full length.
func (m meter) opens(from int64) int64 {
	if !m.FirstUse {
		w := m.alignedAt(from)
		if slot := max(from, w.begins+m.margin()/2); slot < w.ends-m.margin() {
			return slot
		}
		return w.ends
	}
	w := m.windowAt(from)
	cut := w.begins == from && !slices.Contains(m.live(), w) && w.ends < from+m.Window+m.margin()
	if cut || from >= w.ends-2*m.margin() {
		return w.until
	}
	return from
}

// beginWindow begins the window of a slot that lies in none. What was recorded before a
// window, which then begins earlier, lies in that.
func (m meter) beginWindow(slot int64) {
	list := m.live()
	w := m.windowAt(slot)
	at := slices.IndexFunc(list, func(known window) bool { return known.until > slot })
	switch {
	case slices.Contains(list, w):
	case at >= 0 && w.ends == list[at].begins:
		list[at].begins = slot
	case at >= 0:
		list = slices.Insert(list, at, w)
	default:
		list = append(list, w)
	}
	m.windows[m.Name] = slices.DeleteFunc(list, func(w window) bool { return w.ends < m.now-3*m.Window })
}

// reset ends the window under way at an instant. It returns when the last of the slots that
// no longer fit has passed, or 0.
func (m meter) reset(at, within int64) int64 {
	margin := m.margin()
	if at <= m.now || at > m.now+m.Window+margin {
		return 0
	}
	w, list := m.windowAt(m.now), m.live()
	booked := w.ends // what is booked up to then is in the window
	if known := slices.Index(list, w); known >= 0 {
		if w.ends-margin-within <= at && at <= w.ends+within {
			return 0
		}
		list = slices.Delete(list, known, known+1)
	}
	w.ends, w.told = max(at, min(at+within, m.now+m.Window))+margin, true
	merged := false
	list = slices.DeleteFunc(list, func(o window) bool {
		within := o.begins >= w.begins && o.begins < w.ends
		if within {
			merged, booked = true, max(booked, o.ends)
		}
		return within
	})
	list = append(list, w)
	slices.SortFunc(list, func(a, b window) int { return cmp.Compare(a.begins, b.begins) })
	m.windows[m.Name] = list
	units, last := int64(0), int64(math.MinInt64)
	for _, b := range m.bookings {
		if b.slot >= w.begins && b.slot < booked && m.covers(b) {
			units, last = units+b.cost, b.slot
		}
	}
	if last >= w.ends-2*margin || merged && units > m.Max {
		return last + 1
	}
	return 0
}
