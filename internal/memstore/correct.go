package memstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// Correct implements [store.Store]. lua/correct.lua is the same in Redis, step by step.
func (s *Store) Correct(_ context.Context, r store.CorrectRequest) (store.Booking, error) {
	if err := r.Validate(); err != nil {
		return store.Booking{}, err
	}
	one, err := parseEntry(r.Booking.Entry, r.Booking.Slot)
	if err != nil {
		return store.Booking{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clock, b := s.clock(r.Now), s.budget(r.Booking.Budget)
	known, gone := b.done.known[r.Booking.ID]
	if gone && known.becomes != nil {
		one, gone = *known.becomes, false
	}
	slot := one.slot
	if !r.Slot.IsZero() {
		slot = r.Slot.UnixMicro()
	}

	b.correct(&one, r.Booking.Account, gone, slot, spentBy(&one, r), clock.now)
	b.done.correct(r.Booking.ID, &one, clock.moment)
	answer := r.Booking
	answer.Cost, answer.Slot, answer.Entry = r.Cost, time.UnixMicro(one.slot), one.name()
	return answer, nil
}

// spentBy returns what each account of a booking has spent, in the order of its parts.
func spentBy(one *booking, r store.CorrectRequest) []int64 {
	spent, meter := []int64{int64(r.Cost)}, 0
	for _, id := range besideIn(one.queue) {
		units := int64(r.Cost)
		if strings.HasPrefix(id, "*") {
			if units = 0; meter < len(r.Units) {
				units = int64(r.Units[meter])
			}
			meter++
		}
		spent = append(spent, units)
	}
	return spent
}

// correct makes a booking one that left at a slot and has spent so much. A booking that is gone is recorded.
func (b *budget) correct(one *booking, charged string, gone bool, slot int64, spent []int64, now int64) {
	accounts, counted := make([]*account, len(spent)), make([]bool, len(spent))
	again := gone || slot != one.slot
	for i, id := range one.charged(charged) {
		a := b.accounts[id]
		if a == nil || a.limits == nil {
			continue
		}
		accounts[i], counted[i] = a, !gone && one.parts[i].cost > 0 && one.number <= b.number && a.counts(one, one.parts[i])
		again = again || spent[i] > 0 && !counted[i]
	}
	var free []string
	beside, before := besideIn(one.queue), *one
	before.parts = slices.Clone(one.parts)
	if again {
		b.number++
		one.slot, one.number = slot, b.number
	}

	for i, a := range accounts {
		p := &one.parts[i]
		if a == nil {
			*p = part{logged: p.logged}
			continue
		}
		freed := false
		if counted[i] && (!again || spent[i] == 0) {
			freed = a.change(&before, p, spent[i], now)
		} else {
			if counted[i] {
				freed = before.slot >= now || spent[i] < p.cost
				a.change(&before, p, 0, now)
			}
			c := a.open(a.limits, now)
			*p = part{logged: c.set.HasLog()}
			if spent[i] > 0 && slot > now-c.set.Window {
				p.cost = spent[i]
				c.addUnits(&queue{name: one.queue, scopes: scopesOf(one.queue)}, slot, one.number, p.cost, false)
				c.finish()
			}
		}
		if freed {
			a.restart(now)
		}
		b.lower(a)
		if freed && i > 0 && strings.HasPrefix(beside[i-1], "*") {
			free = append(free, charged) // what is free of a meter is its account's
		} else if freed {
			free = append(free, a.id)
		}
	}
	slices.Sort(free)
	b.announceFreed(slices.Compact(free), true, store.BookingID{})
}

// change makes a part of a booking, which the account counts, one of so many units, and reports whether any are free that were not.
func (a *account) change(b *booking, p *part, units, now int64) (freed bool) {
	scopes, c, less := scopesOf(b.queue), a.open(a.limits, now), p.cost-units
	if less > 0 {
		a.cancelled += less
	} else {
		a.total -= less
	}
	if p.logged {
		for scope := range scopesIn(scopes) {
			a.log(scope).change(b.slot, b.number, -less)
		}
		a.latest = a.log("").last
	}
	if b.slot > a.renewed {
		c.taken = p.taken
		var kept []taking
		for _, m := range c.meters {
			switch {
			case m.counter == nil || !store.Covers(m.Scope, scopes):
			case less < 0:
				m.counter.record(m, b.slot, -less)
			case less > 0:
				if g, timed := m.counter.(*gcra); timed && units > 0 && len(c.taken) > 0 {
					kept = append(kept, g.split(m, less)...)
				}
				m.counter.cancel(m, b.slot, less)
			}
		}
		if less > 0 {
			p.taken = kept
		}
	}
	p.cost = units
	return less > 0
}
