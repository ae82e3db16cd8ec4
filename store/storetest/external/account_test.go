package external

import (
	"math/big"
	"slices"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// An account is what is kept of one account.
type account struct {
	pause
	budget   *budget
	limits   *store.LimitSet // the effective ones; nil: nothing was booked
	edition  store.Edition   // theirs
	why      string          // they are in force
	bookings []*booking      // in the order of slots
	total    int64           // the units of all that were ever added
	gone     int64           // those of them that were cancelled
	last     map[string]int64
	windows  map[string][]window // of FirstUse limits
	base     map[string]*big.Rat // of GCRA: when the bucket is empty of the bookings that were forgotten
}

// A booking is units that count at a slot: booked, recorded or reconciled.
type booking struct {
	id         store.BookingID // zero: it was not booked
	slot, cost int64
	total      int64 // the account's, up to the end of this booking
	queue      string
	account    string     // the ID of the first of charged, or of the one that has the slot
	charged    []*account // the account that was booked, then the shared ones
	meters     []*booking // what the account's meters are charged with
	only       string     // the name of the one limit that it counts in, or logs; empty: all
	recorded   bool       // it waited for nothing
	corrected  bool       // its call was sent
}

// logs is booking.only of what counts in every log.
const logs = "logs"

// add adds a booking to the lists of those that it charges.
func (b *booking) add() {
	for _, a := range b.charged {
		at := slices.IndexFunc(a.bookings, func(o *booking) bool { return o.slot > b.slot || o.slot == b.slot && o.total > b.total })
		if at < 0 {
			at = len(a.bookings)
		}
		a.bookings = slices.Insert(a.bookings, at, b)
	}
	for _, o := range b.meters {
		o.add()
	}
}

// remove removes a booking that is cancelled from those lists.
func (b *booking) remove() {
	b.charged[0].gone += b.cost
	for _, a := range b.charged {
		a.bookings = slices.DeleteFunc(a.bookings, func(o *booking) bool { return o == b })
	}
	for _, o := range b.meters {
		o.remove()
	}
}

// A charge is an account and the limits by which it is counted in one step.
type charge struct {
	account *account
	set     *store.LimitSet
	edition store.Edition // of set, as it was given
	now     int64
	differs bool // other limits of the same edition are in force
	adopted bool // others of a later edition are: set has them
	cost    int64
}

// effective adopts the account's limits if their edition is later.
func (c *charge) effective(edition store.Edition) {
	a := c.account
	c.edition = edition
	switch {
	case a.limits == nil || a.edition.Compare(edition) < 0:
	case a.limits.Name == c.set.Name:
		c.adopted = a.edition != edition
	case a.edition == edition:
		c.differs = true
	default:
		c.set, c.adopted = a.limits, true
	}
}

// replaces reports whether the request's limits replace others that are in force.
func (c *charge) replaces() bool {
	return !c.adopted && c.account.limits != nil && c.account.limits.Name != c.set.Name
}

// enforce puts the limits of the charge in force, unless later ones are.
func (c *charge) enforce() {
	a := c.account
	if c.adopted {
		return
	}
	if a.limits = c.set; c.edition.Compare(a.edition) > 0 {
		a.edition, a.why = c.edition, ""
	}
}

// inForce returns the account's limits; none if nothing was booked.
func (a *account) inForce() store.Card {
	if a.limits == nil {
		return store.Card{}
	}
	return store.Card{Edition: a.edition, Limits: a.limits.Limits}
}

// commit begins the windows that a booking begins, and forgets what can count no more:
// for a clock that steps back it keeps more than limits look at.
func (c *charge) commit(b *booking) {
	a := c.account
	for _, l := range c.set.Compiled {
		if m := c.meter(l); l.FirstUse && m.covers(b) {
			m.beginWindow(b.slot)
		}
	}
	n := 0
	for oldest := c.now - 3*c.set.Window; n < len(a.bookings) && a.bookings[n].slot < oldest; n++ {
		old := a.bookings[n]
		for _, l := range c.set.Compiled {
			if m := c.meter(l); l.Algorithm == limit.GCRA && m.covers(old) {
				a.base[l.Name] = m.add(a.base[l.Name], old)
			}
		}
		if old.charged[0] == a {
			delete(a.budget.bookings, old.id)
		}
	}
	a.bookings = slices.Delete(a.bookings, 0, n)
}

// record adds units that wait for nothing, and that later bookings of the queue wait for.
func (c *charge) record(scopes, only string, slot, cost int64) {
	a, queue := c.account, store.QueueName(scopes, 0, nil)
	a.total += cost
	a.last[queue] = max(a.last[queue], slot)
	b := &booking{slot: slot, cost: cost, total: a.total, queue: queue, charged: []*account{a}, only: only, recorded: true}
	b.add()
	c.commit(b)
}

// settle returns the first slot not before from that every limit of the charges admits.
func settle(charges []*charge, from int64, scopes string, reserve int) int64 {
	for slot := from; ; {
		before := slot
		for _, c := range charges {
			for _, l := range c.set.Compiled {
				if store.Covers(l.Scope, scopes) && c.cost > 0 {
					most := max(c.cost, l.Max*int64(1000-reserve)/1000)
					slot = c.meter(l).earliest(slot, c.cost, most)
				}
			}
		}
		if slot == before {
			return slot
		}
	}
}
