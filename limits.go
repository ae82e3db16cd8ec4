package ration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// SetLimits changes the budget's limits for the whole fleet, while requests are booked.
// It raises the revision above the highest that this worker knows. The other
// workers adopt the limits with their next booking, or when one of their callers wakes.
// No log is lost.
//
// Callers that wait cancel their slots and book again, so that a lower Max holds for
// them too; their order may change. A higher Max serves new bookings at once. Slots
// already granted to other workers stay valid until those workers wake; new bookings
// queue behind them.
//
// A limit with another Window, Algorithm or Scope is another limit. An exact log serves
// it at once, because the log stays; any other count begins at zero. Tokens with Limits
// of their own keep them; [Pool.Add] replaces those.
func (b *Budget) SetLimits(limits ...limit.Limit) error {
	if err := limit.Validate(limits); err != nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := *b.currentRules()
	overrides := maps.Clone(r.overrides)
	maps.DeleteFunc(overrides, func(_ string, o limitOverride) bool { return slices.Equal(o.given, r.limits) })
	b.raiseRevision(limitRules{limits: slices.Clone(limits), overrides: overrides})
	return nil
}

// overrideLimits makes a token's new limits effective for the whole fleet.
func (b *Budget) overrideLimits(t Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := *b.currentRules()
	r.overrides, r.learned = maps.Clone(r.overrides), false
	delete(r.overrides, t.AccountID())
	b.raiseRevision(r)
}

// limitRules are a worker's limits and their revision. They are never written to, and
// read as one value: the old limits with the new revision would become the fleet's.
type limitRules struct {
	limits    []limit.Limit            // of accounts without limits of their own
	overrides map[string]limitOverride // by account
	learned   bool                     // the revision was raised for a learned limit, not by the user
	revision  int
}

// A limitOverride is limits of an account that the provider announced. They replace the
// given ones until the program sets others.
type limitOverride struct{ limits, given []limit.Limit }

// limitsOf returns the limits of an account that was given some: its override, or those.
func (r *limitRules) limitsOf(account string, given []limit.Limit) []limit.Limit {
	if o, found := r.overrides[account]; found && slices.Equal(o.given, given) {
		return o.limits
	}
	return given
}

// withOverride returns the rules with other limits of an account, and without the overrides
// of accounts that are forgotten. It needs mu.
func (b *Budget) withOverride(r limitRules, account *budgetAccount, limits []limit.Limit) limitRules {
	b.learnedOf(account)
	overrides := map[string]limitOverride{account.ID: {limits, account.given}}
	for id, o := range r.overrides {
		if id != account.ID && b.learned.Get(id) != nil {
			overrides[id] = o
		}
	}
	r.overrides = overrides
	return r
}

// currentRules returns the worker's limits: the budget's fields, until others replace
// them.
func (b *Budget) currentRules() *limitRules {
	if b.rules.Load() == nil {
		b.rules.CompareAndSwap(nil, &limitRules{limits: b.Limits, revision: b.Revision})
	}
	return b.rules.Load()
}

// raiseRevision makes rules the fleet's. It needs mu.
func (b *Budget) raiseRevision(r limitRules) {
	r.revision = b.newestKnown() + 1
	b.newestRevision.Store(int64(r.revision))
	b.rules.Store(&r)
	b.wakeWaiters()
}

// effectiveLimits are the limits that the fleet keeps for an account.
type effectiveLimits struct {
	encoded string // as store.EncodeLimits has them
	limits  []limit.Limit
	given   []limit.Limit // the account's
	since   time.Time     // when this worker got them, on its own clock
}

// A learnedAccount is what a worker has learned of an account that is in use.
type learnedAccount struct {
	reconciler *reconciler     // nil: no response has said anything about its limits
	effective  effectiveLimits // none: the store has not said
	until      time.Time       // when it is forgotten if nobody uses it, on this process's clock
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
	l.use(account, now)
	return l
}

// use notes that the account was used at that instant of this process's clock.
func (l *learnedAccount) use(account *budgetAccount, now time.Time) {
	l.until = now.Add(account.longest + forgetAfter)
}

// effectiveOf returns the limits that the fleet keeps for an account; none: they are not
// known. It needs mu.
func (b *Budget) effectiveOf(account string) effectiveLimits {
	if l := b.learned.Get(account); l != nil {
		return l.effective
	}
	return effectiveLimits{}
}

// noteEffective notes the limits that the fleet keeps for an account. It needs mu.
func (b *Budget) noteEffective(account *budgetAccount, encoded string, limits []limit.Limit) {
	b.learnedOf(account).effective = effectiveLimits{encoded, limits, account.given, time.Now()}
}

// adoptEffective takes in that the store booked by other limits than this worker's. The
// first time it says so in an event.
func (b *Budget) adoptEffective(account *budgetAccount, fleet store.EffectiveLimits) {
	encoded := store.EncodeLimits(fleet.Limits)
	b.mu.Lock()
	changed := b.effectiveOf(account.ID).encoded != encoded
	if changed {
		b.noteEffective(account, encoded, fleet.Limits)
	}
	b.noteRevision(fleet.Revision)
	b.mu.Unlock()
	if changed {
		b.notify(Event{Kind: LimitsOverridden, Account: account.ID, Ours: account.Limits, Theirs: fleet.Limits})
	}
}

// learn makes limits effective, in the whole fleet, that the provider has announced for
// an account, and reports whether this worker had others. If the fleet has them already
// the revision stays.
func (b *Budget) learn(account *budgetAccount, limits []limit.Limit) bool {
	withMargin, err := b.withMargins(limits)
	if err != nil {
		return false // the provider announced nonsense
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := *b.currentRules()
	if o := r.overrides[account.ID]; slices.Equal(o.limits, limits) && slices.Equal(o.given, account.given) {
		return false
	}
	r = b.withOverride(r, account, limits)
	encoded := store.EncodeLimits(withMargin)
	if b.effectiveOf(account.ID).encoded == encoded {
		b.rules.Store(&r)
		return true
	}
	// A revision is that of all accounts: the others keep their effective limits.
	for id, l := range b.learned.All() {
		other := l.effective
		if id == account.ID || other.limits == nil {
			continue
		}
		if ours, err := b.accountUnder(&r, id, other.given); err == nil && store.EncodeLimits(ours.Limits) != other.encoded {
			r.overrides[id] = limitOverride{other.limits, other.given}
		}
	}
	r.learned = true
	b.raiseRevision(r)
	b.noteEffective(account, encoded, withMargin)
	return true
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
	r := b.currentRules()
	ours := r.limitsOf(account.ID, account.given)
	switch {
	case r.revision != accounts.rules.revision || !slices.Equal(ours, account.bare):
		return true // another caller got the same error, and has conceded
	case !r.learned || slices.Equal(ours, differ.Theirs):
		return false // the user must say which are right
	}
	conceded := b.withOverride(*r, account, differ.Theirs)
	b.rules.Store(&conceded)
	return true
}
