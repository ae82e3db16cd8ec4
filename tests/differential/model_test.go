package differential_test

import (
	"slices"
	"sort"

	"time"

	"github.com/ration-go/ration"
)

// The same random bookings, cancellations, pauses and clock readings drive
// MemoryStore, RedisStore and a model that shares no code with either, and all
// three must give the same answers. Run it for longer with -rapid.checks=20000.
//
// Whatever the model says, no window of any alignment may hold more units that
// were spent than its limit's Max. When the clock steps back this still holds
// unless a slot is cancelled, for which see the model's offer.

// A modelCall is one booking in the model, or what is left of one.
type modelCall struct {
	slot int64
	cost int
	free bool // cancelled, and not booked again since
}

// A modelAccount is all that was ever booked on an account, in the order of
// booking, which is that of slots.
type modelAccount struct {
	limits []ration.Limit
	calls  []*modelCall
	silent modelPause
}

// A modelPause is a pause, of an account or of all.
type modelPause struct {
	until int64
	apart int64 // of the slots that are booked meanwhile
}

// pause lengthens the pause, and reports when it ends.
func (p *modelPause) pause(now, length, apart int64) int64 {
	if until := now + length; until > p.until {
		*p = modelPause{until, apart}
	}
	return p.until
}

// puts returns the instant to which a pause puts off a booking behind that at last.
func (p *modelPause) puts(off, now, last int64) int64 {
	switch {
	case p.until <= now:
		return off
	case last < p.until:
		return max(off, p.until)
	}
	return max(off, last+p.apart)
}

const (
	modelHoles = 512
	modelDay   = int64(24 * time.Hour / time.Microsecond)
)

// units returns what a call counts for: nothing if it was cancelled and its
// slot has passed.
func (c *modelCall) units(now int64) int {
	if c.free && c.slot < now {
		return 0
	}
	return c.cost
}

// since returns the units whose slots come after an instant.
func (a *modelAccount) since(from, now int64) int {
	sum := 0
	for _, c := range slices.Backward(a.calls) {
		if c.slot <= from {
			break
		}
		sum += c.units(now)
	}
	return sum
}

// fits tells whether no limit is exceeded if cost units leave at slot.
func (a *modelAccount) fits(slot int64, cost int, now int64) bool {
	for _, l := range a.limits {
		if a.since(slot-l.Window.Microseconds(), now)+cost > l.Max {
			return false
		}
	}
	return true
}

// expiries returns the instants at which calls leave a window, in order.
func (a *modelAccount) expiries(l ration.Limit) []int64 {
	var all []int64
	for _, c := range a.calls {
		all = append(all, c.slot+l.Window.Microseconds())
	}
	return all
}

// An offer is the slot that the next booking would get.
type offer struct {
	slot int64
	hole *modelCall // the call that was cancelled and that it takes; nil: none
}

// offer returns the slot of the next booking. A call that was cancelled is
// offered while its slot has not come. If the clock steps back behind it, it is
// offered again, though others may have been booked meanwhile as if it were not
// there. No slot comes before all, to which a pause of all accounts puts it off.
func (a *modelAccount) offer(now, all int64, cost int) offer {
	from := max(all, a.silent.puts(now, now, 0))
	for _, c := range a.calls {
		if c.free && c.slot >= from && c.cost >= cost {
			return offer{c.slot, c}
		}
	}
	if n := len(a.calls); n > 0 {
		last := a.calls[n-1].slot
		from = a.silent.puts(max(from, last), now, last)
	}
	if a.fits(from, cost, now) {
		return offer{from, nil}
	}
	// It is the first instant that fits, and only when a call leaves a window
	// does more fit.
	var later []int64
	for _, l := range a.limits {
		later = append(later, a.expiries(l)...)
	}
	slices.Sort(later)
	i := sort.Search(len(later), func(i int) bool { return later[i] >= from && a.fits(later[i], cost, now) })
	return offer{later[i], nil}
}

// book enters a booking at the slot that was offered.
func (a *modelAccount) book(now int64, cost int, o offer) *modelCall {
	mine := o.hole
	switch {
	case o.hole == nil:
		mine = &modelCall{slot: o.slot, cost: cost}
		a.calls = append(a.calls, mine)
	case o.hole.cost > cost:
		mine = &modelCall{slot: o.slot, cost: cost}
		o.hole.cost -= cost
		a.calls = slices.Insert(a.calls, slices.Index(a.calls, o.hole), mine)
	}
	mine.free = false
	var longest int64
	for _, l := range a.limits {
		longest = max(longest, l.Window.Microseconds())
	}
	for _, c := range a.calls {
		if c.slot < now-longest-modelDay {
			c.free = false // it is in no window, and is forgotten
		}
	}
	return mine
}

// cancel hands a call back.
func (a *modelAccount) cancel(c *modelCall) {
	c.free = true
	for len(a.calls) > 0 && a.calls[len(a.calls)-1].free {
		a.calls = a.calls[:len(a.calls)-1]
	}
	free := slices.DeleteFunc(slices.Clone(a.calls), func(c *modelCall) bool { return !c.free })
	if len(free) > modelHoles {
		free[0].free = false // the oldest counts as spent
	}
}

// enter enters what was spent.
func (a *modelAccount) enter(slot int64, cost int) {
	if n := len(a.calls); n > 0 {
		slot = max(slot, a.calls[n-1].slot)
	}
	a.calls = append(a.calls, &modelCall{slot: slot, cost: cost})
}

// usage returns what is used of a limit, and when less will be than Max and than
// now, as if all that was cancelled ahead were taken.
func (a *modelAccount) usage(now int64, l ration.Limit) (used int, freeAt int64) {
	window := l.Window.Microseconds()
	used = a.since(now-window, now)
	if used == 0 {
		return 0, 0
	}
	all := a.expiries(l)
	i := sort.Search(len(all), func(i int) bool { return all[i] > now && a.since(all[i]-window, now) < min(used, l.Max) })
	return used, all[i]
}
