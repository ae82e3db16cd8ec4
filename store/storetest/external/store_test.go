package external

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration/store"
)

// A Store keeps logs in memory. The zero Store is empty and ready. It must not be copied
// after first use.
type Store struct {
	store.Plain
	mu      sync.Mutex // protects all below
	epoch   time.Time  // when the clock was first read
	budgets map[string]*budget
}

// At implements [store.Store]: nothing is lost while the process lives.
func (s *Store) At(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun().Add(now.Sub(s.begun()))
}

// begun returns the epoch. Callers hold mu.
func (s *Store) begun() time.Time {
	if s.epoch.IsZero() {
		s.epoch = time.Now()
	}
	return s.epoch
}

// A budget is what is kept of one budget.
type budget struct {
	version     int64
	revision    int
	card        store.Card
	newest      int64 // the version of the newest card of an account
	accounts    map[string]*account
	all         pause                  // of all accounts
	pauses      map[store.Pause]ending // they and quarantines without Until
	quarantines map[store.Quarantine]ending
	resumed     map[store.Resumption]ending // without At
	bookings    map[store.BookingID]*booking
	recorded    map[store.BookingID]time.Time
	permits     map[string]*permits
	charged     map[string]string // the account that was charged last, by listKey
}

// account returns what is kept of an account.
func (b *budget) account(id string) *account {
	a := b.accounts[id]
	if a == nil {
		a = &account{budget: b, last: make(map[string]int64), windows: make(map[string][]window), base: make(map[string]*big.Rat)}
		b.accounts[id] = a
	}
	return a
}

// renew gives the budget's status a version that it never had.
func (b *budget) renew(now int64) { b.version = max(now, b.version+1) }

// begin begins a step on a budget: it locks the store and returns the clock, in
// microseconds. Callers unlock mu if there is no error.
func (s *Store) begin(ctx context.Context, valid error, name string, asked time.Time) (*budget, int64, error) {
	if valid != nil {
		return nil, 0, valid
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	b := s.budgets[name]
	if b == nil {
		b = &budget{
			accounts: make(map[string]*account), pauses: make(map[store.Pause]ending), quarantines: make(map[store.Quarantine]ending),
			resumed: make(map[store.Resumption]ending), permits: make(map[string]*permits),
			bookings: make(map[store.BookingID]*booking), recorded: make(map[store.BookingID]time.Time), charged: make(map[string]string),
		}
		if s.budgets == nil {
			s.budgets = make(map[string]*budget)
		}
		s.budgets[name] = b
	}
	if !asked.IsZero() {
		return b, asked.UnixMicro(), nil
	}
	// The monotonic clock: steps of the machine's clock move no slot.
	epoch := s.begun()
	return b, epoch.Add(time.Since(epoch)).UnixMicro(), nil
}

// Cancel implements [store.Store].
func (s *Store) Cancel(ctx context.Context, all ...store.CancelRequest) error {
	for _, r := range all {
		if err := r.Validate(); err != nil {
			return err
		}
		if r.Booking.Account != "" && !isEntry(r.Booking) {
			return store.ErrOtherStore
		}
	}
	for _, r := range all {
		b, now, err := s.begin(ctx, nil, r.Booking.Budget, r.Now)
		if err != nil {
			return err
		}
		b.cancel(r.Booking.ID, now)
		s.mu.Unlock()
	}
	return nil
}

// cancel removes a booking. If it had not left, the order of queues begins anew.
func (b *budget) cancel(id store.BookingID, now int64) {
	one := b.bookings[id]
	if one == nil || one.corrected {
		return
	}
	delete(b.bookings, id)
	one.remove()
	if one.slot < now {
		return
	}
	charged := slices.Clone(one.charged)
	for _, o := range one.meters {
		charged = append(charged, o.charged...)
	}
	for _, a := range charged {
		for queue, last := range a.last {
			a.last[queue] = min(last, now)
		}
	}
}

// Record implements [store.Store].
func (s *Store) Record(ctx context.Context, r store.RecordRequest) error {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	maps.DeleteFunc(b.recorded, func(_ store.BookingID, at time.Time) bool { return time.Since(at) > time.Minute })
	if _, done := b.recorded[r.ID]; done {
		return nil
	}
	b.recorded[r.ID] = time.Now()
	accounts, err := store.NewAccounts(r.Account)
	if err != nil {
		return err
	}
	kept := make(map[string]bool)
	for id, one := range b.bookings {
		kept[entry(one.queue, id)] = true
	}
	c := charge{account: b.account(r.Account.ID), set: accounts.LimitSet(0), now: now}
	for _, spent := range r.Spent {
		if kept[spent.Entry] || spent.Slot.UnixMicro() <= now-c.set.Window {
			continue
		}
		scopes := accounts.RelevantScopes(r.Scopes)
		if queue, _, found := strings.Cut(spent.Entry, " "); found {
			scopes = scopesOf(queue)
		}
		c.record(scopes, "", spent.Slot.UnixMicro(), int64(spent.Cost))
	}
	return nil
}

// Reconcile implements [store.Store].
func (s *Store) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.Reconciliation{}, err
	}
	defer s.mu.Unlock()
	accounts, err := store.NewAccounts(r.Account)
	if err != nil {
		return store.Reconciliation{}, err
	}
	c := charge{account: b.account(r.Account.ID), set: accounts.LimitSet(0), now: now}
	scopes, slot := accounts.RelevantScopes(r.Scopes), min(now, r.Slot.UnixMicro())
	all, most := store.Reconciliation{Now: time.UnixMicro(now)}, int64(0)
	for i, l := range c.set.Compiled {
		counted, atSlot := c.meter(l).counted(slot)
		missing := max(0, int64(r.Counted[i])-counted)
		all.Limits = append(all.Limits, store.LimitReconciliation{Counted: int(counted), AtSlot: int(atSlot), Missing: int(missing)})
		switch {
		case missing == 0 || !store.Covers(l.Scope, scopes):
		case l.Algorithm.IsLog():
			most = max(most, missing)
		default:
			c.record(scopes, l.Name, now, missing)
		}
	}
	if most > 0 {
		c.record(scopes, logs, now, most)
	}
	return all, nil
}

// Usage implements [store.Store].
func (s *Store) Usage(ctx context.Context, r store.UsageRequest) ([]store.Usage, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []store.Usage
	for i, one := range r.Accounts.All() {
		c := charge{account: b.account(one.ID), set: r.Accounts.LimitSet(i), now: now}
		u := store.Usage{Account: one.ID, Now: time.UnixMicro(now), Total: c.account.total - c.account.gone}
		if until := max(c.account.until, b.all.until); until > now {
			u.PausedUntil = time.UnixMicro(until)
		}
		for j, l := range c.set.Compiled {
			used, ahead, freeAt := c.meter(l).used()
			free := time.Time{}
			if used+ahead > 0 {
				free = time.UnixMicro(freeAt)
			}
			u.Limits = append(u.Limits, store.NewLimitUsage(one.Limits[j], used, ahead, free))
		}
		all = append(all, u)
	}
	return all, nil
}

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, r store.ResetRequest) error {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	set := store.NewLimitSet(r.Account.Limits)
	c := charge{account: b.account(r.Account.ID), set: &set, now: now}
	for _, l := range set.Compiled {
		if l.FirstUse {
			b.pause(&store.PauseRequest{Account: r.Account.ID}, c.meter(l).reset(r.At.UnixMicro(), r.Within.Microseconds()), now)
		}
	}
	return nil
}

// Card implements [store.Store].
func (s *Store) Card(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Budget, r.Now)
	if err != nil {
		return store.CardReply{}, err
	}
	defer s.mu.Unlock()
	kept, a := b.card, b.account(r.Account)
	if r.Account != "" {
		kept = a.inForce()
		kept.Why = a.why
	}
	behind := r.Account != "" && r.KnownCard != b.card.Version
	if r.Limits == nil || behind || kept.Edition.Compare(r.Known) > 0 {
		return store.CardReply{Card: kept, Behind: behind && r.Limits != nil}, nil
	}
	b.version = max(b.version, r.Known.Version)
	b.renew(now)
	kept = store.Card{Edition: store.Edition{Revision: r.Known.Revision, Version: b.version}, Limits: r.Limits, Why: r.Why}
	if r.Account == "" {
		kept.Revision = max(kept.Revision, b.revision)
		b.card = kept
		return store.CardReply{Card: kept, Changed: true}, nil
	}
	b.newest = b.version
	set := store.NewLimitSet(r.Limits)
	c := charge{account: a, set: &set, edition: kept.Edition, now: now}
	c.enforce()
	a.why = r.Why
	return store.CardReply{Card: kept, Changed: true}, nil
}

// isEntry reports whether a booking's Entry is the one that it was given.
func isEntry(b store.Booking) bool { return strings.HasSuffix(b.Entry, " "+b.ID.String()) }

// entry names a booking, so that also the entry of a lost log tells its scopes.
func entry(queue string, id store.BookingID) string { return queue + " " + id.String() }

// scopesOf returns the scopes of a queue.
func scopesOf(queue string) string {
	scopes, _, _ := strings.Cut(queue, "~")
	return scopes
}
