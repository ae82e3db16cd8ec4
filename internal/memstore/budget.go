package memstore

import (
	"github.com/ration-go/ration/store"
)

// A budget is all that is kept of one budget.
type budget struct {
	name     string
	version  int64
	revision int   // the highest that limits were booked with
	all      pause // of every account
	released int64 // the last instant that it has put a slot off to
	seen     int64 // the latest instant of any booking
	accounts map[string]*account
	every    []*account // accounts, in any order
	looked   int        // the place in every where sweep looked last
	latest   *account   // that was asked for; nil: none
	indexes  map[string]*index
	changes  changes
	watchers []*watcher
	done     doneIDs
	work     *buffers // the store's
}

// account returns what is kept of an account.
func (b *budget) account(id string) *account {
	if b.latest != nil && b.latest.id == id {
		return b.latest
	}
	a := b.accounts[id]
	if a == nil {
		a = &account{id: id}
		b.accounts[id] = a
		b.every = append(b.every, a)
	}
	b.latest = a
	return a
}

// enter enters the booking in the logs of all who are charged, and returns its name and
// the account's total, if it is one of the units that are all counted together.
func (b *budget) enter(best *candidate, l *queue) (entry string, total int64) {
	h := cancelledSlot{slot: best.slot, queue: l.name}
	if best.cancelled >= 0 {
		h.parts = takeCancelled(best.transactions, l, best.cancelled)
	} else {
		h.parts = b.work.parts[:0]
		for _, c := range best.transactions {
			h.parts = append(h.parts, c.enter(l, best.slot, l.cost, true))
		}
		b.work.parts = h.parts
	}
	if p := h.mine(); l.name == "" && p.number == 0 {
		total = p.before + p.cost
	}
	return b.work.name(h), total
}

// giveBack hands back every part of a booking.
func (b *budget) giveBack(h cancelledSlot, account string) {
	ids := append([]string{account}, sharedIn(h.queue)...)
	for i := range min(len(h.parts), len(ids)) {
		if a := b.accounts[ids[i]]; a != nil {
			a.giveBack(h, i)
		}
	}
}

// sweep removes a few things that are out of use.
func (b *budget) sweep(clock reading) {
	b.done.sweep(clock.moment)
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
	for digest, index := range b.indexes {
		if index.expires <= clock.moment {
			delete(b.indexes, digest)
		}
		break
	}
}

// doneIDs are those of what was cancelled or recorded in the last minute. That
// minute is real: a copy of a question comes late on the machine's clock, not on
// the request's. No answer of Book is kept: none is lost on its way from here.
type doneIDs struct {
	expires map[store.BookingID]int64
	order   []store.BookingID // oldest first
}

const rememberMicros = 60 * 1_000_000

// add adds an ID, and reports whether it was not there.
func (d *doneIDs) add(id store.BookingID, moment int64) bool {
	if d.has(id) {
		return false
	}
	if d.expires == nil {
		d.expires = make(map[store.BookingID]int64)
	}
	d.expires[id] = moment + rememberMicros
	d.order = append(d.order, id)
	d.sweep(moment)
	return true
}

func (d *doneIDs) has(id store.BookingID) bool {
	_, found := d.expires[id]
	return found
}

// sweep removes a few IDs that are out of use.
func (d *doneIDs) sweep(moment int64) {
	for range few {
		if len(d.order) == 0 || d.expires[d.order[0]] > moment {
			return
		}
		delete(d.expires, d.order[0])
		d.order = d.order[1:]
	}
}

// few is how many things that are out of use are removed in one step: more than it
// adds, so that what is kept stays bounded.
const few = 4
