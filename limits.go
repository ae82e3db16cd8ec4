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

// SetLimits changes the budget's limits while requests are booked, for the whole
// fleet: from now on these rule, by a higher revision than any that this worker
// has heard of, and no log is lost by it. The other workers follow with their next
// booking, or when one of their callers wakes. Callers that wait book anew, so that
// a lower Max holds for them too; their order may change. A higher Max is there at
// once for what is not booked yet: slots that callers of other workers hold stand
// until these wake, and who books anew comes behind them.
//
// A limit with another Window, Algorithm or Scope is another limit: an exact log,
// which stays where it is kept, serves it at once; any other count begins at zero.
// Tokens with Limits of their own keep these; [Pool.Add] replaces them.
func (b *Budget) SetLimits(limits ...limit.Limit) error {
	if err := limit.Validate(limits); err != nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current()
	lessons := maps.Clone(r.overrides)
	maps.DeleteFunc(lessons, func(_ string, l limitOverride) bool { return slices.Equal(l.given, r.limits) })
	b.raiseRevision(limitRules{limits: slices.Clone(limits), overrides: lessons})
	return nil
}

// overrideLimits makes limits rule that a token was given in place of others.
func (b *Budget) overrideLimits(t Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current()
	r.overrides, r.learned = maps.Clone(r.overrides), false
	delete(r.overrides, t.AccountID())
	b.raiseRevision(r)
}

// rules are a worker's limits, and of which revision they are. All is read at once:
// old limits of the new revision would rule.
type limitRules struct {
	limits    []limit.Limit
	overrides map[string]limitOverride // by account, what is known better; never written to
	learned   bool                     // the revision was raised for a lesson, and not by people
	revision  int
	edition   int // of all that is here, in this worker
}

// current returns the budget's limits and their revision.
func (b *Budget) current() limitRules {
	if r := b.rules.Load(); r != nil {
		return *r
	}
	return limitRules{limits: b.Limits, revision: b.Revision}
}

// raiseRevision makes rules that are the fleet's too. It needs mu.
func (b *Budget) raiseRevision(r limitRules) {
	r.revision = b.newestKnown() + 1
	b.replaceRules(r)
	b.wakeWaiters()
}

// replaceRules makes rules this worker's. It needs mu.
func (b *Budget) replaceRules(r limitRules) {
	r.edition = b.current().edition + 1
	b.rules.Store(&r)
}

// wakeWaiters has waiting callers look again. It needs mu.
func (b *Budget) wakeWaiters() {
	if b.rulesChanged != nil {
		close(b.rulesChanged)
		b.rulesChanged = nil
	}
}

// newestKnown returns the highest revision that this worker has heard of.
func (b *Budget) newestKnown() int { return max(b.current().revision, int(b.newestRevision.Load())) }

// noteRevision notes a revision of the fleet's. It needs mu.
func (b *Budget) noteRevision(revision int) {
	if revision > b.newestKnown() {
		b.newestRevision.Store(int64(revision))
		b.wakeWaiters()
	}
}

// limitsChanged returns a channel that is closed when SetLimits is called.
func (b *Budget) limitsChanged() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rulesChanged == nil {
		b.rulesChanged = make(chan struct{})
	}
	return b.rulesChanged
}

// effective are limits that rule, spelt out too, and since when this worker knows.
type effectiveLimits struct {
	encoded string
	limits  []limit.Limit
	given   []limit.Limit // the account's
	since   time.Time
}

// noteEffective notes the limits that rule an account. It needs mu.
func (b *Budget) noteEffective(account *budgetAccount, set string, limits []limit.Limit) {
	if b.effective == nil {
		b.effective = make(map[string]effectiveLimits)
	}
	b.effective[account.ID] = effectiveLimits{set, limits, account.given, time.Now()}
}

// adoptEffective tells, once, that other limits rule than this worker's.
func (b *Budget) adoptEffective(account *budgetAccount, ruling store.EffectiveLimits) {
	if ruling.Limits == nil {
		return
	}
	set := store.EncodeLimits(ruling.Limits)
	b.mu.Lock()
	news := b.effective[account.ID].encoded != set
	if news {
		b.noteEffective(account, set, ruling.Limits)
	}
	b.noteRevision(ruling.Revision)
	b.mu.Unlock()
	if news {
		b.notify(Event{Kind: LimitsOverridden, Account: account.ID, Ours: account.Limits, Theirs: ruling.Limits})
	}
}

// A limitOverride is limits of an account that answers told of. They rule in place of those
// that were given, until others are given.
type limitOverride struct{ limits, given []limit.Limit }

// limitsOf returns the limits of an account that was given some: what is known better, or
// those.
func (r *limitRules) limitsOf(account string, given []limit.Limit) []limit.Limit {
	if l, taught := r.overrides[account]; taught && slices.Equal(l.given, given) {
		return l.limits
	}
	return given
}

// withOverride returns the rules with one more lesson.
func (r limitRules) withOverride(account string, l limitOverride) limitRules {
	r.overrides = maps.Clone(r.overrides)
	if r.overrides == nil {
		r.overrides = make(map[string]limitOverride)
	}
	r.overrides[account] = l
	return r
}

// learn makes limits rule that the provider has announced for an account, and reports
// whether that is news here. Where the fleet has them already no revision is spent.
func (b *Budget) learn(account *budgetAccount, limits []limit.Limit) bool {
	widened, err := b.widen(limits)
	if err != nil {
		return false // nonsense was announced
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current()
	if l := r.overrides[account.ID]; slices.Equal(l.limits, limits) && slices.Equal(l.given, account.given) {
		return false
	}
	r = r.withOverride(account.ID, limitOverride{limits, account.given})
	set := store.EncodeLimits(widened)
	if b.effective[account.ID].encoded == set {
		b.replaceRules(r)
		return true
	}
	// A revision is that of all accounts: what rules the others is to go on.
	for id, other := range b.effective {
		if id == account.ID {
			continue
		}
		if ours, err := b.accountUnder(r, id, other.given); err == nil && store.EncodeLimits(ours.Limits) != other.encoded {
			r.overrides[id] = limitOverride{other.limits, other.given}
		}
	}
	r.learned = true
	b.raiseRevision(r)
	b.noteEffective(account, set, widened)
	return true
}

// concede takes the fleet's limits for those that were learnt, where another worker has
// learnt others at the same time: of two limits of one revision neither is better. It
// reports whether a booking that failed is to be asked for again.
func (b *Budget) concede(failed error, accounts *accountList) bool {
	differ, is := errors.AsType[*store.LimitsError](failed)
	if !is {
		return false
	}
	ours := accounts.find(differ.Account)
	if ours == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current()
	known := r.limitsOf(ours.ID, ours.given)
	switch {
	case r.revision != accounts.revision || !slices.Equal(known, ours.bare):
		return true // others rule by now: many callers may be told of the same at once
	case !r.learned || slices.Equal(known, differ.Theirs):
		return false // which of the two rule is for people to say
	}
	b.replaceRules(r.withOverride(ours.ID, limitOverride{differ.Theirs, ours.given}))
	return true
}
