package limit

import (
	"math"
	"sort"
	"strconv"
	"sync"
	"time"
)

// ZoneOffsets is a time zone: what is added to an instant to have local time, and the
// instants from which on the next offset is. It is OFFSET, INSTANT, OFFSET, ..., in
// microseconds, instants since the epoch. A fixed window in a zone begins when local time
// first reaches a multiple of Window since local midnight of 1 January 1970.
type ZoneOffsets []int64

var utc = ZoneOffsets{0}

// Reaches returns the first instant at which local time is so late.
func (z ZoneOffsets) Reaches(local int64) int64 {
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

// Latest returns the latest local time up to an instant. Clocks that are put back
// do not count: a window that has begun does not begin again.
func (z ZoneOffsets) Latest(instant int64) int64 {
	latest := int64(math.MinInt64)
	for i := 0; ; i += 2 {
		if i+1 == len(z) || instant < z[i+1] {
			return max(latest, instant+z[i])
		}
		latest = max(latest, z[i+1]-1+z[i])
	}
}

// zoneSpan is how far from now the offsets of a zone are listed: back to the window before
// the current one, and as far ahead. A slot further ahead is booked as if the clocks never
// changed again.
const zoneSpan = 2*MaxWindow + 2*24*time.Hour

// A datedZone is a zone's offsets about one day.
type datedZone struct {
	day     int64
	offsets ZoneOffsets
	text    string // as EncodeZone returns it
}

// datedZones has the latest day of each zone, by the zone's name.
var datedZones sync.Map

// zoneAbout returns the zone about now. The name must be that of a zone.
func zoneAbout(name string, now time.Time) *datedZone {
	const day = 24 * time.Hour
	today := now.Unix() / int64(day/time.Second)
	if known, found := datedZones.Load(name); found && known.(*datedZone).day == today {
		return known.(*datedZone)
	}
	made := &datedZone{day: today, offsets: utc}
	if location, err := time.LoadLocation(name); err == nil {
		middle := time.Unix(today*int64(day/time.Second), 0)
		made.offsets = newZone(location, middle.Add(-zoneSpan), middle.Add(zoneSpan))
	}
	made.text = name
	for _, n := range made.offsets {
		made.text += " " + strconv.FormatInt(n, 10)
	}
	datedZones.Store(name, made)
	return made
}

// newZone samples the offset twice a day, and searches for the second of each change in
// between. time.Time.ZoneBounds cannot be used: for a zone whose file ends in a rule it
// finds no change after the last day of a leap year.
func newZone(location *time.Location, from, to time.Time) ZoneOffsets {
	offset := func(t time.Time) int64 {
		_, seconds := t.In(location).Zone()
		return int64(seconds) * 1_000_000
	}
	const step = 12 * time.Hour
	z := ZoneOffsets{offset(from)}
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

// EncodeZone returns a zone of a valid limit as the text "NAME OFFSET INSTANT OFFSET ...",
// with the offsets that are in force about now.
func EncodeZone(name string, now time.Time) string { return zoneAbout(name, now).text }

// ZoneAt returns the offsets of a valid limit's Zone that are in force about an instant, in
// microseconds since the epoch. They cover two years and some days before and after it;
// if the name is empty they are those of UTC.
func ZoneAt(name string, now int64) ZoneOffsets {
	if name == "" {
		return utc
	}
	return zoneAbout(name, time.UnixMicro(now)).offsets
}
