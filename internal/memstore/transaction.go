package memstore

import (
	"math"
	"strings"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A counter is what an algorithm that keeps no log keeps for one limit of one
// account. lua/account.lua says what its methods do.
type counter interface {
	earliest(m meter, from, cost, most int64) int64
	commit(m meter, slot, cost int64)
	cancel(m meter, slot, cost int64)
	record(m meter, slot, cost int64)
	usage(m meter, now int64) (used, ahead, freeAt int64)
	left(m meter, slot int64) int64
	trim(m meter, now int64)
}

// A meter is a limit of a transaction.
type meter struct {
	*store.CompiledLimit
	transaction *transaction
	counter     counter // nil: the limit is counted in a log
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

// A transaction is one account with the limits that it keeps, for one decision. Every account
// has one, so that the next decision under the same limits finds their meters.
type transaction struct {
	account *account
	now     int64
	set     *store.LimitSet
	meters  []meter       // of the set's limits, in their order
	renewed int64         // the last slot that was booked under limits of another shape
	edition store.Edition // of the set, as it was given
	differs bool          // the limits in force are others, of the same edition
	adopted bool          // the limits in force were adopted: they are of a later edition
	taken   []taking      // what a booking took of GCRA's time, in the order of the limits
	metered bool          // the account is a meter of another one: it is charged with
	units   int64         // these, and not with the queue's cost
}

// cost returns with how many units a booking charges the account.
func (c *transaction) cost(l *queue) int64 {
	if c.metered {
		return c.units
	}
	return l.cost
}

// open readies the account for a decision.
func (a *account) open(set *store.LimitSet, now int64) *transaction {
	c := &a.transaction
	c.account, c.now, c.renewed, c.differs, c.adopted, c.taken, c.metered = a, now, a.renewed, false, false, c.taken[:0], false
	c.use(set)
	return c
}

// use gives the transaction its limits.
func (c *transaction) use(set *store.LimitSet) {
	if c.set == set {
		return
	}
	c.set, c.meters = set, c.meters[:0]
	for i := range set.Compiled {
		m := meter{CompiledLimit: &set.Compiled[i], transaction: c}
		if !m.Algorithm.IsLog() {
			m.counter = c.account.counter(m.CompiledLimit)
		}
		c.meters = append(c.meters, m)
	}
}

// adopt gives the transaction the limits in force: those of the latest edition.
func (c *transaction) adopt(edition store.Edition) {
	a := c.account
	c.edition = edition
	if a.limits == nil {
		return
	}
	later := a.edition.Compare(edition)
	if a.limits.Name == c.set.Name {
		c.adopted = later > 0
		return
	}
	switch later {
	case -1:
		if !a.limits.SameShape(c.set) {
			c.renewed = max(c.now, a.latest)
		}
	case 0:
		c.differs = true
	default:
		c.use(a.limits)
		c.adopted = true
	}
}

// replaced reports whether the limits in force are others than the transaction's.
func (c *transaction) replaced() bool {
	a := c.account
	return a.limits != nil && a.limits != c.set && a.limits.Name != c.set.Name
}

// keep makes the transaction's limits those in force, and reports whether they are others
// than before.
func (c *transaction) keep() (changed bool) {
	a := c.account
	if c.adopted {
		return false
	}
	changed = a.limits != nil && a.limits.Name != c.set.Name
	if c.edition.Compare(a.edition) > 0 {
		a.edition, a.why = c.edition, ""
	}
	if a.limits != c.set { // most often it is: to write a pointer costs more than to look
		a.limits = c.set
	}
	a.renewed = c.renewed
	return changed
}

// covers reports whether the limit covers a request of the queue.
func (m *meter) covers(l *queue) bool {
	return (m.Scope == "" || store.Covers(m.Scope, l.scopes)) && m.transaction.cost(l) > 0
}

// allowed returns how many units of a limit a request of the queue that costs so many may use.
func allowed(most int64, l *queue, cost int64) int64 {
	if l.reserve == 0 {
		return most
	}
	return max(cost, int64(math.Floor(float64(most)*float64(1000-l.reserve)/1000)))
}

// settle returns the first slot not before from that every limit admits.
func settle(transactions []*transaction, from int64, l *queue) int64 {
	slot, limits, left := from, 0, searchBudget
	for _, c := range transactions {
		for i := range c.meters {
			if c.meters[i].covers(l) {
				limits++
			}
		}
	}
	for quiet := 0; quiet < limits; {
		for _, c := range transactions {
			for i := range c.meters {
				m := &c.meters[i]
				if quiet >= limits || !m.covers(l) {
					continue
				}
				earlier := slot
				if slot = m.earliest(slot, l, &left); slot == earlier {
					quiet++
				} else {
					quiet = 1
				}
			}
		}
	}
	return slot
}

// earliest returns the first slot not before from that the limit admits.
func (m *meter) earliest(from int64, l *queue, left *int) int64 {
	c := m.transaction
	cost := c.cost(l)
	most := allowed(m.Max, l, cost)
	if m.counter != nil {
		return m.counter.earliest(*m, from, cost, most)
	}
	price := 1
	if m.Algorithm == limit.StreamLog {
		price = streamPrice
	}
	last := c.account.log("").last
	return c.account.log(m.Scope).earliest(c.now, last, from, cost, most, m.Window, price, left)
}

// addUnits records units that were booked, or spent without a booking, in all that counts them.
func (c *transaction) addUnits(l *queue, slot, number, cost int64, booked bool) {
	for i := range c.meters {
		m := &c.meters[i]
		if m.counter == nil || m.Scope != "" && !store.Covers(m.Scope, l.scopes) {
			continue
		}
		if booked {
			m.counter.commit(*m, slot, cost)
		} else {
			m.counter.record(*m, slot, cost)
		}
	}
	c.addToLog(l, slot, number, cost)
}

// addToLog adds units in the log, if there is one, and in the order of the queue.
func (c *transaction) addToLog(l *queue, slot, number, cost int64) {
	a := c.account
	if c.set.HasLog() {
		a.addToLog(l.scopes, slot, number, cost)
	}
	a.total += cost
	a.lead(l.name, slot)
}

// trimLater is how long an entry of the log stays after it has left the longest window, or a
// window if that is shorter: a clock that steps back by less finds it.
const trimLater = 60_000_000

// finish sets when the account expires, and trims what it counts.
func (c *transaction) finish() {
	a, window := c.account, c.set.Window
	for i := range c.meters {
		if m := &c.meters[i]; m.counter != nil {
			m.counter.trim(*m, c.now)
		}
	}
	for _, l := range a.logs {
		l.trim(c.now - window - min(window, trimLater))
	}
	a.expires = max(a.expires, max(c.now, a.latest)+window+dayMicros)
}

// usage returns the units used of the limit, those booked ahead, and when the next is free.
func (m *meter) usage() (used, ahead, freeAt int64) {
	c := m.transaction
	if m.counter != nil {
		return m.counter.usage(*m, c.now)
	}
	return c.account.log(m.Scope).usage(c.now, m.Max, m.Window)
}
