package ration

import (
	"context"
	"encoding/binary"
	"time"
)

// Most bookings of a crawler that has quota left are of one token, in logs, and may
// leave at once; in memory they take as long as reading two clocks. What follows is
// the way of a waiter through MemoryStore.book with all left out that has nothing
// to do for such a booking. Where it has, nothing is changed and the long way is
// taken, from its beginning.

// atOnce grants cost units of the accounts if that is all there is to do, and
// reports whether it did. The grant lacks its token.
func (b *Budget) atOnce(ctx context.Context, accounts *Accounts, revision, cost int, g *Grant) bool {
	memory, is := b.Store.(*MemoryStore)
	if !is || b.now != nil || b.Outage != HoldBack || b.Keep != 0 || len(accounts.list) > 1 || len(accounts.shared) > 0 {
		return false
	}
	if askingOf(ctx) != nil || ctx.Err() != nil || !memory.atOnce(b.Name, accounts, revision, cost, b.version.Load(), g) {
		return false
	}
	g.Cost, g.budget, g.accounts = cost, b, accounts
	return true
}

// atOnce books on the one account if its limits are logs in which only bookings of
// one run are, none of them handed back, if the slot has come, and if there is no
// news of a higher version of the budget's status.
func (s *MemoryStore) atOnce(budget string, accounts *Accounts, revision, cost int, version int64, g *Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, a := s.known(budget, accounts.list[0].ID)
	if a == nil || b.version != version || revision > b.revision {
		return false
	}
	set := &accounts.sets[0]
	if a.rules == nil || a.rules.name != set.name || !set.spans.logs || len(a.runs) != 1 || a.runs[0].scopes != "" || a.several() ||
		len(a.holes) > 0 || cost < 1 || int64(cost) > set.spans.least {
		return false
	}
	clock := s.clock(time.Time{})
	now, r := clock.now, a.runs[0]
	s.work.begin()
	c := s.work.open(a, set, now)
	if max(a.paused, b.all.paused) > now || r.last > now || c.settleLogs(now, int64(cost)) != now {
		return false
	}
	e := r.enter(now, int64(cost))
	a.rules, a.revision = set, max(a.revision, revision)
	c.keep()
	c.trim()
	b.sweep(clock)
	g.id, g.account, g.entry = s.newID(), a.id, s.work.nameOne(part{true, r.number, e.before, e.cost})
	g.now, g.soonest = time.UnixMicro(now), clock.read
	g.Slot = g.now
	return true
}

// known returns what is kept of a budget and an account, if anything is.
func (s *MemoryStore) known(budget, account string) (*memoryBudget, *memoryAccount) {
	b := s.latest
	if b == nil || b.name != budget {
		if b = s.budgets[budget]; b == nil {
			return nil, nil
		}
		s.latest = b
	}
	a := b.latest
	if a == nil || a.id != account {
		if a = b.accounts[account]; a != nil {
			b.latest = a
		}
	}
	return b, a
}

// settleLogs is settle for a charge of logs with one run.
func (c *charge) settleLogs(from, cost int64) int64 {
	slot, looks := from, maxLooks
	for i := range c.set.spans.list {
		if s := &c.set.spans.list[i]; s.scope == "" {
			slot = max(slot, c.account.runs.earliest(slot, cost, s.max, s.window, &looks))
		}
	}
	return slot
}

// newID names a booking. IDs of a MemoryStore are of use in this process only.
func (s *MemoryStore) newID() (id BookingID) {
	if s.counted == 0 {
		s.prefix = NewBookingID()
	}
	s.counted++
	id = s.prefix
	binary.NativeEndian.PutUint64(id[8:], s.counted)
	return id
}
