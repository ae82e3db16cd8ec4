package memstore

import (
	"encoding/binary"
	"time"

	"github.com/ration-go/ration/store"
)

// BookNow implements [store.ImmediateBooker]. It books on the one account if its limits
// are logs with the bookings of one segment only, none of them cancelled.
func (s *Store) BookNow(r store.ImmediateRequest) (store.Immediate, bool) {
	cost := int64(r.Cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	b, a := s.known(r.Budget, r.Accounts.At(0).ID)
	if a == nil || b.version != r.Version || r.Revision > b.revision {
		return store.Immediate{}, false
	}
	set := r.Accounts.LimitSet(0)
	if a.limits == nil || a.limits.Name != set.Name || !set.OnlyLogs || len(a.segments) != 1 || a.segments[0].scopes != "" || a.several() ||
		len(a.cancelled) > 0 || cost < 1 || cost > set.MaxCost("") {
		return store.Immediate{}, false
	}
	clock := s.clock(time.Time{})
	now, run := clock.now, a.segments[0]
	s.work.begin()
	c := s.work.open(a, set, now)
	if max(a.paused, b.all.paused) > now || run.last > now || c.settleLogs(now, cost) != now {
		return store.Immediate{}, false
	}
	e := run.enter(now, cost)
	a.limits, a.revision = set, max(a.revision, r.Revision)
	c.finish()
	c.trim()
	b.sweep(clock)
	return store.Immediate{
		ID: s.newID(), Entry: s.work.nameOne(part{true, run.number, e.before, e.cost}),
		Total: e.after(), Slot: time.UnixMicro(now), ReadAt: clock.read,
	}, true
}

// Durable implements [store.Durable]: memory lasts as long as the process.
func (s *Store) Durable() bool { return true }

// known returns what is kept of a budget and an account, if anything is.
func (s *Store) known(budget, account string) (*budget, *account) {
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

// settleLogs is settle for a transaction of logs with one segment.
func (c *transaction) settleLogs(from, cost int64) int64 {
	slot, left := from, searchBudget
	for i := range c.set.Compiled {
		if s := &c.set.Compiled[i]; s.Scope == "" {
			slot = max(slot, c.account.segments.earliest(slot, cost, s.Max, s.Window, &left))
		}
	}
	return slot
}

// newID names a booking. IDs of a Store are of use in this process only.
func (s *Store) newID() (id store.BookingID) {
	if s.counted == 0 {
		s.prefix = store.NewBookingID()
	}
	s.counted++
	id = s.prefix
	binary.NativeEndian.PutUint64(id[8:], s.counted)
	return id
}
