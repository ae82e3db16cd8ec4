// Package memstore keeps the logs of budgets in memory.
package memstore

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/clock"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A Store keeps logs in memory, for the goroutines of one process. It
// keeps the promises of package redisstore and gives the same slots. The zero
// Store is empty and ready. It must not be copied after first use.
//
// It loses nothing and its clock does not step, so it has no use for the fields
// of a request that guard against that, and counts no workers.
//
// It starts no goroutine. What is out of use is removed a little at every
// booking: an entry takes 24 bytes until its window has passed, an account
// until a day later. Its clock is the monotonic one, so that a machine's
// clock that is set back does not move it; after the machine has slept, when that clock has stood
// still, it goes on by what the clock on the wall has gone on.
type Store struct {
	mu      sync.Mutex // protects all below
	seen    time.Time  // when the clocks were last read
	reads   int64      // what the store's read then, in nanoseconds
	wall    int64      // what the clock on the wall read then, likewise
	budgets map[string]*budget
	latest  *budget // that was asked for; nil: none
	work    buffers
}

// A reading is of the clocks, at the beginning of a step. Instants are in
// microseconds.
type reading struct {
	now    int64 // on the request's clock, or the store's
	moment int64 // on the store's
}

// clock reads the clocks. Callers hold mu.
func (s *Store) clock(asked time.Time) reading {
	at := time.Now()
	wall := clock.Wall(at)
	if s.seen.IsZero() {
		s.reads = wall
	} else {
		passed := at.Sub(s.seen)
		s.reads += int64(passed + clock.Slept(passed, time.Duration(wall-s.wall)))
	}
	s.seen, s.wall = at, wall
	moment := s.reads / 1000
	if asked.IsZero() {
		return reading{moment, moment}
	}
	return reading{asked.UnixMicro(), moment}
}

// At implements [store.Store].
func (s *Store) At(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock(time.Time{})
	return s.seen.Add(time.Duration(now.UnixNano() - s.reads))
}

// Hold implements [store.Store]: what is in this process ends with its callers.
func (s *Store) Hold(context.Context, store.HoldRequest) (store.HoldReply, error) {
	return store.HoldReply{}, nil
}

// budget returns what is kept of a budget. Callers hold mu.
func (s *Store) budget(name string) *budget {
	if s.latest != nil && s.latest.name == name {
		return s.latest
	}
	b := s.budgets[name]
	if b == nil {
		b = &budget{
			name:     name,
			accounts: make(map[string]*account),
			indexes:  make(map[indexKey]*index),
			work:     &s.work,
		}
		if s.budgets == nil {
			s.budgets = make(map[string]*budget)
		}
		s.budgets[name] = b
	}
	s.latest = b
	return b
}

// begin begins a step on a budget, unless the request is not valid: it locks the store, and returns the
// clock. Callers unlock mu if there is no error.
func (s *Store) begin(ctx context.Context, valid error, name string, asked time.Time) (*budget, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if valid != nil {
		return nil, 0, valid
	}
	s.mu.Lock()
	return s.budget(name), s.clock(asked).now, nil
}

// Book implements [store.Store].
func (s *Store) Book(ctx context.Context, r store.BookRequest) (answer store.Booking, err error) {
	if err := ctx.Err(); err != nil {
		return store.Booking{}, err
	}
	if err := r.Validate(); err != nil {
		return store.Booking{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clock := s.clock(r.Now)
	now := clock.now
	b := s.budget(r.Budget)
	b.sweep(clock)
	s.work.begin()

	if r.KnownCard != b.card.Version {
		return store.Booking{ID: r.ID, Budget: r.Budget, Cost: r.Cost, Behind: true, Now: time.UnixMicro(now), Version: b.version}, nil
	}
	if r.Instead != nil {
		if err := b.cancelInstead(&r.Instead.Booking, clock); err != nil {
			return store.Booking{}, err
		}
	}
	l := &queue{scopes: r.Accounts.RelevantScopes(r.Scopes), reserve: int64(r.Reserve), cost: int64(r.Cost)}
	l.name = r.Accounts.Queue(l.scopes, r.Reserve)
	var index *index
	if r.Accounts.Len() > 1 {
		index = b.index(r.Accounts, l, clock.moment)
	}
	released := b.all.released(now)
	best, err := b.choose(&r, l, index, max(released, now+r.AskLead().Microseconds()), now)
	b.seen = max(b.seen, now)
	if err != nil {
		b.announceInstead(r.Instead)
		return store.Booking{}, err
	}
	own := best.transactions[0]
	answer.ID, answer.Budget, answer.Cost = r.ID, r.Budget, r.Cost
	answer.Account, answer.Now, answer.Version = r.Accounts.All()[best.at].ID, time.UnixMicro(now), b.version
	answer.Booked = r.MaxWait == store.Forever || r.MaxWait >= 0 && best.slot-now <= r.MaxWait.Microseconds()
	if answer.Slot = answer.Now; best.slot != now {
		answer.Slot = time.UnixMicro(best.slot)
	}
	if own.adopted {
		answer.Effective = own.account.effective()
	}
	if answer.Booked {
		answer.Entry, answer.Total = b.commit(best.transactions, best.slot, l)
		if b.all.paused > 0 {
			b.all.release(released, now)
		}
		if own.account.paused > 0 {
			own.account.release(best.released, now)
		}
		for _, c := range best.transactions[len(best.transactions)-len(r.Accounts.Shared()):] {
			c.account.release(c.account.released(now), now)
		}
		b.enforce(best.transactions, now)
		if index != nil {
			s.work.rescore(best.at, own.score(*l, index.units))
			index.newest = index.ranks[best.at]
		}
	} else {
		b.enforceReplaced(best.transactions, now)
	}
	if index != nil {
		index.update(s.work.scores)
	}
	if r.Instead != nil && (!answer.Booked || answer.Slot.Before(r.Instead.Booking.Slot)) {
		b.announceInstead(r.Instead)
	}
	return answer, nil
}

// cancelInstead cancels a booking in whose place another one is made.
func (b *budget) cancelInstead(instead *store.Booking, clock reading) error {
	one, err := parseEntry(instead.Entry, instead.Slot)
	if err == nil && b.done.add(instead.ID, clock.moment) {
		b.cancel(&one, instead.Account, clock.now)
	}
	return err
}

// announceInstead tells those who wait of the room of a booking in whose place none was made, or an earlier one; nil: there is none.
func (b *budget) announceInstead(r *store.CancelRequest) {
	if r != nil {
		one, _ := parseEntry(r.Booking.Entry, r.Booking.Slot)
		b.announceFreed(one.charged(r.Booking.Account), false, r.By)
	}
}

// Cancel implements [store.Store].
func (s *Store) Cancel(_ context.Context, all ...store.CancelRequest) error {
	for i := range all {
		if err := all[i].Validate(); err != nil {
			return err
		}
		if b := &all[i].Booking; b.Account != "" {
			if _, err := parseEntry(b.Entry, b.Slot); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		booking := &all[i].Booking
		if booking.Account == "" {
			continue // no answer is lost: a booking without one was not made
		}
		one, _ := parseEntry(booking.Entry, booking.Slot)
		clock := s.clock(all[i].Now)
		if b := s.budget(booking.Budget); b.done.add(booking.ID, clock.moment) {
			b.cancel(&one, booking.Account, clock.now)
			b.announceFreed(one.charged(booking.Account), false, store.BookingID{})
		}
	}
	return nil
}

// Record implements [store.Store].
func (s *Store) Record(ctx context.Context, r store.RecordRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.Validate(); err != nil {
		return err
	}
	accounts, err := store.NewAccounts(r.Account)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clock := s.clock(r.Now)
	now := clock.now
	b := s.budget(r.Budget)
	if b.done.has(r.ID) {
		return nil
	}
	c := b.account(r.Account.ID).open(accounts.LimitSet(0), now)
	entered := false
	for _, spent := range r.Spent {
		one, err := parseEntry(spent.Entry, spent.Slot)
		if err == nil && b.counts(&one, c.account) {
			continue
		}
		scopes := accounts.RelevantScopes(r.Scopes)
		if name, _, found := strings.Cut(spent.Entry, "\x00"); found {
			scopes = scopesOf(name) // also an entry of another store has them
		}
		l := plainQueue(scopes)
		if slot := spent.Slot.UnixMicro(); slot > now-c.set.Window {
			entered = true
			b.number++
			c.addUnits(&l, slot, b.number, int64(spent.Cost), false)
		}
	}
	if entered {
		c.finish()
		b.lower(c.account)
	}
	b.done.add(r.ID, clock.moment)
	return nil
}

// Reconcile implements [store.Store]. lua/reconcile.lua is the same in Redis, and says why.
func (s *Store) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	if err := ctx.Err(); err != nil {
		return store.Reconciliation{}, err
	}
	if err := r.Validate(); err != nil {
		return store.Reconciliation{}, err
	}
	accounts, err := store.NewAccounts(r.Account)
	if err != nil {
		return store.Reconciliation{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock(r.Now).now
	b := s.budget(r.Budget)
	c := b.account(r.Account.ID).open(accounts.LimitSet(0), now)
	reply := store.Reconciliation{Now: time.UnixMicro(now)}
	b.number++
	reply.Limits = c.reconcile(b.number, min(now, r.Slot.UnixMicro()), accounts.RelevantScopes(r.Scopes), r.Counted)
	return reply, nil
}

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, r store.ResetRequest) error {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	set := store.NewLimitSet(r.Account.Limits)
	c := b.account(r.Account.ID).open(&set, now)
	for _, m := range c.meters {
		if m.FirstUse {
			ends := m.counter.(*firstUse).reset(m, now, r.At.UnixMicro(), r.Within.Microseconds())
			b.pause(c.account, ends, new(store.PauseRequest), now)
		}
	}
	c.finish()
	b.lower(c.account)
	return nil
}

// Status implements [store.Store].
func (s *Store) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	if err := ctx.Err(); err != nil {
		return store.Status{}, err
	}
	if err := r.Validate(); err != nil {
		return store.Status{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock(r.Now).now
	status := store.Status{Now: time.UnixMicro(now)}
	b := s.budgets[r.Budget]
	if b == nil && len(r.Permits) > 0 {
		b = s.budget(r.Budget)
	}
	if b == nil {
		return status, nil
	}
	for i := range r.Permits {
		status.Permits = append(status.Permits, b.share(r.Worker, &r.Permits[i], now))
	}
	if r.Leaves {
		b.leave(r.Worker)
	}
	status.Version, status.Revision, status.Card, status.NewestCard = b.version, b.revision, b.card, b.newest
	if r.Known <= b.version {
		status.Since = r.Known
	}
	b.tell(&status, status.Since, now)
	return status, nil
}

// newCounter returns what an algorithm that keeps no log keeps of one limit.
func newCounter(l *store.CompiledLimit) counter {
	switch l.Algorithm {
	case limit.FixedWindow:
		if l.FirstUse {
			return new(firstUse)
		}
		return new(fixedWindow)
	case limit.SlidingWindow:
		return new(slidingWindow)
	case limit.SubWindows:
		return new(subWindows)
	case limit.GCRA:
		return new(gcra)
	}
	panic("ration: " + l.Algorithm.String() + " is a log")
}
