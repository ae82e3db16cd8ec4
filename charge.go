package ration

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A memoryAccount is what is kept in memory of one account. lua/account.lua is
// the same in Redis, step by step; the comments there say why.
type memoryAccount struct {
	paused   int64 // the end of the pause
	expires  int64
	ruling   Ruling
	name     string // of the ruling limits, spelt out
	runs     runs
	lanes    map[string]int64 // the last slot of each; lane "" has none where it is alone
	counters map[string]counter
	units    int64  // booked so far, where there is no log
	renewed  int64  // the last slot that was booked under other limits
	holes    []hole // in the order of slots
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
	*span
	charge *charge
}

// unusedIn returns the units that were handed back and have passed unused in
// [from, to).
func (m meter) unusedIn(from, to int64) (units int64) {
	for _, h := range m.charge.account.holes {
		if h.slot < m.charge.now && h.slot >= from && h.slot < to && h.slot > m.charge.renewed && covers(m.scope, scopesOf(h.lane)) {
			units += h.mine().cost
		}
	}
	return units
}

// A hole is a booking that was handed back.
type hole struct {
	slot  int64
	lane  string
	parts []part // one for each account that was charged, this one's first
	other bool   // the account was shared: the hole is to be had from another
}

func (h hole) mine() part { return h.parts[0] }

// A part is the units of a booking that one account was charged with.
type part struct {
	logged bool
	number int // of the run
	before int64
	cost   int64
}

func compareHoles(a, b hole) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.lane, b.lane), cmp.Compare(a.mine().number, b.mine().number),
		cmp.Compare(a.mine().before, b.mine().before))
}

// A lane is who leave in the order in which they book, and what one of them asks
// for.
type lane struct {
	name   string
	scopes string
	keep   int64
	cost   int64
}

func scopesOf(lane string) string {
	scopes, _, _ := strings.Cut(lane, "~")
	return scopes
}

// covers reports whether a limit of that scope covers requests of those.
func covers(scope, scopes string) bool {
	return scope == "" || strings.Contains(","+scopes+",", ","+scope+",")
}

// A charge is one account with the limits that it keeps, for one decision.
type charge struct {
	account *memoryAccount
	now     int64
	set     *limitSet
	renewed int64 // the last slot that was booked under limits of another shape
	differs bool  // the ruling limits are others, of the same revision
	ruled   bool  // they are others, of a higher one
	first   bool  // they are of the first revision, 0
}

// openCharge readies an account for a decision.
func openCharge(account *memoryAccount, set *limitSet, now int64) *charge {
	c := &charge{account: account, now: now, set: set, renewed: account.renewed}
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
	return c
}

// rule gives the charge the limits that rule: those of the highest revision.
func (c *charge) rule(revision int) {
	a := c.account
	c.first = max(revision, a.ruling.Revision) == 0
	switch {
	case a.name == "" || a.name == c.set.name:
	case a.ruling.Revision < revision:
		if shapeOf(a.name) != shapeOf(c.set.name) {
			c.renewed = a.end(c.now)
		}
	case a.ruling.Revision == revision:
		c.differs = true
	default:
		set := limitSet{limits: a.ruling.Limits, name: a.name, spans: newSpans(a.ruling.Limits)}
		c.set, c.ruled = &set, true
	}
}

// run returns the run of a part, or nil.
func (a *memoryAccount) run(lane string, p part) *run {
	for _, r := range a.runs {
		if p.logged && r.number == p.number && r.scopes == scopesOf(lane) {
			return r
		}
	}
	return nil
}

// covered returns the runs that a limit counts.
func (a *memoryAccount) covered(scope string) runs {
	if scope == "" {
		return a.runs
	}
	var some runs
	for _, r := range a.runs {
		if covers(scope, r.scopes) {
			some = append(some, r)
		}
	}
	return some
}

// counter returns what is kept for a limit.
func (c *charge) counter(s *span) counter {
	known := c.account.counters[s.name]
	if known == nil {
		known = s.algorithm.newCounter()
		if c.account.counters == nil {
			c.account.counters = make(map[string]counter)
		}
		c.account.counters[s.name] = known
	}
	return known
}

// kept returns how many units of a limit such a booking may use.
func kept(most int64, l lane) int64 {
	if l.keep == 0 {
		return most
	}
	return max(l.cost, int64(math.Floor(float64(most)*float64(1000-l.keep)/1000)))
}

// settle returns the first slot not before from that every limit admits.
func settle(charges []*charge, from int64, l lane) int64 {
	type one struct {
		charge *charge
		span   *span
	}
	var buffer [4]one
	limits := buffer[:0]
	slot := from
	for _, c := range charges {
		slot = max(slot, c.account.runs.endOfFirst(l.scopes))
		for i := range c.set.spans.list {
			if s := &c.set.spans.list[i]; covers(s.scope, l.scopes) {
				limits = append(limits, one{c, s})
			}
		}
	}
	for at, quiet := 0, 0; quiet < len(limits); at = (at + 1) % len(limits) {
		c, s, earlier := limits[at].charge, limits[at].span, slot
		most := kept(s.max, l)
		if s.algorithm.isLog() {
			slot = c.account.covered(s.scope).earliest(slot, l.cost, most, s.window)
		} else {
			slot = c.counter(s).earliest(meter{s, c}, slot, l.cost, most)
		}
		if quiet++; slot != earlier {
			quiet = 1
		}
	}
	return slot
}

// last returns the slot that no booking of the lane comes before.
func (a *memoryAccount) last(lane string) int64 {
	if slot, found := a.lanes[lane]; found {
		return slot
	}
	if lane == "" && !a.several() && len(a.runs) > 0 {
		return a.runs[0].last
	}
	return 0
}

// several reports whether there are lanes beside "".
func (a *memoryAccount) several() bool { return a.lanes != nil }

// enter enters units in the log and in all that counts them.
func (c *charge) enter(l lane, slot, cost int64, booked bool) part {
	a := c.account
	if l.name != "" || a.several() || !c.set.spans.logged {
		if a.lanes == nil {
			a.lanes = make(map[string]int64)
			if c.set.spans.logged && len(a.runs) > 0 {
				a.lanes[""] = a.runs[0].last
			}
		}
		a.lanes[l.name] = slot
	}
	for i := range c.set.spans.list {
		s := &c.set.spans.list[i]
		if s.algorithm.isLog() || !covers(s.scope, l.scopes) {
			continue
		}
		if booked {
			c.counter(s).commit(meter{s, c}, slot, cost)
		} else {
			c.counter(s).enter(meter{s, c}, slot, cost)
		}
	}
	if c.set.spans.logged {
		r := a.runFor(l.scopes, slot)
		return part{true, r.number, r.enter(slot, cost).before, cost}
	}
	before := a.units
	a.units += cost
	return part{false, 0, before, cost}
}

// runFor returns the run that ends last before the slot.
func (a *memoryAccount) runFor(scopes string, slot int64) *run {
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
func (a *memoryAccount) end(now int64) int64 {
	end := max(now, a.runs.last())
	for _, slot := range a.lanes {
		end = max(end, slot)
	}
	return end
}

// keep sets when the account expires, and trims what it counts.
func (c *charge) keep() {
	for i := range c.set.spans.list {
		if s := &c.set.spans.list[i]; !s.algorithm.isLog() {
			c.counter(s).trim(meter{s, c}, c.now)
		}
	}
	c.account.expires = max(c.account.expires, c.account.end(c.now)+c.set.spans.window+dayMicros)
}

// trim removes some of what can matter no more.
func (c *charge) trim() {
	a, window := c.account, c.set.spans.window
	a.drop(c.now - window - dayMicros)
	for _, r := range a.runs {
		if slot, removed := r.trim(c.now, window, c.set.spans.largest); removed {
			a.drop(min(slot, c.now-window))
		}
	}
}

// drop forgets the holes before an instant.
func (a *memoryAccount) drop(before int64) {
	i := 0
	for i < len(a.holes) && a.holes[i].slot < before {
		i++
	}
	a.holes = slices.Delete(a.holes, 0, i)
}

// unsure reports whether a hole has not passed, or would not have if the clock
// stepped back.
func (c *charge) unsure() bool {
	holes := c.account.holes
	return len(holes) > 0 && holes[len(holes)-1].slot >= c.now-c.set.spans.window
}

// handedBack returns the place of the first hole of the lane that is of at least
// cost units and has not come before from, or -1. Limits that were lowered since
// may have no room for it.
func handedBack(charges []*charge, l lane, from int64) int {
	none := l
	none.cost = 0
	return slices.IndexFunc(charges[0].account.holes, func(h hole) bool {
		return h.slot >= from && !h.other && h.lane == l.name && h.mine().cost >= l.cost &&
			(charges[0].first || settle(charges, h.slot, none) == h.slot)
	})
}

// take books a hole of the first account, or as much of it as cost is.
func take(charges []*charge, l lane, at int) (parts []part) {
	h := charges[0].account.holes[at]
	rest := hole{slot: h.slot, lane: h.lane}
	for i, p := range h.parts {
		first, second := p, p
		first.cost, second.before, second.cost = l.cost, p.before+l.cost, p.cost-l.cost
		parts, rest.parts = append(parts, first), append(rest.parts, second)
		if r := charges[i].account.run(h.lane, p); r != nil && second.cost > 0 {
			r.split(logEntry{h.slot, p.before, p.cost}, l.cost)
		}
	}
	for i, c := range charges {
		if at, found := slices.BinarySearchFunc(c.account.holes, hole{slot: h.slot, lane: h.lane, parts: h.parts[i:]}, compareHoles); found {
			c.account.holes = slices.Delete(c.account.holes, at, at+1)
		}
		if rest.parts[i].cost > 0 {
			c.account.addHole(rest, i)
		}
	}
	return parts
}

// addHole adds the hole to the account that has its i-th part.
func (a *memoryAccount) addHole(h hole, i int) {
	if i > 0 {
		h.parts, h.other = h.parts[i:i+1], true
	}
	at, _ := slices.BinarySearchFunc(a.holes, h, compareHoles)
	a.holes = slices.Insert(a.holes, at, h)
}

// giveBack makes the i-th part of a booking a hole of the account, or removes it
// from the end of the log.
func (a *memoryAccount) giveBack(h hole, i int) {
	p := h.parts[i]
	r := a.run(h.lane, p)
	if p.logged {
		if r == nil {
			return
		}
		if _, found := r.find(logEntry{h.slot, p.before, p.cost}); !found {
			return
		}
	} else if p.before+p.cost > a.units {
		return
	}
	if _, already := slices.BinarySearchFunc(a.holes, hole{slot: h.slot, lane: h.lane, parts: h.parts[i:]}, compareHoles); already {
		return
	}
	a.addHole(h, i)
	if h.lane == "" && p.logged && !a.several() && len(a.counters) == 0 {
		for range maxHoles + 1 {
			n := len(r.entries) - 1
			if n < 0 {
				break
			}
			e := r.entries[n]
			at, found := slices.BinarySearchFunc(a.holes, hole{slot: e.slot, parts: []part{{true, r.number, e.before, e.cost}}}, compareHoles)
			if !found || a.holes[at].mine().cost != e.cost {
				break
			}
			a.holes = slices.Delete(a.holes, at, at+1)
			r.cut()
		}
	}
	if len(a.holes) > maxHoles {
		a.holes = slices.Delete(a.holes, 0, 1)
	}
}

// has reports whether the part of a booking that the account was charged with is
// still counted.
func (a *memoryAccount) has(h hole, id string) bool {
	i := 1 + slices.Index(sharedIn(h.lane), id)
	if i >= len(h.parts) {
		return false
	}
	p := h.parts[i]
	if !p.logged {
		return p.before+p.cost <= a.units
	}
	r := a.run(h.lane, p)
	if r == nil {
		return false
	}
	_, found := r.find(logEntry{h.slot, p.before, p.cost})
	return found
}

// usage returns the units used of a limit, and when the next is free.
func (c *charge) usage(s *span) (used, freeAt int64) {
	if s.algorithm.isLog() {
		return c.account.covered(s.scope).usage(c.now, s.max, s.window)
	}
	return c.counter(s).usage(meter{s, c}, c.now)
}
