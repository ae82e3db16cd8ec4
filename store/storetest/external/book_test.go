package external

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/store"
)

// An offer is the slot that one of a request's accounts has for it.
type offer struct {
	charges []*charge // the account, then its meters, then the shared ones
	id      string
	slot    int64
	free    int64 // since when the account alone would have admitted it
}

// Book implements [store.Store].
func (s *Store) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.Booking{}, err
	}
	defer s.mu.Unlock()
	one := b.bookings[r.ID]
	if one != nil { // asked again, since its answer was lost
		return b.answer(r, one, now), nil
	}
	if r.KnownCard != b.card.Version {
		return store.Booking{ID: r.ID, Budget: r.Budget, Cost: r.Cost, Behind: true, Now: time.UnixMicro(now), Version: b.version}, nil
	}
	if r.Instead != nil {
		if !isEntry(r.Instead.Booking) {
			return store.Booking{}, store.ErrOtherStore
		}
		b.cancel(r.Instead.Booking.ID, now)
	}
	best, err := b.choose(&r, now)
	if err != nil {
		return store.Booking{}, err
	}
	own := best.charges[0]
	if r.MaxWait == store.Never || r.MaxWait != store.Forever && best.slot-now > r.MaxWait.Microseconds() {
		one = &booking{slot: best.slot, account: best.id}
		keeps := func(c *charge) bool { return !c.replaces() }
		if replaced := slices.DeleteFunc(slices.Clone(best.charges), keeps); len(replaced) > 0 {
			b.enforce(replaced, now)
		}
	} else {
		one = b.enter(&r, &best)
		gave := []*pause{&b.all, &best.charges[0].account.pause}
		for _, one := range r.Accounts.Shared() {
			gave = append(gave, &b.account(one.ID).pause)
		}
		for _, p := range gave {
			p.gave(p.from(now), now)
		}
		b.enforce(best.charges, now)
		for _, c := range best.charges {
			c.commit(one)
		}
	}
	answer := b.answer(r, one, now)
	if own.adopted {
		answer.Effective = own.account.inForce()
	}
	return answer, nil
}

// enforce puts the limits of the charges in force, where later ones are not.
func (b *budget) enforce(charges []*charge, now int64) {
	for _, c := range charges {
		if c.edition.Revision > b.revision {
			b.revision = c.edition.Revision
			b.renew(now)
		}
		c.enforce()
	}
}

// answer tells a booking; without an ID it was not booked.
func (b *budget) answer(r store.BookRequest, one *booking, now int64) store.Booking {
	answer := store.Booking{
		ID: r.ID, Budget: r.Budget, Cost: r.Cost, Account: one.account, Booked: one.id == r.ID,
		Slot: time.UnixMicro(one.slot), Now: time.UnixMicro(now), Version: b.version,
	}
	if answer.Booked {
		answer.Entry = entry(one.queue, one.id)
	}
	if answer.Booked && one.queue == "" {
		answer.Total = one.total
	}
	return answer
}

// choose returns the best offer.
func (b *budget) choose(r *store.BookRequest, now int64) (best offer, err error) {
	accounts, scopes := r.Accounts, r.Accounts.RelevantScopes(r.Scopes)
	from := max(b.all.from(now), now+r.AskLead().Microseconds())
	var shared []*charge
	for i, one := range accounts.Shared() {
		c := &charge{account: b.account(one.ID), set: accounts.SharedLimitSet(i), now: now, cost: int64(r.Cost)}
		if c.effective(r.EditionOf(c.set)); c.differs {
			return best, store.NewLimitsError(*r, one.ID, c.account.inForce())
		}
		if int64(r.Cost) > c.set.MaxCost(scopes) {
			return best, store.CostError(*r)
		}
		from = max(from, c.account.from(now))
		shared = append(shared, c)
	}
	// They are asked in turn, since the first of equal offers is taken.
	behind := accounts.Index(b.charged[listKey(r)]) + 1
	for n := range accounts.Len() {
		i := (behind + n) % accounts.Len()
		one := accounts.At(i)
		c := &charge{account: b.account(one.ID), set: accounts.LimitSet(i), now: now, cost: int64(r.Cost)}
		if int64(r.Cost) > c.set.MaxCost(scopes) || r.Excludes(one.ID) {
			continue
		}
		c.effective(r.EditionOf(c.set))
		if c.differs && err == nil {
			err = store.NewLimitsError(*r, one.ID, c.account.inForce())
		}
		if c.differs || int64(r.Cost) > c.set.MaxCost(scopes) {
			continue
		}
		meters := b.metersOf(r, one.ID, now)
		if slices.ContainsFunc(meters, func(m *charge) bool { return m.cost > m.set.MaxCost(scopes) }) {
			continue
		}
		o := offer{charges: slices.Concat([]*charge{c}, meters, shared), id: one.ID}
		o.find(r, scopes, from)
		if best.charges == nil || o.slot < best.slot || o.slot == best.slot && o.free < best.free {
			best = o
		}
	}
	if best.charges == nil && err == nil {
		err = store.CostError(*r)
	}
	if best.charges != nil {
		err = nil
	}
	return best, err
}

// metersOf returns an account's meters, with what a request charges them.
func (b *budget) metersOf(r *store.BookRequest, account string, now int64) (meters []*charge) {
	for i, meter := range r.Accounts.Meters() {
		c := &charge{account: b.account(store.MeterID(account, meter.Unit)), set: r.Accounts.MeterLimitSet(i), now: now, cost: int64(r.Units[i])}
		c.effective(r.EditionOf(c.set))
		meters = append(meters, c)
	}
	return meters
}

// listKey names the accounts of a request, and its queue.
func listKey(r *store.BookRequest) string {
	return r.Accounts.Digest() + r.Accounts.Queue(r.Accounts.RelevantScopes(r.Scopes), r.Reserve)
}

// find finds the slot of an offer that comes not before from.
func (o *offer) find(r *store.BookRequest, scopes string, from int64) {
	own := o.charges[0]
	queue := r.Accounts.Queue(scopes, r.Reserve)
	last := own.account.last[queue]
	if r.Accounts.Len() > 1 {
		o.free = settle(o.charges[:1], last, scopes, r.Reserve)
	}
	from = max(from, own.account.until, last, own.account.from(own.now))
	for _, c := range o.charges[1 : 1+len(r.Units)] {
		from = max(from, c.account.until)
	}
	o.slot = settle(o.charges, from, scopes, r.Reserve)
}

// enter enters the booking of an offer.
func (b *budget) enter(r *store.BookRequest, o *offer) *booking {
	queue := r.Accounts.Queue(r.Accounts.RelevantScopes(r.Scopes), r.Reserve)
	one := &booking{id: r.ID, account: o.id, slot: o.slot, cost: int64(r.Cost), queue: queue}
	b.bookings[r.ID] = one
	b.charged[listKey(r)] = o.id
	for i, c := range o.charges {
		if i == 0 || i > len(r.Units) {
			one.charged = append(one.charged, c.account)
		} else if c.cost > 0 {
			c.account.total += c.cost
			c.account.last[queue] = max(c.account.last[queue], one.slot)
			one.meters = append(one.meters, &booking{slot: one.slot, cost: c.cost, total: c.account.total, queue: queue, charged: []*account{c.account}})
		}
	}
	own := one.charged[0]
	own.total += one.cost
	one.total = own.total
	for _, a := range one.charged {
		a.last[queue] = max(a.last[queue], one.slot)
	}
	one.add()
	return one
}
