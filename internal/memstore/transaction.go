package memstore

import (
	"math"
	"strings"

	"github.com/ration-go/ration/store"
)

// An account is what is kept in memory of one account. lua/account.lua is
// the same in Redis, step by step; the comments there say why.
type account struct {
	id string
	pause
	expires   int64
	limits    *store.LimitSet // those in force; nil: nothing is booked
	revision  int             // theirs
	segments  segments
	queues    map[string]int64 // the last slot of each; "" has none if it is the only one
	counters  map[string]counter
	units     int64           // booked so far, if there is no log
	renewed   int64           // the last slot that was booked under other limits
	cancelled []cancelledSlot // in the order of slots
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

// A meter is a limit of a transaction, for a counter.
type meter struct {
	*store.CompiledLimit
	transaction *transaction
}

// unusedIn returns the units of cancelled slots in [from, to) that have passed.
func (m meter) unusedIn(from, to int64) (units int64) {
	for _, h := range m.transaction.account.cancelled {
		if h.slot < m.transaction.now && h.slot >= from && h.slot < to && h.slot > m.transaction.renewed && store.Covers(m.Scope, scopesOf(h.queue)) {
			units += h.mine().cost
		}
	}
	return units
}

// A queue is the requests that leave in the order in which they book, and the cost of the
// current one.
type queue struct {
	name    string
	scopes  string
	reserve int64
	cost    int64
}

// plainQueue returns the queue of requests without a Reserve and shared accounts.
func plainQueue(scopes string) queue {
	return queue{name: store.QueueName(scopes, 0, nil), scopes: scopes}
}

func scopesOf(queue string) string {
	scopes, _, _ := strings.Cut(queue, "~")
	return scopes
}

// A transaction is one account with the limits that it keeps, for one decision.
type transaction struct {
	account *account
	now     int64
	set     *store.LimitSet
	renewed int64 // the last slot that was booked under limits of another shape
	differs bool  // the limits in force are others, of the same revision
	adopted bool  // the limits in force were adopted: they have a higher revision
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
	for _, r := range account.segments {
		r.passed = r.passed[:0]
	}
	for _, h := range account.cancelled {
		if h.slot >= now {
			break
		}
		if r := account.segmentOf(h.queue, h.mine()); r != nil {
			r.passed = append(r.passed, logEntry{h.slot, h.mine().before, h.mine().cost})
		}
	}
}

// effective returns the limits in force.
func (a *account) effective() store.EffectiveLimits {
	return store.EffectiveLimits{Revision: a.revision, Limits: a.limits.Limits}
}

// adopt gives the transaction the limits in force: those of the highest revision.
func (c *transaction) adopt(revision int) {
	a := c.account
	c.first = max(revision, a.revision) == 0
	switch {
	case a.limits == nil || a.limits.Name == c.set.Name:
	case a.revision < revision:
		if !a.limits.SameShape(c.set) {
			c.renewed = a.end(c.now)
		}
	case a.revision == revision:
		c.differs = true
	default:
		c.set, c.adopted = a.limits, true
	}
}

// segmentOf returns the segment of a part, or nil.
func (a *account) segmentOf(queue string, p part) *segment {
	for _, r := range a.segments {
		if p.logged && r.number == p.number && r.scopes == scopesOf(queue) {
			return r
		}
	}
	return nil
}

// covered returns the segments that a limit counts.
func (a *account) covered(scope string) segments {
	if scope == "" {
		return a.segments
	}
	var some segments
	for _, r := range a.segments {
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

// allowed returns how many units of a limit a request of the queue may use.
func allowed(most int64, l *queue) int64 {
	if l.reserve == 0 {
		return most
	}
	return max(l.cost, int64(math.Floor(float64(most)*float64(1000-l.reserve)/1000)))
}

// settle returns the first slot not before from that every limit admits.
func settle(transactions []*transaction, from int64, l *queue) int64 {
	slot, limits, left := from, 0, searchBudget
	for _, c := range transactions {
		slot = max(slot, c.account.segments.endOfFirst(l.scopes))
		for i := range c.set.Compiled {
			if store.Covers(c.set.Compiled[i].Scope, l.scopes) {
				limits++
			}
		}
	}
	for quiet := 0; quiet < limits; {
		for _, c := range transactions {
			for i := range c.set.Compiled {
				s := &c.set.Compiled[i]
				if quiet >= limits || !store.Covers(s.Scope, l.scopes) {
					continue
				}
				earlier := slot
				if slot = c.earliest(s, slot, l, &left); slot == earlier {
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
func (c *transaction) earliest(s *store.CompiledLimit, from int64, l *queue, left *int) int64 {
	most := allowed(s.Max, l)
	if s.Algorithm.IsLog() {
		return c.account.covered(s.Scope).earliestAt(c.now, from, l.cost, most, s.Window, left)
	}
	return c.counter(s).earliest(meter{s, c}, from, l.cost, most)
}

// plain reports whether every limit is a log of a single segment. Each then admits all
// from some slot on.
func (c *transaction) plain() bool { return c.set.OnlyLogs && len(c.account.segments) <= 1 }

// last returns the slot that no booking of the queue comes before.
func (a *account) last(queue string) int64 {
	if slot, found := a.queues[queue]; found {
		return slot
	}
	if queue == "" && !a.several() && len(a.segments) > 0 {
		return a.segments[0].last
	}
	return 0
}

// several reports whether there are queues beside "".
func (a *account) several() bool { return a.queues != nil }

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

// lead notes that no booking of the queue comes before the slot any more.
func (c *transaction) lead(l *queue, slot int64) {
	a := c.account
	if l.name != "" || a.several() || !c.set.HasLog() {
		if a.queues == nil {
			a.queues = make(map[string]int64)
			if c.set.HasLog() && len(a.segments) > 0 {
				a.queues[""] = a.segments[0].last
			}
		}
		a.queues[l.name] = slot
	}
}

// log enters units in the log.
func (c *transaction) log(l *queue, slot, cost int64) part {
	r := c.account.segmentFor(l.scopes, slot)
	return part{true, r.number, r.enter(slot, cost).before, cost}
}

// segmentFor returns the segment that ends last before the slot, a new one if none does.
func (a *account) segmentFor(scopes string, slot int64) *segment {
	var best *segment
	count := 0
	for _, r := range a.segments {
		if r.scopes != scopes {
			continue
		}
		count++
		if r.last <= slot && (best == nil || r.last > best.last) {
			best = r
		}
	}
	if best == nil {
		best = &segment{scopes: scopes, number: count}
		a.segments = append(a.segments, best)
	}
	return best
}

// end returns the last slot of all.
func (a *account) end(now int64) int64 {
	end := max(now, a.segments.last())
	for _, slot := range a.queues {
		end = max(end, slot)
	}
	return end
}

// finish sets when the account expires, and trims what it counts.
func (c *transaction) finish() {
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
	for _, r := range a.segments {
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
