package differential_test

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// The same random bookings, cancellations, pauses and clock readings drive
// MemoryStore, RedisStore and a model that shares no code with either, and all
// three must give the same answers. Run it for longer with -rapid.checks=20000.
// It prints its seed, and takes one with -rapid.seed.
//
// Whatever the model says, no window of any alignment may hold more units that
// were spent than its limit's Max.

// A modelCall is one booking in the model.
type modelCall struct {
	slot int64
	cost int
}

// A modelAccount is all that was booked on an account and not cancelled, in the order of
// slots.
type modelAccount struct {
	limits    []ration.Limit
	calls     []*modelCall
	sums      []int          // for each call, the units before it
	cancelled map[int64]bool // slots
	silent    modelPause
	last      int64 // no booking comes before it
}

// A modelPause is a pause, of an account or of all.
type modelPause struct {
	until int64
	step  int64 // of the slow start behind it
	last  int64 // the last that it has put off a booking to
}

// pause lengthens the pause, and reports when it ends.
func (p *modelPause) pause(now, length, step int64) int64 {
	if until := now + length; until > p.until {
		if p.until <= now {
			p.last = 0
		}
		p.until, p.step = until, step
	}
	return p.until
}

// isOver reports whether the pause and its slow start are over.
func (p *modelPause) isOver(now int64) bool { return now >= p.until+store.SlowStartSteps*p.step }

// puts returns the instant to which a pause and its slow start put off a booking.
func (p *modelPause) puts(off, now int64) int64 {
	switch {
	case p.isOver(now):
		return off
	case p.last < p.until || p.step == 0:
		return max(off, p.until)
	}
	gap := p.step
	for step := p.until + p.step; step <= p.last; step += p.step {
		gap = gap / 2 // rounded down again and again is rounded down once
	}
	return max(off, p.last+gap)
}

// booked notes that a booking was made, which the pause has put off.
func (p *modelPause) booked(now int64) {
	if off := p.puts(now, now); !p.isOver(now) {
		p.last = off
	}
}

// keep replaces the calls.
func (a *modelAccount) keep(calls []*modelCall) {
	slices.SortStableFunc(calls, func(a, b *modelCall) int { return cmp.Compare(a.slot, b.slot) })
	a.calls, a.sums = calls, []int{0}
	for i, c := range calls {
		a.sums = append(a.sums, a.sums[i]+c.cost)
	}
}

// later returns the place of the first call after an instant.
func (a *modelAccount) later(at int64) int {
	return sort.Search(len(a.calls), func(i int) bool { return a.calls[i].slot > at })
}

// between returns the units with slots in (from, to].
func (a *modelAccount) between(from, to int64) int {
	if len(a.calls) == 0 {
		return 0
	}
	return a.sums[a.later(to)] - a.sums[a.later(from)]
}

// since returns the units whose slots come after an instant.
func (a *modelAccount) since(from int64) int { return a.between(from, math.MaxInt64) }

// fits tells whether no limit is exceeded, in any window, if cost units leave at slot.
// Of the windows that hold the slot the fullest end at a call, or at the slot.
func (a *modelAccount) fits(slot int64, cost int) bool {
	for _, l := range a.limits {
		window := l.Window.Microseconds()
		if a.between(slot-window, slot)+cost > l.Max {
			return false
		}
		for _, c := range a.calls[a.later(slot):] {
			if c.slot < slot+window && a.between(c.slot-window, c.slot)+cost > l.Max {
				return false
			}
		}
	}
	return true
}

// expiries returns the instants at which calls leave a window, in order.
func (a *modelAccount) expiries(l ration.Limit) (all []int64) {
	for _, c := range a.calls {
		all = append(all, c.slot+l.Window.Microseconds())
	}
	slices.Sort(all)
	return all
}

// An offer is the slot that the next booking gets.
type offer struct {
	slot    int64
	behind  int64 // the first that fits behind all calls
	crowded bool  // so much is ahead that a store may give this one, or one that was cancelled
}

// offer returns the slot of the next booking. None comes before all, to which a pause of
// all accounts puts it off.
func (a *modelAccount) offer(now, all int64, cost int) offer {
	from := a.silent.puts(max(all, a.last), now)
	ahead, end := len(a.calls)-a.later(from), from
	if ahead > 0 {
		end = a.calls[len(a.calls)-1].slot
	}
	return offer{slot: a.first(from, cost), behind: a.first(end, cost), crowded: ahead > modelPatience}
}

// A store looks at 32 instants at least, each time behind another call.
const modelPatience = 30

// first returns the first slot from an instant on that fits. Only when a call leaves a
// window, or comes, does more fit.
func (a *modelAccount) first(from int64, cost int) int64 {
	edges := []int64{from}
	for _, l := range a.limits {
		edges = append(edges, a.expiries(l)...)
	}
	for _, c := range a.calls {
		edges = append(edges, c.slot+1)
	}
	slices.Sort(edges)
	return edges[slices.IndexFunc(edges, func(at int64) bool { return at >= from && a.fits(at, cost) })]
}

// add adds a call.
func (a *modelAccount) add(slot int64, cost int) *modelCall {
	c := &modelCall{slot, cost}
	a.keep(append(a.calls, c))
	a.last = max(a.last, slot)
	return c
}

// cancel removes a call. If it had not left the next ones may leave before those that wait.
func (a *modelAccount) cancel(now int64, c *modelCall) {
	a.keep(slices.DeleteFunc(a.calls, func(o *modelCall) bool { return o == c }))
	if a.cancelled == nil {
		a.cancelled = make(map[int64]bool)
	}
	a.cancelled[c.slot] = true
	if c.slot >= now {
		a.last = min(a.last, now)
	}
}

// usage returns what is used of a limit, and when less will be than Max and than now.
func (a *modelAccount) usage(now int64, l ration.Limit) (used int, freeAt int64) {
	window := l.Window.Microseconds()
	used = a.since(now - window)
	if used == 0 {
		return 0, 0
	}
	all := a.expiries(l)
	i := slices.IndexFunc(all, func(at int64) bool { return at > now && a.since(at-window) < min(used, l.Max) })
	return used, all[i]
}
