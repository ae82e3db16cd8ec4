package limit

import (
	"math"
	"sort"
	"strconv"
	"sync"
	"time"
)

// A zone is what is added to an instant to have local time, from when on: OFFSET,
// INSTANT, OFFSET, ..., in microseconds. lua/fixedwindow.lua has the same.
type zone []int64

var utc = zone{0}

// reaches returns the first instant at which local time is so late.
func (z zone) Reaches(local int64) int64 {
	for i := 0; ; i += 2 {
		at := local - z[i]
		if i > 0 {
			at = max(at, z[i-1])
		}
		if i+1 == len(z) || at < z[i+1] {
			return at
		}
	}
}

// latest returns the latest local time up to an instant. Clocks that are put back
// do not count: a window that has begun does not begin again.
func (z zone) Latest(instant int64) int64 {
	latest := int64(math.MinInt64)
	for i := 0; ; i += 2 {
		if i+1 == len(z) || instant < z[i+1] {
			return max(latest, instant+z[i])
		}
		latest = max(latest, z[i+1]-1+z[i])
	}
}

// zoneSpan is how far from now a zone is spelled out: to where the window before
// the one under way began, and as far ahead. What is booked beyond counts on no
// further change of the clocks.
const zoneSpan = 2*MaxWindow + 2*24*time.Hour

// A spelling is a zone as it is about one day.
type spelling struct {
	day  int64
	zone zone
	text string
}

// spellings has the latest of each zone, by its name: a day is made once.
var spellings sync.Map

// spell returns the zone as it is about now. A limit's Zone is known to be one.
func spell(name string, now time.Time) *spelling {
	const day = 24 * time.Hour
	today := now.Unix() / int64(day/time.Second)
	if known, found := spellings.Load(name); found && known.(*spelling).day == today {
		return known.(*spelling)
	}
	made := &spelling{day: today, zone: utc}
	if location, err := time.LoadLocation(name); err == nil {
		middle := time.Unix(today*int64(day/time.Second), 0)
		made.zone = newZone(location, middle.Add(-zoneSpan), middle.Add(zoneSpan))
	}
	made.text = name
	for _, n := range made.zone {
		made.text += " " + strconv.FormatInt(n, 10)
	}
	spellings.Store(name, made)
	return made
}

// newZone looks for changes of the clocks twice a day, and for the second of each
// between. time.Time.ZoneBounds would tell them, but where a zone's file is a rule
// it ends in a leap year's last day, from which it does not go on.
func newZone(location *time.Location, from, to time.Time) zone {
	offset := func(t time.Time) int64 {
		_, seconds := t.In(location).Zone()
		return int64(seconds) * 1_000_000
	}
	const step = 12 * time.Hour
	z := zone{offset(from)}
	for ; from.Before(to); from = from.Add(step) {
		last := z[len(z)-1]
		if offset(from.Add(step)) == last {
			continue
		}
		second := sort.Search(int(step/time.Second), func(i int) bool {
			return offset(from.Add(time.Duration(i)*time.Second)) != last
		})
		at := from.Add(time.Duration(second) * time.Second)
		z = append(z, at.UnixMicro(), offset(at))
	}
	return z
}

// knownZones are names that were found to be zones: limits are checked at every
// booking.
var knownZones sync.Map

// knownZone reports whether a zone of that name is known on this machine.
func knownZone(name string) bool {
	if _, found := knownZones.Load(name); found {
		return true
	}
	_, err := time.LoadLocation(name)
	known := err == nil && name != "Local"
	if known {
		// A name that is wrong is not kept: there is no end of those.
		knownZones.Store(name, true)
	}
	return known
}

// zoneText spells a zone out for the scripts.
func EncodeZone(name string, now time.Time) string { return spell(name, now).text }

// zoneAt returns a zone as it is about an instant; UTC where none is named.
func ZoneAt(name string, now int64) zone {
	if name == "" {
		return utc
	}
	return spell(name, time.UnixMicro(now)).zone
}
