package forecast

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A Misled is a fleet that is told other limits than its API has, and is refused calls.
type Misled struct {
	// Told are the limits that the fleet is told, and Allowed those that the API keeps.
	Told, Allowed []limit.Limit
	// Workers is how many calls are in flight at once at most, each for Latency.
	Workers int
	Latency time.Duration
	// Lasts is how long the fleet asks for as much as it gets.
	Lasts time.Duration
	// Begin is when that begins.
	Begin time.Time
}

// A Finding is what comes of it.
type Finding struct {
	Served, Refused, RefusedAtFirst int     // AtFirst: in the first two seconds
	Used                            float64 // of what the API serves a fleet that is told rightly
	PerSecond                       []int   // how many were served in each second
	Pace                            *limit.Limit
}

// Run has the fleet ask. All is simulated: what it books and what the API serves are counted in memory, by a clock that is made to
// go on, and the pace is found as a fleet finds it.
func (m Misled) Run(ctx context.Context) (Finding, error) {
	found, err := m.run(ctx)
	if err != nil {
		return found, err
	}
	m.Told = m.Allowed
	rightly, err := m.run(ctx)
	found.Used = float64(found.Served) / float64(max(1, rightly.Served))
	return found, err
}

// firstTwo is for how long calls are on their way of which nobody knows yet that too many are.
const firstTwo = 2 * time.Second

// An answer is on its way to the fleet.
type answer struct {
	at, slot time.Time
	served   bool
	waited   bool
}

type answers []answer

func (a answers) Len() int           { return len(a) }
func (a answers) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a answers) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *answers) Push(one any)      { *a = append(*a, one.(answer)) }
func (a *answers) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// A counter books under limits that may change.
type counter struct {
	kept  ration.MemoryStore
	limit []limit.Limit
	made  int64
}

// try books a unit at an instant, or says when there is room.
func (c *counter) try(ctx context.Context, at time.Time) (booked bool, slot time.Time, err error) {
	accounts, err := store.NewAccounts(store.Account{ID: "account", Limits: c.limit})
	if err != nil {
		return false, slot, err
	}
	b, err := c.kept.Book(ctx, store.BookRequest{ID: store.NewBookingID(), Budget: "plan", Accounts: accounts, Cost: 1, Revision: int(c.made), Now: at})
	return b.Booked, b.Slot, err
}

func (m Misled) run(ctx context.Context) (f Finding, err error) {
	fleet, api := &counter{limit: withMargins(m.Told)}, &counter{limit: m.Allowed}
	told, random := pace.ToldBy(m.Told), rand.New(rand.NewPCG(1, 2)) // the same each time
	var state pace.State
	var under answers
	var resumed, paused time.Time
	total, unserved, now, ends, waits := int64(0), int64(0), m.Begin, m.Begin.Add(m.Lasts), false
	f.PerSecond = make([]int, int(m.Lasts/time.Second)+1)
	change := func(next pace.State) {
		state, resumed, unserved = next, time.Time{}, 0
		fleet.limit, fleet.made = withMargins(m.Told), fleet.made+1
		if l, paced := state.Of(m.Told); paced {
			fleet.limit = append(fleet.limit, l)
		}
	}
	for now.Before(ends) && ctx.Err() == nil {
		next := ends
		if len(under) < m.Workers && !now.Before(paused) {
			booked, slot, err := fleet.try(ctx, now)
			if err != nil {
				return f, err
			}
			if booked {
				total++
				arrived := now.Add(m.Latency / 2)
				served, _, err := api.try(ctx, arrived)
				if err != nil {
					return f, err
				}
				heap.Push(&under, answer{now.Add(m.Latency), now, served, waits})
				waits = false
				continue
			}
			next, waits = slot, true
		} else if len(under) < m.Workers {
			next, waits = paused, true
		}
		if len(under) > 0 && under[0].at.Before(next) {
			next = under[0].at
		}
		now = next
		for len(under) > 0 && !under[0].at.After(now) {
			one := heap.Pop(&under).(answer)
			e := pace.Evidence{Now: now, Slot: one.slot, Waited: one.waited, Total: total, Resumed: resumed}
			if one.served {
				f.Served++
				f.PerSecond[min(len(f.PerSecond)-1, int(now.Sub(m.Begin)/time.Second))]++
				if one.slot.After(state.Refused) && resumed.IsZero() {
					resumed, e.Resumed = now, now
				}
				e.Unserved = unserved + int64(len(under))
				if changed, is := state.Serve(told, e); is && one.waited {
					kept := resumed
					change(changed)
					if state.Refused.Before(kept) {
						resumed = kept
					}
				}
				continue
			}
			if f.Refused++; now.Sub(m.Begin) <= firstTwo {
				f.RefusedAtFirst++
			}
			if one.slot.After(state.From) {
				unserved++
			}
			e.AtOnce = int(total - unserved)
			e.Unserved = unserved + int64(len(under))
			if until := now.Add(time.Second + time.Duration(random.Int64N(int64(time.Second/2)))); now.After(paused) {
				paused = until
			}
			if changed, is := state.Refuse(told, e); is {
				change(changed)
			}
		}
	}
	if l, paced := state.Of(m.Told); paced {
		l = pace.Shown(l)
		f.Pace = &l
	}
	return f, ctx.Err()
}
