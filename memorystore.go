package ration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A MemoryStore keeps logs in memory, for the goroutines of one process. It
// keeps the promises of [RedisStore] and gives the same slots. The zero
// MemoryStore is empty and ready. It must not be copied after first use.
//
// It loses nothing and its clock does not step, so it has no use for the fields
// of a request that guard against that, and counts no workers.
//
// It starts no goroutine. What is out of use is removed a little at every
// booking: an entry takes 24 bytes until its window has passed, an account
// until a day later. Its clock is the monotonic one, so that steps of the
// machine's clock do not move it.
type MemoryStore struct {
	mu      sync.Mutex // protects all below
	epoch   time.Time  // when the clock was first read
	budgets map[string]*memoryBudget
}

// A memoryBudget is all that is kept of one budget.
type memoryBudget struct {
	version  int64
	revision int // the highest that limits were booked with
	accounts map[string]*memoryAccount
	indexes  map[string]*memoryIndex
	answers  map[BookingID]memoryAnswer
	asked    []BookingID // the keys of answers, oldest first
}

// A memoryAnswer is kept for a minute, as RedisStore does.
type memoryAnswer struct {
	booking   Booking
	cancelled bool
	expires   int64
}

const (
	rememberMicros = 60 * 1_000_000
)

// now returns the request's clock, or the store's. Callers hold mu.
func (s *MemoryStore) now(asked time.Time) int64 {
	if !asked.IsZero() {
		return asked.UnixMicro()
	}
	if s.epoch.IsZero() {
		s.epoch = time.Now()
	}
	return s.epoch.Add(time.Since(s.epoch)).UnixMicro()
}

// budget returns what is kept of a budget. Callers hold mu.
func (s *MemoryStore) budget(name string) *memoryBudget {
	b := s.budgets[name]
	if b == nil {
		b = &memoryBudget{
			accounts: make(map[string]*memoryAccount),
			indexes:  make(map[string]*memoryIndex),
			answers:  make(map[BookingID]memoryAnswer),
		}
		if s.budgets == nil {
			s.budgets = make(map[string]*memoryBudget)
		}
		s.budgets[name] = b
	}
	return b
}

// account returns what is kept of an account.
func (b *memoryBudget) account(id string) *memoryAccount {
	a := b.accounts[id]
	if a == nil {
		a = new(memoryAccount)
		b.accounts[id] = a
	}
	return a
}

// Book implements [Store].
func (s *MemoryStore) Book(ctx context.Context, r BookRequest) (Booking, error) {
	if err := ctx.Err(); err != nil {
		return Booking{}, err
	}
	if err := r.validate(); err != nil {
		return Booking{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now(r.Now)
	b := s.budget(r.Budget)
	if known, found := b.answers[r.ID]; found {
		if known.cancelled {
			return Booking{}, errCancelledBefore
		}
		known.booking.Now, known.booking.Version = time.UnixMicro(now), b.version
		return known.booking, nil
	}
	b.sweep(now)

	l := lane{scopes: r.Accounts.relevant(r.Scopes), keep: int64(r.Keep), cost: int64(r.Cost)}
	l.name = r.Accounts.lane(l.scopes, r.Keep)
	best, scores, err := b.choose(r, l, now)
	if err != nil {
		return Booking{}, err
	}
	charge := best.charges[0]
	answer := Booking{
		ID:      r.ID,
		Budget:  r.Budget,
		Cost:    r.Cost,
		Account: r.Accounts.At(best.at).ID,
		Slot:    time.UnixMicro(best.slot),
		Now:     time.UnixMicro(now),
		Version: b.version,
		Booked:  r.MaxWait == Forever || best.slot-now <= r.MaxWait.Microseconds(),
	}
	if charge.ruled {
		answer.Ruling = charge.account.ruling()
	}
	if answer.Booked {
		unsure := charge.unsure()
		h := hole{slot: best.slot, lane: l.name}
		if best.hole >= 0 {
			h.parts = take(best.charges, l, best.hole)
		} else {
			for _, c := range best.charges {
				h.parts = append(h.parts, c.enter(l, best.slot, l.cost, true))
			}
		}
		answer.Entry = h.name()
		if r.Revision > b.revision {
			b.revision, b.version = r.Revision, max(now, b.version+1)
		}
		for _, c := range best.charges {
			if !c.ruled {
				c.account.renewed = c.renewed
				c.account.rules, c.account.revision = c.set, max(r.Revision, c.account.revision)
			}
			c.keep()
		}
		for _, c := range best.charges {
			c.trim()
		}
		if scores != nil {
			scores[best.at] = charge.score(l, unsure)
		}
		b.remember(r.ID, memoryAnswer{booking: answer})
	}
	if scores != nil {
		b.index(r.Accounts, l.name).update(scores, r.Accounts)
	}
	return answer, nil
}

// Cancel implements [Store].
func (s *MemoryStore) Cancel(ctx context.Context, r CancelRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.validate(); err != nil {
		return err
	}
	booking := r.Booking
	h, err := parseHole(booking.Entry, booking.Slot)
	if err != nil && booking.Account != "" {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.budget(booking.Budget)
	known, found := b.answers[booking.ID]
	if known.cancelled {
		return nil
	}
	if booking.Account == "" && found {
		booking = known.booking
		h, _ = parseHole(booking.Entry, booking.Slot)
	}
	b.remember(booking.ID, memoryAnswer{cancelled: true})
	b.giveBack(h, booking.Account)
	if r.Accounts != nil {
		index, at := b.indexes[r.Accounts.digest+h.lane], r.Accounts.find(booking.Account)
		if index != nil && at >= 0 {
			index.update(map[int]int64{at: 0}, r.Accounts)
		}
	}
	return nil
}

// giveBack hands back every part of a booking.
func (b *memoryBudget) giveBack(h hole, account string) {
	ids := append([]string{account}, sharedIn(h.lane)...)
	for i := range min(len(h.parts), len(ids)) {
		if a := b.accounts[ids[i]]; a != nil {
			a.giveBack(h, i)
		}
	}
}

// Enter implements [Store].
func (s *MemoryStore) Enter(ctx context.Context, r EnterRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.validate(); err != nil {
		return err
	}
	instead, err := parseHole(r.Instead.Entry, r.Instead.Slot)
	if err != nil && r.Instead.Entry != "" {
		return err
	}
	accounts, err := NewAccounts(r.Account)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now(r.Now)
	b := s.budget(r.Budget)
	if _, found := b.answers[r.ID]; found {
		return nil
	}
	c := openCharge(b.account(r.Account.ID), &accounts.sets[0], now)
	entered := false
	for _, spent := range r.Spent {
		h, err := parseHole(spent.Entry, spent.Slot)
		if err == nil && c.account.has(h, r.Account.ID) {
			continue
		}
		scopes := accounts.relevant(r.Scopes)
		if name, _, found := strings.Cut(spent.Entry, "\x00"); found {
			scopes = scopesOf(name) // also an entry of another store tells them
		}
		l := lane{scopes: scopes}
		if scopes != "" {
			l.name = scopes + "~0~"
		}
		if slot := spent.Slot.UnixMicro(); slot > now-c.set.spans.window {
			entered = true
			c.enter(l, max(slot, c.account.last(l.name), c.account.runs.endOfFirst(l.scopes)), int64(spent.Cost), false)
		}
	}
	if entered {
		c.keep()
	}
	if known := b.answers[r.Instead.ID]; r.Instead.Entry != "" && !known.cancelled {
		// It is handed back once, here or by its cancellation.
		b.remember(r.Instead.ID, memoryAnswer{cancelled: true})
		b.giveBack(instead, r.Account.ID)
	}
	b.remember(r.ID, memoryAnswer{cancelled: true})
	return nil
}

// Usage implements [Store].
func (s *MemoryStore) Usage(ctx context.Context, r UsageRequest) ([]Usage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now(r.Now)
	accounts := map[string]*memoryAccount{}
	if b := s.budgets[r.Budget]; b != nil {
		accounts = b.accounts
	}
	all := make([]Usage, r.Accounts.Len())
	for i, one := range r.Accounts.list {
		account := accounts[one.ID]
		if account == nil {
			account = new(memoryAccount)
		}
		u := Usage{Account: one.ID, Now: time.UnixMicro(now)}
		if account.paused > now {
			u.PausedUntil = time.UnixMicro(account.paused)
		}
		c := openCharge(account, &r.Accounts.sets[r.Accounts.setOf[i]], now)
		for j := range c.set.spans.list {
			used, freeAt := c.usage(&c.set.spans.list[j])
			u.Limits = append(u.Limits, newLimitUsage(one.Limits[j], used, freeAt))
		}
		all[i] = u
	}
	return all, nil
}

// Pause implements [Store].
func (s *MemoryStore) Pause(ctx context.Context, r PauseRequest) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	if err := r.validate(); err != nil {
		return time.Time{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now(r.Now)
	b := s.budget(r.Budget)
	account := b.account(r.Account)
	b.silence(account, now+r.For.Microseconds(), now)
	return time.UnixMicro(account.paused), nil
}

// silence keeps an account silent until an instant, if it is not for longer.
func (b *memoryBudget) silence(account *memoryAccount, ends, now int64) {
	if ends > max(now, account.paused) {
		account.paused = ends
		account.expires = max(account.expires, ends+dayMicros)
		b.version = max(now, b.version+1)
	}
}

// Reset implements [Store].
func (s *MemoryStore) Reset(ctx context.Context, r ResetRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now(r.Now)
	b := s.budget(r.Budget)
	set := newLimitSet(r.Account.Limits, nameLimits(r.Account.Limits))
	c := openCharge(b.account(r.Account.ID), &set, now)
	for i := range c.set.spans.list {
		if l := &c.set.spans.list[i]; l.firstUse {
			ends := c.counter(l).(*fixedWindow).reset(meter{l, c}, now, r.At.UnixMicro())
			b.silence(c.account, ends, now)
		}
	}
	c.keep()
	return nil
}

// Status implements [Store].
func (s *MemoryStore) Status(ctx context.Context, r StatusRequest) (Status, error) {
	if err := ctx.Err(); err != nil {
		return Status{}, err
	}
	if err := r.validate(); err != nil {
		return Status{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now(r.Now)
	status := Status{Now: time.UnixMicro(now), PausedUntil: make(map[string]time.Time)}
	b := s.budgets[r.Budget]
	if b == nil {
		return status, nil
	}
	status.Version, status.Revision = b.version, b.revision
	for id, account := range b.accounts {
		if account.paused > now {
			status.PausedUntil[id] = time.UnixMicro(account.paused)
		}
	}
	return status, nil
}

// remember keeps the answer to a booking for a minute. That minute is real: a
// copy of a question comes late on the machine's clock, not on the request's.
func (b *memoryBudget) remember(id BookingID, a memoryAnswer) {
	a.expires = time.Now().UnixMicro() + rememberMicros
	if _, found := b.answers[id]; !found {
		b.asked = append(b.asked, id)
	}
	b.answers[id] = a
}

// sweep removes a few things that are out of use: more than a booking adds, so
// that what is kept stays bounded.
func (b *memoryBudget) sweep(now int64) {
	const few = 4
	moment := time.Now().UnixMicro()
	for range few {
		if len(b.asked) == 0 || b.answers[b.asked[0]].expires > moment {
			break
		}
		delete(b.answers, b.asked[0])
		b.asked = b.asked[1:]
	}
	looked := 0
	for id, a := range b.accounts {
		if a.expires <= now {
			delete(b.accounts, id)
		}
		if looked++; looked >= few {
			break
		}
	}
	for digest, index := range b.indexes {
		if index.expires <= moment {
			delete(b.indexes, digest)
		}
		break
	}
}

func newLimitUsage(l Limit, used, freeAt int64) LimitUsage {
	most := l.Max
	if l.Algorithm == GCRA {
		most = l.burst()
	}
	u := LimitUsage{Limit: l, Used: int(used), Remaining: max(0, most-int(used))}
	if freeAt > 0 {
		u.FreeAt = time.UnixMicro(freeAt)
	}
	return u
}

var errCancelledBefore = fmt.Errorf("ration: the booking was cancelled before it was entered: %w", context.Canceled)
