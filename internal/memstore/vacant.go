package memstore

import (
	"cmp"
	"math"
	"slices"

	"github.com/ration-go/ration/store"
)

// A vacancy is a slot at which bookings were cancelled, and how many units in whose place
// nothing was booked. lua/vacant.lua is the same in Redis, and says what holds of them.
type vacancy struct{ slot, units int64 }

// So many vacancies are looked at, and before them one for each unit that is needed, of manyUnits at
// the most. A booking of more units than that ends all in a window of it.
const (
	maxVacancies = 1024
	manyUnits    = 64
)

// firstVacancy returns the place of the first one that is not before a slot.
func firstVacancy(list []vacancy, slot int64) int {
	i, _ := slices.BinarySearchFunc(list, slot, func(v vacancy, slot int64) int { return cmp.Compare(v.slot, slot) })
	return i
}

// sharedLimits reports whether any limit of the account's logs covers requests of ours and of
// theirs, and whether all do that cover ours.
func (c *transaction) sharedLimits(ours, theirs string) (some, all bool) {
	all = true
	for i := range c.meters {
		m := &c.meters[i]
		if m.counter == nil && (m.Scope == "" || store.Covers(m.Scope, ours)) {
			both := m.Scope == "" || store.Covers(m.Scope, theirs)
			some, all = some || both, all && both
		}
	}
	return some, all
}

// replaced reports whether the limits in force are others than the transaction's.
func (c *transaction) replaced() bool {
	a := c.account
	return a.limits != nil && a.limits != c.set && a.limits.Name != c.set.Name
}

// nextVacancy returns the first slot not before from that is vacant, with so many vacant units in
// each window around it.
func (m *meter) nextVacancy(from int64, l *queue, need int64) (slot int64, found bool) {
	c := m.transaction
	if len(c.account.vacant) == 0 || c.replaced() {
		return 0, false
	}
	before := int(min(need, manyUnits))
	for scopes, list := range c.account.vacant {
		if _, all := c.sharedLimits(l.scopes, scopes); !all {
			continue
		}
		next, first := firstVacancy(list, from), firstVacancy(list, from-m.Window+1)
		first = max(first, next-before)
		near := list[first:min(next+maxVacancies, len(list))]
		for i := next - first; i < len(near); i++ {
			if reach(near, i, -1, need, m.Window)+reach(near, i, 1, need, m.Window) < m.Window {
				if v := near[i]; !found || v.slot < slot {
					slot, found = v.slot, true
				}
				break
			}
		}
	}
	return slot, found
}

// reach returns how far from a vacancy so many units are vacant, or the window.
func reach(near []vacancy, i, step int, need, window int64) int64 {
	slot, units := near[i].slot, int64(0)
	for ; i >= 0 && i < len(near); i += step {
		if units += near[i].units; units >= need {
			return max(near[i].slot-slot, slot-near[i].slot)
		}
	}
	return window
}

// fill ends vacancies in favour of units that were booked at a slot.
func (c *transaction) fill(l *queue, slot, units int64) {
	a := c.account
	if len(a.vacant) == 0 {
		return
	}
	for _, scopes := range a.sets {
		list := a.vacant[scopes]
		list = slices.Delete(list, 0, firstVacancy(list, c.now))
		if _, all := c.sharedLimits(l.scopes, scopes); all {
			if i := firstVacancy(list, slot); i < len(list) && list[i].slot == slot {
				units -= list[i].take(units)
			}
		}
		a.setVacant(scopes, slices.DeleteFunc(list, vacancy.taken))
	}
	if units == 0 {
		return
	}
	for scopes, list := range a.vacant {
		if some, _ := c.sharedLimits(l.scopes, scopes); !some {
			continue
		}
		behind, before := units, units
		if units > manyUnits {
			behind, before = math.MaxInt64, math.MaxInt64
		}
		low, high := firstVacancy(list, slot-c.set.Window+1), firstVacancy(list, slot+c.set.Window)
		i := firstVacancy(list, slot)
		for j := i; j < high; j++ {
			behind -= list[j].take(behind)
		}
		for j := i - 1; j >= low; j-- {
			before -= list[j].take(before)
		}
		a.setVacant(scopes, slices.DeleteFunc(list, vacancy.taken))
	}
}

// take ends up to so many units, and returns how many.
func (v *vacancy) take(units int64) int64 {
	taken := min(units, v.units)
	v.units -= taken
	return taken
}

// taken reports whether nothing is left of it.
func (v vacancy) taken() bool { return v.units == 0 }

// setVacant sets the vacancies of some scopes.
func (a *account) setVacant(scopes string, list []vacancy) {
	if len(list) == 0 {
		delete(a.vacant, scopes)
		return
	}
	a.vacant[scopes] = list
}

// addVacancy notes that units of those scopes were cancelled at a slot, and ends what is vacant
// behind the last slot of all: there all is found.
func (c *transaction) addVacancy(scopes string, slot, units int64) {
	a := c.account
	if slot >= c.now && slot >= a.exceeded+c.set.Window {
		list := a.vacant[scopes]
		i := firstVacancy(list, slot)
		if i == len(list) || list[i].slot != slot {
			list = slices.Insert(list, i, vacancy{slot: slot})
		}
		list[i].units += units
		if a.vacant == nil {
			a.vacant = make(map[string][]vacancy)
		}
		a.vacant[scopes] = list
	}
	last := a.log("").last
	for scopes, list := range a.vacant {
		a.setVacant(scopes, list[:firstVacancy(list, last+1)])
	}
}

// forgetVacancies ends all. Up to that slot windows may hold more than the limits allow.
func (a *account) forgetVacancies(slot int64) {
	clear(a.vacant)
	a.exceeded = max(a.exceeded, slot)
}
