package wakes_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// When the limits change, those who wait book again: they leave at the new pace, in about
// the order of their old slots, and a judge that shares nothing with the stores finds none
// that leaves before the new limits admit it.

// everyWay is a limit of so many units a second, as each algorithm counts it.
func everyWay(units int) map[string]ration.Limit {
	second := ration.PerSecond(units)
	all := make(map[string]ration.Limit)
	for _, a := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog, ration.FixedWindow, ration.SlidingWindow, ration.SubWindows, ration.GCRA} {
		l := second.Using(a)
		if a == ration.SubWindows {
			l.Resolution = 100 * time.Millisecond
		}
		all[fmt.Sprint(a)] = l
	}
	first := second.Using(ration.FixedWindow)
	first.FirstUse = true
	all["first use"] = first
	burst := second.Using(ration.GCRA)
	burst.Burst = 5
	all["burst"] = burst
	return all
}

// A departure is who left, by the order of arrival, in which slot, and under which limit.
type departure struct {
	caller int
	slot   time.Time
	limit  ration.Limit
	or     ration.Limit // it may have left under this one as well
}

// admitted reports whether the limit of a departure admits it after those before, which are in
// their order.
func (d departure) admitted(left []departure) bool {
	l, at := d.limit, d.slot
	since := func(from time.Time) (units int) { // from on
		for _, one := range left {
			if !one.slot.Before(from) {
				units++
			}
		}
		return units
	}
	switch l.Algorithm {
	case ration.FixedWindow:
		begin := at.Truncate(l.Window)
		if l.FirstUse {
			begin = time.Time{}
			for _, one := range append(slices.Clone(left), d) { // a window begins with the first after the last
				if !one.slot.Before(begin.Add(l.Window)) {
					begin = one.slot
				}
			}
		}
		return since(begin) < l.Max
	case ration.SlidingWindow:
		begin := at.Truncate(l.Window)
		now := since(begin)
		before := since(begin.Add(-l.Window)) - now
		weight := float64(begin.Add(l.Window).Sub(at)) / float64(l.Window)
		return now+int(float64(before)*weight) < l.Max
	case ration.SubWindows:
		return since(at.Truncate(l.Resolution).Add(l.Resolution-l.Window)) < l.Max
	case ration.GCRA:
		free, spacing := time.Time{}, func(d departure) time.Duration { return d.limit.Window / time.Duration(d.limit.Max) }
		for _, one := range left {
			if one.slot.After(free) {
				free = one.slot
			}
			free = free.Add(spacing(one))
		}
		return !at.Before(free.Add(-time.Duration(l.BurstOrDefault()-1) * spacing(d)))
	}
	return since(at.Add(-l.Window+time.Microsecond)) < l.Max
}

// A crowd is callers who wait, and when they left.
type crowd struct {
	callers   int
	processes []process
	waits     sync.WaitGroup

	mu   sync.Mutex // protects all below
	left []departure
}

// gather has callers wait in turn in each process: each comes a while after the one before.
func gather(t *testing.T, callers int, apart time.Duration, processes ...process) *crowd {
	c := &crowd{callers: callers, processes: processes}
	for i := range callers {
		p := processes[i%len(processes)]
		c.waits.Go(func() {
			grant, err := p.Wait(t.Context(), ration.NewToken("a"), 1)
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
			c.leaves(i, grant)
		})
		time.Sleep(apart)
	}
	return c
}

func (c *crowd) leaves(caller int, grant ration.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = append(c.left, departure{caller: caller, slot: grant.Slot})
}

// departures waits for all. It returns who left since the limit was changed, in the order of
// their slots. Until all processes have heard of it, each may have left under either limit.
func (c *crowd) departures(of change, changed, heard time.Time) (after []departure) {
	c.waits.Wait()
	slices.SortFunc(c.left, func(a, b departure) int { return cmp.Or(a.slot.Compare(b.slot), a.caller-b.caller) })
	for i := range c.left {
		d := &c.left[i]
		d.limit, d.or = of.new, of.new
		switch {
		case d.slot.Before(changed):
			d.limit, d.or = of.old, of.old
			after = c.left[i+1:]
		case d.slot.Before(heard) && of.old.Max > of.new.Max:
			d.limit = of.old
		case d.slot.Before(heard):
			d.or = of.old
		}
	}
	return after
}

// requireJudged demands that the limit of its time admits each departure.
func (c *crowd) requireJudged(t *testing.T) {
	t.Helper()
	over := 0
	for i, d := range c.left {
		other := d
		other.limit = d.or
		if !d.admitted(c.left[:i]) && !other.admitted(c.left[:i]) {
			over++
		}
	}
	require.Zero(t, over, "left before the limit admitted it")
}

// requireOrder demands that nobody is overtaken by one who came so much later.
func requireOrder(t *testing.T, left []departure, later int) {
	t.Helper()
	latest, worst := 0, 0
	for _, d := range left {
		latest = max(latest, d.caller)
		worst = max(worst, latest-d.caller)
	}
	require.Less(t, worst, later)
}

// A change is one of a limit of which many wait.
type change struct {
	old, new ration.Limit
	callers  int
}

// changes are a raised limit and a lowered one, for each algorithm.
func changes(callers int) map[string]change {
	all := make(map[string]change)
	for name, fast := range everyWay(100) {
		all["raised "+name] = change{everyWay(10)[name], fast, callers}
		all["lowered "+name] = change{fast, everyWay(40)[name], callers}
	}
	return all
}

// leastAfter is how many leave at least in the second after a limit was raised, while enough
// wait. What is in the bucket of a GCRA limit runs out at the pace at which it was filled.
func (c change) leastAfter() int {
	if c.new.Max < c.old.Max {
		return 0
	}
	return 80 - 10*(c.old.BurstOrDefault()-1)
}

// Those who come within the time for which a process gathers its callers are booked together.
const apart = 5 * time.Millisecond

func TestThoseWhoWaitLeaveAtTheNewPace(t *testing.T) {
	for name, change := range changes(400) {
		for processes := 1; processes <= 2; processes++ {
			t.Run(fmt.Sprint(name, processes), func(t *testing.T) {
				inMemory(t, change.old, func(t *testing.T, a, b process) {
					c := gather(t, change.callers, apart, []process{a, b}[:processes]...)
					time.Sleep(353 * time.Millisecond)
					changed := time.Now()
					require.NoError(t, a.SetLimits(change.new))
					after := c.departures(change, changed, changed)
					soon := slices.IndexFunc(after, func(d departure) bool { return !d.slot.Before(changed.Add(time.Second)) })
					require.GreaterOrEqual(t, soon, change.leastAfter(), "of %d in %v", len(after), after[len(after)-1].slot.Sub(changed))
					c.requireJudged(t)
					requireOrder(t, after, max(change.old.Max, 2*int(gathered/apart)))
				})
			})
		}
	}
}

// On Redis the other process hears a moment later, and may leave under the old limit until
// then. The one that changes the limit may have no callers that wait.
func TestThoseWhoWaitOnRedisLeaveAtTheNewPace(t *testing.T) {
	server := redistest.Shared(t)
	for name, change := range changes(150) {
		for processes := 1; processes <= 2; processes++ {
			t.Run(fmt.Sprint(name, processes), func(t *testing.T) {
				t.Parallel()
				if testing.Short() && change.leastAfter() == 0 {
					t.Skip("in MemoryStore only")
				}
				a, b := onRedis(t, server, change.old)
				first, err := a.Wait(t.Context(), ration.NewToken("a"), 1)
				require.NoError(t, err)
				next(t, a.asked.booked)
				c := gather(t, change.callers, time.Millisecond, []process{b, a}[:processes]...)
				c.leaves(-1, first)
				changed := time.Now()
				require.NoError(t, a.SetLimits(change.new))
				c.departures(change, changed, changed.Add(time.Second))
				took := c.left[len(c.left)-1].slot.Sub(changed)
				t.Logf("all left within %v", took)
				if change.leastAfter() > 0 {
					require.Less(t, took, 4*time.Second)
				}
				c.requireJudged(t)
			})
		}
	}
}
