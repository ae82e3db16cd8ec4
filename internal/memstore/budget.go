package memstore

import (
	"slices"
	"strings"

	"github.com/ration-go/ration/store"
)

// A budget is all that is kept of one budget.
type budget struct {
	name     string
	version  int64
	revision int // the highest that limits were booked with
	card     store.Card
	newest   int64 // the version of the newest card of an account
	all      pause // of every account
	seen     int64 // the latest instant of any booking
	number   int64 // of the last booking
	accounts map[string]*account
	every    []*account // accounts, in any order
	looked   int        // the place in every where sweep looked last
	latest   *account   // that was asked for; nil: none
	indexes  map[indexKey]*index
	changes  changes
	watchers []*watcher
	done     doneIDs
	permits  map[string]*permits // by the name of the limit
	work     *buffers            // the store's
}

// account returns what is kept of an account.
func (b *budget) account(id string) *account {
	if b.latest != nil && b.latest.id == id {
		return b.latest
	}
	a := b.accounts[id]
	if a == nil {
		a = &account{id: id, began: b.number}
		b.accounts[id] = a
		b.every = append(b.every, a)
	}
	b.latest = a
	return a
}

// commit records the booking in all that counts it, and returns its name and the account's
// total, if it is one of the units that are all counted together.
func (b *budget) commit(charged []*transaction, slot int64, l *queue) (entry string, total int64) {
	b.number++
	for _, c := range charged {
		if c.cost(l) == 0 {
			continue
		}
		c.addUnits(l, slot, b.number, c.cost(l), true)
	}
	if l.name == "" {
		total = charged[0].account.total
	}
	return b.work.name(l, b.number, charged), total
}

// enforce puts the limits of a request in force on the accounts of its answer.
func (b *budget) enforce(charged []*transaction, now int64) {
	highest := b.revision
	for _, c := range charged {
		highest = max(highest, c.edition.Revision)
	}
	if highest > b.revision {
		b.revision = highest
		b.renew(now)
	}
	for _, c := range charged {
		if c.metered && c.units == 0 {
			continue
		}
		if c.keep() {
			b.lower(c.account)
		}
		c.finish()
	}
}

// enforceReplaced enforces limits that replace others, though nothing is booked.
func (b *budget) enforceReplaced(charged []*transaction, now int64) {
	var replaced []*transaction
	for _, c := range charged {
		if c.replaced() && !(c.metered && c.units == 0) {
			replaced = append(replaced, c)
		}
	}
	if len(replaced) > 0 {
		b.enforce(replaced, now)
	}
}

// cancel removes a booking from all that counts it.
func (b *budget) cancel(one *booking, account string, now int64) {
	if one.number > b.number {
		return
	}
	for i, id := range one.charged(account) {
		if a := b.accounts[id]; a != nil && one.parts[i].cost > 0 {
			a.cancel(one, one.parts[i], now)
			b.lower(a)
		}
	}
}

// beginQueues begins the order of an account's queues anew.
func (b *budget) beginQueues(id string, now int64) {
	if a := b.accounts[id]; a != nil {
		a.restart(now)
		b.lower(a)
	}
}

// forget forgets an account. What was booked of it is not counted any more.
func (b *budget) forget(id string) {
	a := b.accounts[id]
	if a == nil {
		return
	}
	*a = account{id: id, began: b.number}
	b.lower(a)
}

// counts reports whether an account still counts its part of a booking.
func (b *budget) counts(one *booking, a *account) bool {
	i := 1 + slices.IndexFunc(besideIn(one.queue), func(id string) bool {
		unit, metered := strings.CutPrefix(id, "*")
		return id == a.id || metered && strings.HasSuffix(a.id, store.MeterID("", unit))
	})
	return one.number <= b.number && a.counts(one, one.parts[i])
}

// sweep removes a few things that are out of use.
func (b *budget) sweep(clock reading) {
	if len(b.done.order) > 0 {
		b.done.sweep(clock.moment)
	}
	for range min(few, len(b.every)) {
		if b.looked++; b.looked >= len(b.every) {
			b.looked = 0
		}
		if a := b.every[b.looked]; a.expires <= clock.now {
			delete(b.accounts, a.id)
			last := len(b.every) - 1
			b.every[b.looked], b.every[last] = b.every[last], nil
			b.every = b.every[:last]
			b.latest = nil
		}
	}
	if len(b.indexes) == 0 {
		return // to begin a walk costs something
	}
	for key, index := range b.indexes {
		if index.expires <= clock.moment {
			delete(b.indexes, key)
		}
		break
	}
}

// doneIDs are those of what was cancelled, corrected or recorded in the last minute. That
// minute is real: a copy of a question comes late on the machine's clock, not on
// the request's. No answer of Book is kept: none is lost on its way from here.
type doneIDs struct {
	known map[store.BookingID]done
	order []store.BookingID // oldest first
}

// A done is what became of an ID.
type done struct {
	expires int64
	becomes *booking // nil: it was cancelled, or recorded
}

const rememberMicros = 60 * 1_000_000

// add adds an ID, and reports whether it was not there.
func (d *doneIDs) add(id store.BookingID, moment int64) bool {
	if d.has(id) {
		return false
	}
	d.note(id, done{expires: moment + rememberMicros})
	d.sweep(moment)
	return true
}

func (d *doneIDs) note(id store.BookingID, is done) {
	if d.known == nil {
		d.known = make(map[store.BookingID]done)
	}
	if !d.has(id) {
		d.order = append(d.order, id)
	}
	d.known[id] = is
}

// correct notes what a booking has become.
func (d *doneIDs) correct(id store.BookingID, one *booking, moment int64) {
	d.note(id, done{moment + rememberMicros, one})
	d.sweep(moment)
}

func (d *doneIDs) has(id store.BookingID) bool {
	_, found := d.known[id]
	return found
}

// sweep removes a few IDs that are out of use.
func (d *doneIDs) sweep(moment int64) {
	for range few {
		if len(d.order) == 0 || d.known[d.order[0]].expires > moment {
			return
		}
		delete(d.known, d.order[0])
		d.order = d.order[1:]
	}
}

// few is how many things that are out of use are removed in one step: more than it
// adds, so that what is kept stays bounded.
const few = 4
