package memstore

import (
	"encoding/binary"
	"time"

	"github.com/ration-go/ration/store"
)

// atOnce books on the one account if its limits are logs in which only bookings of
// one run are, none of them handed back, if the slot has come, and if there is no
// news of a higher version of the budget's status.
func (s *MemoryStore) AtOnce(budget string, accounts *store.Accounts, revision, cost int, version int64, g *Immediate) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, a := s.known(budget, accounts.List[0].ID)
	if a == nil || b.version != version || revision > b.revision {
		return false
	}
	set := &accounts.Sets[0]
	if a.rules == nil || a.rules.Name != set.Name || !set.Spans.Logs || len(a.runs) != 1 || a.runs[0].scopes != "" || a.several() ||
		len(a.holes) > 0 || cost < 1 || int64(cost) > set.Spans.Least {
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
	g.Id, g.Account, g.Entry = s.newID(), a.id, s.work.nameOne(part{true, r.number, e.before, e.cost})
	g.Slot, g.Read = time.UnixMicro(now), clock.read
	return true
}

// An immediate is a booking that was granted at once.
type Immediate struct {
	Id             store.BookingID
	Account, Entry string
	Slot           time.Time
	Read           time.Time
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
	for i := range c.set.Spans.List {
		if s := &c.set.Spans.List[i]; s.Scope == "" {
			slot = max(slot, c.account.runs.earliest(slot, cost, s.Max, s.Window, &looks))
		}
	}
	return slot
}

// newID names a booking. IDs of a MemoryStore are of use in this process only.
func (s *MemoryStore) newID() (id store.BookingID) {
	if s.counted == 0 {
		s.prefix = store.NewBookingID()
	}
	s.counted++
	id = s.prefix
	binary.NativeEndian.PutUint64(id[8:], s.counted)
	return id
}
