package ration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// The limits of an account that are in force are one value, the effective limits. The value
// is never written to: whatever changes the limits makes another, in this file. What was said
// of an account's limits counts in this order:
//
//  1. What the fleet applies under a higher revision than this worker's, as the store tells it.
//  2. What the provider has announced, less the headroom, until the program gives the account
//     other limits.
//  3. What the program gave: the account's own limits, or else those of [Budget.SetLimits], or
//     else Budget.Limits.
//
// A worker that changes the limits raises the revision, which is that of all accounts. So raise
// carries over the effective limits of all accounts that this worker knows, but for those that
// the change replaces: from then on they are all its own.
//
// Bookings name the worker's own limits, which are 2 and 3, and its own revision, also while
// others are in force: a store that has forgotten the account must not take adopted limits for
// given ones. All else goes by the effective limits.

// effective is an account's effective limits.
type effective struct {
	limits   []limit.Limit // without the budget's margin
	full     []limit.Limit // the same before headroom was taken off, as far as is known
	source   limitSource   // of full
	given    []limit.Limit // what the program gave when the value was made
	inherits bool          // given are the budget's limits
	revision int           // under which they are in force
	since    time.Time     // when this worker got them, on its own clock; zero: the program gave them
}

// A limitSource is who says what an account's full limits are.
type limitSource int

const (
	fromProgram  limitSource = iota // they were given
	fromProvider                    // responses
	fromFleet                       // another worker has raised the revision: the store's note tells why
)

// SetLimits changes the budget's limits for the whole fleet, while requests are booked.
// It raises the revision above the fleet's, and tells the store, for which it waits 250 ms at most, and longer if the
// store is far away. The other workers adopt the limits with their next booking, or when one of their callers wakes.
// No log is lost. If the store does not answer nothing is changed, and the error is a [*StoreError].
//
// Callers that wait cancel their slots and book again, about in their order, so that a
// lower Max holds for them too and a higher one helps them within a second. Those of other
// workers hear of it at once if this worker has used their account within its longest window,
// and otherwise when it does.
//
// A limit with another Window, Algorithm or Scope is another limit. An exact log serves
// it at once, because the log stays; any other count begins at zero. Tokens with Limits
// of their own keep them, and what the provider announced of them; [Pool.Add] replaces those.
// What it announces later replaces the new limits too.
func (b *Budget) SetLimits(limits ...limit.Limit) error {
	if err := limit.Validate(limits); err != nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	if err := b.check(); err != nil {
		return err
	}
	// The fleet's revision may have been raised since this worker booked last, if it ever has.
	ctx, stop := b.soon(context.Background())
	defer stop()
	if err := b.refresh(ctx); err != nil {
		return fmt.Errorf("ration: budget %q: its limits were not changed: %w", b.Name, err)
	}
	var changed []*budgetAccount
	b.mu.Lock()
	for _, of := range b.journal.accounts.All() {
		if of.account.inherits {
			changed = append(changed, of.account)
		}
	}
	b.raise(fromProgram, slices.Clone(limits), func(_ string, e *effective) bool { return e.inherits })
	b.mu.Unlock()
	b.announceAll(changed)
	return nil
}

// overrideLimits makes a token's new limits effective for the whole fleet, which is still to be
// told of the account that it returns; nil: there is none.
func (b *Budget) overrideLimits(t Token) *budgetAccount {
	b.mu.Lock()
	defer b.mu.Unlock()
	replaced := t.AccountID()
	b.raise(fromProgram, b.currentRules().limits, func(id string, _ *effective) bool { return id == replaced })
	account, err := b.account(b.currentRules(), t)
	if err != nil {
		return nil // who books with the token gets the error
	}
	return &account
}

// raise makes this worker's limits the fleet's: those of accounts without limits of their own,
// and the effective ones of each account that it knows and that the change does not replace.
// Limits in force are replaced here, in replaceOwn and in adopt: those under which a caller that
// waits has booked are in waiter.account, and inForce returns the new ones. It needs mu.
func (b *Budget) raise(source limitSource, limits []limit.Limit, replaces func(id string, old *effective) bool) {
	old := b.currentRules()
	r := &limitRules{limits: limits, accounts: make(map[string]effective), source: source, revision: b.newestKnown() + 1}
	for id, l := range b.learned.All() { // what is forgotten is not carried over
		e, found := old.accounts[id]
		if l.adopted != nil {
			e, found = l.adopted.effective, true
		}
		if found && !replaces(id, &e) {
			r.accounts[id] = e
		}
		l.adopted = nil
	}
	b.adopts.Store(false)
	b.newestRevision.Store(int64(r.revision))
	b.rules.Store(r)
	b.wakeWaiters()
}

// replaceOwn replaces the worker's own limits of an account under the revision that it has. It
// needs mu.
func (b *Budget) replaceOwn(id string, e effective) {
	r := *b.currentRules()
	r.accounts = maps.Clone(r.accounts)
	r.accounts[id] = e
	b.rules.Store(&r)
}

// A learnedAccount is what a worker has learned of an account that is in use.
type learnedAccount struct {
	reconciler *reconciler    // nil: no response has said anything about its limits
	adopted    *budgetAccount // under limits of a higher revision than the worker's; nil: its own are in force
	announced  int            // the revision of this worker's that the fleet was told of
	asked      int            // the fleet's revision up to which the store was asked for its limits
	until      time.Time      // when it is forgotten if nobody uses it, on this process's clock
}

// forgetAfter is how long beyond its longest window an account must not have been used until
// its limits are forgotten: longer than a store knows them.
const forgetAfter = 48 * time.Hour

// learnedOf returns what is known of an account that is in use. It needs mu.
func (b *Budget) learnedOf(account *budgetAccount) *learnedAccount {
	now := time.Now()
	b.learned.Sweep(func(_ string, l *learnedAccount) bool { return l.until.Before(now) })
	l := b.learned.Get(account.ID)
	if l == nil {
		l = new(learnedAccount)
		b.learned.Set(account.ID, l)
	}
	l.until = now.Add(account.longest + forgetAfter)
	return l
}

// adopt returns the account under the limits by which the store answered a question that was
// asked at that instant: the worker's own if it names none. If they are news the caller says so
// in an event. It needs mu.
func (b *Budget) adopt(account *budgetAccount, fleet store.EffectiveLimits, asked time.Time) (booked *budgetAccount, news bool) {
	l := b.learnedOf(account)
	old := l.adopted
	if fleet.Limits == nil {
		if old != nil && asked.After(old.since) {
			l.adopted = nil
		}
		return account, false
	}
	if old != nil && old.revision == fleet.Revision && slices.Equal(old.Limits, fleet.Limits) {
		return old, false
	}
	before := b.effectiveAccount(account)
	e := before.under(b.withoutMargins(fleet.Limits))
	e.revision = fleet.Revision
	theirs, err := b.accountUnder(account.ID, e)
	if err != nil {
		return account, false
	}
	if fleet.Revision <= before.revision {
		return &theirs, false // the answer was long on its way
	}
	l.adopted = &theirs
	b.adopts.Store(true)
	b.noteRevision(fleet.Revision)
	return &theirs, !slices.Equal(before.limits, theirs.limits)
}

// under returns the effective limits after another worker has made others effective.
func (e *effective) under(limits []limit.Limit) effective {
	next := *e
	if !slices.Equal(limits, e.limits) {
		next.limits, next.full, next.source, next.since = limits, limits, fromFleet, time.Now()
	}
	return next
}

// learn makes limits of an account effective in the whole fleet that follow from what the
// provider has announced, or refused, and reports whether others were. If the fleet applies them already
// the revision stays. They follow from the account's limits: if others are in force by now they are of no use.
func (b *Budget) learn(account *budgetAccount, limits, full []limit.Limit) bool {
	if limit.Validate(limits) != nil {
		return false // the provider announced nonsense
	}
	b.mu.Lock()
	l, old := b.learnedOf(account), b.effectiveAccount(account)
	if !slices.Equal(old.limits, account.limits) {
		b.mu.Unlock()
		return false
	}
	e := old.effective
	e.limits, e.full, e.source = limits, full, fromProvider
	changed := !slices.Equal(limits, old.limits)
	if !changed && l.adopted == nil {
		b.replaceOwn(account.ID, e)
		b.mu.Unlock()
		return false
	}
	known := *old
	known.effective, l.adopted = e, &known
	if changed { // raise makes it this worker's own
		known.since = time.Now()
		b.raise(fromProvider, b.currentRules().limits, func(string, *effective) bool { return false })
	}
	b.mu.Unlock()
	if changed {
		b.announceAll([]*budgetAccount{&known})
	}
	return changed
}

// concede adopts the fleet's limits if two workers have learned different ones at the
// same time and given them the same revision: neither is better. It reports whether to
// ask again for the booking that failed with the error.
func (b *Budget) concede(err error, accounts *accountList) bool {
	differ, is := errors.AsType[*store.LimitsError](err)
	if !is {
		return false
	}
	account := accounts.find(differ.Account)
	if account == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r, theirs := b.currentRules(), b.withoutMargins(differ.Theirs)
	ours := r.of(account.ID, account.given, account.inherits)
	switch {
	case r.revision != accounts.rules.revision || !slices.Equal(ours.limits, account.limits):
		return true // another caller got the same error, and has conceded
	case r.source != fromProvider || slices.Equal(ours.limits, theirs):
		return false // the user must say which are right
	}
	b.learnedOf(account)
	b.replaceOwn(account.ID, ours.under(theirs))
	return true
}

// announceAll has the fleet hear of the limits of accounts that this worker has changed. It
// returns soon, also if the store does not answer: then the fleet hears of them with the next
// booking.
func (b *Budget) announceAll(changed []*budgetAccount) {
	ctx, stop := b.soon(context.Background())
	defer stop()
	var some errgroup.Group
	some.SetLimit(16)
	for _, account := range changed {
		some.Go(func() error {
			b.announce(ctx, account)
			return nil
		})
	}
	_ = some.Wait()
}

// announce has the fleet hear of limits that this worker has made effective, before anybody
// books again. So nobody waits on, or leaves, under the old limits meanwhile, and the callers
// of all workers regroup together.
func (b *Budget) announce(ctx context.Context, account *budgetAccount) {
	b.mu.Lock()
	l, r := b.learnedOf(account), b.currentRules()
	first := r.revision == b.newestKnown() && l.announced < r.revision
	if first {
		l.announced = r.revision
	}
	b.mu.Unlock()
	if !first {
		return
	}
	own, err := b.accountUnder(account.ID, r.of(account.ID, account.given, account.inherits))
	if err != nil {
		return
	}
	own.Label = account.Label
	b.keepNote(ctx, &own) // before the limits, or a worker that adopts them would find an older one
	_ = b.tellLimits(ctx, r, &own)
}

// tellLimits has the store hear of this worker's limits of an account under those rules, and adopts those that it
// applies.
func (b *Budget) tellLimits(ctx context.Context, r *limitRules, own *budgetAccount) error {
	one, err := b.list(r, *own)
	if err != nil {
		return err
	}
	w := waiter{Grant: Grant{budget: b, accounts: one, Cost: 1}}
	var request store.BookRequest
	w.request(&request, store.Never)
	_, err = w.ask(ctx, &request)
	return err
}
