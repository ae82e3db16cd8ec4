package memstore

import (
	"math"
	"strings"

	"github.com/ration-go/ration/store"
)

// A account is what is kept in memory of one account. lua/account.lua is
// the same in Redis, step by step; the comments there say why.
type account struct {
	id string
	pause
	expires  int64
	rules    *store.LimitSet // the limits that rule; nil: nothing is booked
	revision int             // theirs
	runs     runs
	lanes    map[string]int64 // the last slot of each; lane "" has none where it is alone
	counters map[string]counter
	units    int64           // booked so far, where there is no log
	renewed  int64           // the last slot that was booked under other limits
	holes    []cancelledSlot // in the order of slots
}

// A counter is what an algorithm that keeps no log keeps for one limit of one
// account. lua/account.lua says what its methods do.
type counter interface {
	earliest(m meter, from, cost, most int64) int64
	commit(m meter, slot, cost int64)
	enter(m meter, slot, cost int64)
	usage(m meter, now int64) (used, freeAt int64)
	left(m meter, slot int64) int64
	trim(m meter, now int64)
}

// A meter is a limit of a charge, for a counter.
type meter struct {
	*store.CompiledLimit
	charge *transaction
}

// unusedIn returns the units that were handed back and have passed unused in
// [from, to).
func (m meter) unusedIn(from, to int64) (units int64) {
	for _, h := range m.charge.account.holes {
		if h.slot < m.charge.now && h.slot >= from && h.slot < to && h.slot > m.charge.renewed && store.Covers(m.Scope, scopesOf(h.lane)) {
			units += h.mine().cost
		}
	}
	return units
}

// A queue is who leave in the order in which they book, and what one of them asks
// for.
type queue struct {
	name   string
	scopes string
	keep   int64
	cost   int64
}

// plainQueue returns the lane of those who keep nothing back and have no shared account.
func plainQueue(scopes string) queue {
	return queue{name: store.QueueName(scopes, 0, nil), scopes: scopes}
}

func scopesOf(lane string) string {
	scopes, _, _ := strings.Cut(lane, "~")
	return scopes
}

// A transaction is one account with the limits that it keeps, for one decision.
type transaction struct {
	account *account
	now     int64
	set     *store.LimitSet
	renewed int64 // the last slot that was booked under limits of another shape
	differs bool  // the ruling limits are others, of the same revision
	ruled   bool  // they are others, of a higher one
	first   bool  // they are of the first revision, 0
}

// openTransaction readies an account for a decision.
func openTransaction(account *account, set *store.LimitSet, now int64) *transaction {
	c := new(transaction)
	c.open(account, set, now)
	return c
}

func (c *transaction) open(account *account, set *store.LimitSet, now int64) {
	*c = transaction{account: account, now: now, set: set, renewed: account.renewed}
	for _, r := range account.runs {
		r.passed = r.passed[:0]
	}
	for _, h := range account.holes {
		if h.slot >= now {
			break
		}
		if r := account.run(h.lane, h.mine()); r != nil {
			r.passed = append(r.passed, logEntry{h.slot, h.mine().before, h.mine().cost})
		}
	}
}

// ruling returns the limits that rule.
func (a *account) ruling() store.EffectiveLimits {
	return store.EffectiveLimits{Revision: a.revision, Limits: a.rules.Limits}
}

// rule gives the charge the limits that rule: those of the highest revision.
func (c *transaction) rule(revision int) {
	a := c.account
	c.first = max(revision, a.revision) == 0
	switch {
	case a.rules == nil || a.rules.Name == c.set.Name:
	case a.revision < revision:
		if !a.rules.SameShape(c.set) {
			c.renewed = a.end(c.now)
		}
	case a.revision == revision:
		c.differs = true
	default:
		c.set, c.ruled = a.rules, true
	}
}

// run returns the run of a part, or nil.
func (a *account) run(lane string, p part) *run {
	for _, r := range a.runs {
		if p.logged && r.number == p.number && r.scopes == scopesOf(lane) {
			return r
		}
	}
	return nil
}

// covered returns the runs that a limit counts.
func (a *account) covered(scope string) runs {
	if scope == "" {
		return a.runs
	}
	var some runs
	for _, r := range a.runs {
		if store.Covers(scope, r.scopes) {
			some = append(some, r)
		}
	}
	return some
}

// counter returns what is kept for a limit.
func (c *transaction) counter(s *store.CompiledLimit) counter {
	known := c.account.counters[s.Name]
	if known == nil {
		known = newCounter(s.Algorithm)
		if c.account.counters == nil {
			c.account.counters = make(map[string]counter)
		}
		c.account.counters[s.Name] = known
	}
	return known
}

// kept returns how many units of a limit such a booking may use.
func kept(most int64, l *queue) int64 {
	if l.keep == 0 {
		return most
	}
	return max(l.cost, int64(math.Floor(float64(most)*float64(1000-l.keep)/1000)))
}

// settle returns the first slot not before from that every limit admits.
func settle(charges []*transaction, from int64, l *queue) int64 {
	slot, limits, looks := from, 0, maxLooks
	for _, c := range charges {
		slot = max(slot, c.account.runs.endOfFirst(l.scopes))
		for i := range c.set.Compiled {
			if store.Covers(c.set.Compiled[i].Scope, l.scopes) {
				limits++
			}
		}
	}
	for quiet := 0; quiet < limits; {
		for _, c := range charges {
			for i := range c.set.Compiled {
				s := &c.set.Compiled[i]
				if quiet >= limits || !store.Covers(s.Scope, l.scopes) {
					continue
				}
				earlier := slot
				if slot = c.earliest(s, slot, l, &looks); slot == earlier {
					quiet++
				} else {
					quiet = 1
				}
			}
		}
	}
	return slot
}

// earliest returns the first slot not before from that a limit admits.
func (c *transaction) earliest(s *store.CompiledLimit, from int64, l *queue, looks *int) int64 {
	most := kept(s.Max, l)
	if s.Algorithm.IsLog() {
		return c.account.covered(s.Scope).earliestAt(c.now, from, l.cost, most, s.Window, looks)
	}
	return c.counter(s).earliest(meter{s, c}, from, l.cost, most)
}

// plain reports whether every limit is a log of a single run. Each then admits all
// from some slot on.
func (c *transaction) plain() bool { return c.set.OnlyLogs && len(c.account.runs) <= 1 }

// last returns the slot that no booking of the lane comes before.
func (a *account) last(lane string) int64 {
	if slot, found := a.lanes[lane]; found {
		return slot
	}
	if lane == "" && !a.several() && len(a.runs) > 0 {
		return a.runs[0].last
	}
	return 0
}

// several reports whether there are lanes beside "".
func (a *account) several() bool { return a.lanes != nil }

// enter enters units in the log and in all that counts them.
func (c *transaction) enter(l *queue, slot, cost int64, booked bool) part {
	c.lead(l, slot)
	for i := range c.set.Compiled {
		s := &c.set.Compiled[i]
		if s.Algorithm.IsLog() || !store.Covers(s.Scope, l.scopes) {
			continue
		}
		if booked {
			c.counter(s).commit(meter{s, c}, slot, cost)
		} else {
			c.counter(s).enter(meter{s, c}, slot, cost)
		}
	}
	if c.set.HasLog() {
		return c.log(l, slot, cost)
	}
	before := c.account.units
	c.account.units += cost
	return part{false, 0, before, cost}
}

// lead notes that no booking of the lane comes before the slot any more.
func (c *transaction) lead(l *queue, slot int64) {
	a := c.account
	if l.name != "" || a.several() || !c.set.HasLog() {
		if a.lanes == nil {
			a.lanes = make(map[string]int64)
			if c.set.HasLog() && len(a.runs) > 0 {
				a.lanes[""] = a.runs[0].last
			}
		}
		a.lanes[l.name] = slot
	}
}

// log enters units in the log.
func (c *transaction) log(l *queue, slot, cost int64) part {
	r := c.account.runFor(l.scopes, slot)
	return part{true, r.number, r.enter(slot, cost).before, cost}
}

// runFor returns the run that ends last before the slot.
func (a *account) runFor(scopes string, slot int64) *run {
	var best *run
	count := 0
	for _, r := range a.runs {
		if r.scopes != scopes {
			continue
		}
		count++
		if r.last <= slot && (best == nil || r.last > best.last) {
			best = r
		}
	}
	if best == nil {
		best = &run{scopes: scopes, number: count}
		a.runs = append(a.runs, best)
	}
	return best
}

// end returns the last slot of all.
func (a *account) end(now int64) int64 {
	end := max(now, a.runs.last())
	for _, slot := range a.lanes {
		end = max(end, slot)
	}
	return end
}

// keep sets when the account expires, and trims what it counts.
func (c *transaction) keep() {
	for i := range c.set.Compiled {
		if s := &c.set.Compiled[i]; !s.Algorithm.IsLog() {
			c.counter(s).trim(meter{s, c}, c.now)
		}
	}
	c.account.expires = max(c.account.expires, c.account.end(c.now)+c.set.Window+dayMicros)
}

// trim removes some of what can matter no more.
func (c *transaction) trim() {
	a, window := c.account, c.set.Window
	a.drop(c.now - window - dayMicros)
	for _, r := range a.runs {
		if slot, removed := r.trim(c.now, window, c.set.LargestMax); removed {
			a.drop(min(slot, c.now-window))
		}
	}
}

// usage returns the units used of a limit, and when the next is free.
func (c *transaction) usage(s *store.CompiledLimit) (used, freeAt int64) {
	if s.Algorithm.IsLog() {
		return c.account.covered(s.Scope).usage(c.now, s.Max, s.Window)
	}
	return c.counter(s).usage(meter{s, c}, c.now)
}
