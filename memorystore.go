package ration

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	accounts map[string]*memoryAccount
	indexes  map[string]*memoryIndex
	answers  map[BookingID]memoryAnswer
	asked    []BookingID // the keys of answers, oldest first
}

type memoryAccount struct {
	log     slidingLog
	paused  int64 // the end of the pause
	expires int64
}

// A memoryAnswer is kept for a minute, as RedisStore does.
type memoryAnswer struct {
	booking   Booking
	cancelled bool
	expires   int64
}

// A memoryIndex holds the accounts of one Accounts, ordered by score: a slot
// that the account's next booking does not come before.
type memoryIndex struct {
	items   []scoredAccount
	scores  map[string]int64 // by member
	expires int64
}

// A scoredAccount is named as in the Redis index, SET:ACCOUNT, so that equal
// scores come in the same order.
type scoredAccount struct {
	member string
	at     int // the account's place in Accounts
	score  int64
}

const (
	rememberMicros = 60 * 1_000_000
	indexMicros    = 400 * dayMicros
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

	best, scores := b.choose(r.Accounts, int64(r.Cost), now)
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
	if answer.Booked {
		log := &best.account.log
		var e logEntry
		if best.hole >= 0 {
			e = log.take(best.hole, int64(r.Cost))
		} else {
			e = log.enter(best.slot, int64(r.Cost))
		}
		answer.Entry = e.name()
		best.account.expires = max(log.last(), now) + best.limits.window + dayMicros
		handedBack := len(log.holes) > 0
		log.trim(now, best.limits)
		if scores != nil {
			scores[best.at] = best.account.score(now, best.limits, best.hole >= 0 || handedBack)
		}
		b.remember(r.ID, memoryAnswer{booking: answer})
	}
	if scores != nil {
		b.index(r.Accounts, now).update(scores, r.Accounts)
	}
	return answer, nil
}

// A candidate is an account with the slot that it can give.
type candidate struct {
	at      int
	account *memoryAccount
	limits  spans
	slot    int64
	hole    int // its index in the log's holes; -1: none
}

// choose returns the account that can take the cost first, and the new scores
// of those that it looked at, by their place; nil for a list without an index.
func (b *memoryBudget) choose(accounts *Accounts, cost, now int64) (candidate, map[int]int64) {
	if accounts.Len() == 1 {
		best, _ := b.consider(accounts, 0, cost, now)
		return best, nil
	}
	best := candidate{at: -1}
	scores := make(map[int]int64)
	for _, item := range b.index(accounts, now).items {
		// Scores are never too late: nothing behind this one is earlier.
		if best.at >= 0 && best.slot <= max(now, item.score) {
			break
		}
		if cost > accounts.sets[accounts.setOf[item.at]].spans.most {
			continue
		}
		one, score := b.consider(accounts, item.at, cost, now)
		scores[item.at] = score
		if best.at < 0 || one.slot < best.slot {
			best = one
		}
	}
	return best, scores
}

// consider returns the slot that an account can give, and its score.
func (b *memoryBudget) consider(accounts *Accounts, at int, cost, now int64) (candidate, int64) {
	account := b.account(accounts.list[at].ID)
	limits := accounts.sets[accounts.setOf[at]].spans
	log := &account.log
	from := max(now, account.paused)
	slot := max(from, log.earliest(now, limits, cost))
	hole := log.handedBack(cost, from)
	if hole >= 0 {
		slot = log.holes[hole].slot
	}
	score := max(account.score(now, limits, len(log.holes) > 0), account.paused)
	if len(log.holes) > 0 {
		score = 0
	}
	return candidate{at: at, account: account, limits: limits, slot: slot, hole: hole}, score
}

// score returns the slot of a booking of one unit that comes long ago. It is not
// known of an account that was handed slots back: 0.
func (a *memoryAccount) score(now int64, limits spans, handedBack bool) int64 {
	if handedBack {
		return 0
	}
	return a.log.earliest(now, limits, 1)
}

// index returns the index of the accounts.
func (b *memoryBudget) index(accounts *Accounts, now int64) *memoryIndex {
	index := b.indexes[accounts.digest]
	if index == nil {
		index = &memoryIndex{scores: make(map[string]int64, accounts.Len())}
		for i := range accounts.list {
			index.items = append(index.items, scoredAccount{member: accounts.member(i), at: i})
			index.scores[accounts.member(i)] = 0
		}
		slices.SortFunc(index.items, scoredAccount.compare)
		b.indexes[accounts.digest] = index
	}
	index.expires = now + indexMicros
	return index
}

func (a scoredAccount) compare(b scoredAccount) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
}

// update moves the accounts at the given places to their new scores.
func (x *memoryIndex) update(scores map[int]int64, accounts *Accounts) {
	for at, score := range scores {
		member := accounts.member(at)
		old := scoredAccount{member: member, at: at, score: x.scores[member]}
		if old.score == score {
			continue
		}
		x.scores[member] = score
		i, _ := slices.BinarySearchFunc(x.items, old, scoredAccount.compare)
		x.items = slices.Delete(x.items, i, i+1)
		old.score = score
		i, _ = slices.BinarySearchFunc(x.items, old, scoredAccount.compare)
		x.items = slices.Insert(x.items, i, old)
	}
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
	e, err := parseLogEntry(booking.Entry, booking.Slot)
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
		e, _ = parseLogEntry(booking.Entry, booking.Slot)
	}
	b.remember(booking.ID, memoryAnswer{cancelled: true})
	account := b.accounts[booking.Account]
	if account == nil {
		return nil
	}
	account.log.giveBack(e)
	if r.Accounts != nil {
		if index, at := b.indexes[r.Accounts.digest], r.Accounts.find(booking.Account); index != nil && at >= 0 {
			index.update(map[int]int64{at: 0}, r.Accounts)
		}
	}
	return nil
}

// Enter implements [Store].
func (s *MemoryStore) Enter(ctx context.Context, r EnterRequest) error {
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
	if _, found := b.answers[r.ID]; found {
		return nil
	}
	account, limits := b.account(r.Account.ID), newSpans(r.Account.Limits)
	for _, spent := range r.Spent {
		e, err := parseLogEntry(spent.Entry, spent.Slot)
		if at, found := account.log.find(e.before); err == nil && found && account.log.entries[at] == e {
			continue
		}
		if slot := spent.Slot.UnixMicro(); slot > now-limits.window {
			account.log.enter(max(slot, account.log.last()), int64(spent.Cost))
		}
	}
	account.expires = max(account.expires, max(account.log.last(), now)+limits.window+dayMicros)
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
		for j, limit := range newSpans(one.Limits).list {
			used, freeAt := account.log.usage(now, limit)
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
	if ends := now + r.For.Microseconds(); ends > account.paused {
		account.paused = ends
		account.expires = max(account.expires, ends+dayMicros)
		b.version = max(now, b.version+1)
	}
	return time.UnixMicro(account.paused), nil
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
	status.Version = b.version
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
		if index.expires <= now {
			delete(b.indexes, digest)
		}
		break
	}
}

// name returns the entry as Booking.Entry has it, 16 bytes.
func (e logEntry) name() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(e.before))
	binary.BigEndian.PutUint64(b[8:], uint64(e.cost))
	return string(b[:])
}

func parseLogEntry(name string, slot time.Time) (logEntry, error) {
	if len(name) != 16 {
		return logEntry{}, errors.New("ration: the booking's Entry is not one of this store")
	}
	return logEntry{
		slot:   slot.UnixMicro(),
		before: int64(binary.BigEndian.Uint64([]byte(name[:8]))),
		cost:   int64(binary.BigEndian.Uint64([]byte(name[8:]))),
	}, nil
}

// member names the i-th account in an index.
func (a *Accounts) member(i int) string {
	return strconv.Itoa(a.setOf[i]+1) + ":" + a.list[i].ID
}

// find returns the place of an account, or -1.
func (a *Accounts) find(id string) int {
	if i, found := a.byID[id]; found {
		return i
	}
	return -1
}

func newLimitUsage(l Limit, used, freeAt int64) LimitUsage {
	u := LimitUsage{Limit: l, Used: int(used), Remaining: int(max(0, int64(l.Max)-used))}
	if freeAt > 0 {
		u.FreeAt = time.UnixMicro(freeAt)
	}
	return u
}

var errCancelledBefore = fmt.Errorf("ration: the booking was cancelled before it was entered: %w", context.Canceled)
