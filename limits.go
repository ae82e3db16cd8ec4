package ration

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/lead"
	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// The limits of an account that are in force are one value, the effective limits, which is never written to. They are
// those of the latest edition of
//
//  1. the account's card, which the store keeps: what the provider has announced, or what is used of that;
//  2. the budget's card, if the account has no limits of its own: those of [Budget.SetLimits];
//  3. the program's settings: the account's own limits, or else Budget.Limits.
//
// Bookings name 2 or 3, and the store applies 1 and tells it: so a store that has forgotten an account takes no
// adopted limits for given ones. All else goes by the effective limits.
//
// Only the store changes a card, if nobody else has changed it since the changer saw it. A change that comes too late
// is not made: what it followed from is looked at again, with the next response.

// effective is an account's effective limits.
type effective struct {
	limits   []limit.Limit // without the budget's margin
	pace     *pace.State   // what is kept to beside them; nil: nothing
	origin   pace.Origin   // who has given limits
	edition  store.Edition
	given    []limit.Limit // 2 or 3 above, when the value was made
	inherits bool          // given are the budget's limits
	since    time.Time     // when this worker got them, on its own clock; zero: they are given
}

// paceOf returns the pace in force as a limit; false: there is none.
func (e *effective) paceOf() (l limit.Limit, paced bool) { return e.pace.Of(e.limits) }

// limitRules are what this worker knows of the limits of accounts without limits of their own. They are never written to,
// and read as one value: the old limits with the new edition would become the fleet's.
type limitRules struct {
	limits   []limit.Limit
	edition  store.Edition // of limits
	origin   pace.Origin   // likewise
	metered  []limit.Limit // that count other units than cost
	revision int           // Budget.Revision, of accounts with limits of their own
	known    int64         // the version of the budget's card; 0: it has none
}

// insteadOf returns the limits of units and keys with those that are given in place of others of the same unit and key.
func insteadOf(metered, given []limit.Limit) []limit.Limit {
	isGiven := func(l limit.Limit) bool {
		return slices.ContainsFunc(given, func(o limit.Limit) bool { return o.Unit == l.Unit && o.Per == l.Per })
	}
	return append(slices.DeleteFunc(slices.Clone(metered), isGiven), given...)
}

// all returns the limits of accounts without limits of their own, with those that count other units than cost.
func (r *limitRules) all() []limit.Limit { return slices.Concat(r.limits, r.metered) }

// currentRules returns the worker's rules: the budget's fields, until there is a card.
func (b *Budget) currentRules() *limitRules {
	if b.rules.Load() == nil {
		b.rules.CompareAndSwap(nil, b.configuredRules(0))
	}
	return b.rules.Load()
}

// configuredRules returns the budget's fields as rules, beside a card of that version that they come before.
func (b *Budget) configuredRules(known int64) *limitRules {
	limits, metered := limit.Split(b.Limits)
	return &limitRules{
		limits: limits, metered: metered, edition: store.Edition{Revision: b.Revision}, origin: pace.Configuration, revision: b.Revision, known: known,
	}
}

// of returns the limits of an account that was given some; with inherits, those of accounts without limits of their own.
func (r *limitRules) of(given []limit.Limit, inherits bool) effective {
	if inherits {
		return effective{limits: r.limits, given: r.limits, origin: r.origin, edition: r.edition, inherits: true}
	}
	return effective{limits: given, given: given, origin: pace.Configuration, edition: store.Edition{Revision: r.revision}}
}

// noteCard notes the budget's card, and reports whether it is another one. Unless this worker has made it, an event says so. It needs mu.
func (b *Budget) noteCard(card store.Card, own bool) (news bool) {
	old := b.currentRules()
	if card.Version <= old.known {
		return false
	}
	r := b.configuredRules(card.Version)
	if card.Revision >= b.Revision {
		var metered []limit.Limit
		r.limits, metered = limit.Split(b.withoutMargins(card.Limits))
		r.metered = insteadOf(r.metered, metered)
		r.edition, r.origin = card.Edition, pace.Operator
	}
	b.rules.Store(r)
	if !own && !slices.Equal(old.all(), r.all()) {
		ours, _ := b.withMargins(old.all()) // none are, if each account has its own
		b.emit(Event{Kind: LimitsOverridden, Ours: ours, Theirs: card.Limits})
	}
	return true
}

// noteLimits notes whose limits the fleet has changed, by the answer to a question that was asked at that instant, and reports whether
// any are changed.
func (b *Budget) noteLimits(status *store.Status, asked time.Time) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news = b.noteCard(status.Card, false)
	if len(status.Cards) == 0 {
		return news
	}
	for _, account := range b.lines.accounts() {
		b.learnedOf(account) // or nothing is known of it yet
	}
	for _, one := range status.Cards {
		if l := b.learned.Get(one.Account); l != nil {
			l.news = &toldCard{one.Card, asked}
		}
	}
	return true
}

// A learnedAccount is what a worker has learned of an account that is in use.
type learnedAccount struct {
	reconciler *reconciler    // nil: no response has said anything about its limits
	card       *budgetAccount // under its card, as it was told last; nil: it has none, or none that is later than what is given
	overrides  int            // how often the program has given it other limits
	told       int            // of how many of them the store was told
	news       *toldCard      // what the status has told of its card, and nobody has looked at yet; nil: nothing
	until      time.Time      // when it is forgotten if nobody uses it, on this process's clock
}

// A toldCard is a card as the status told it, which was asked for at that instant of this process's clock.
type toldCard struct {
	store.Card
	asked time.Time
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

// forget forgets what is booked of an account, and what was learned of it.
func (b *Budget) forget(account string) {
	b.durable.Journal.Forget(account)
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.learned.Get(account); l != nil {
		l.reconciler, l.card = nil, nil
	}
}

// inForce returns an account under its effective limits. The account may be one of an earlier
// booking.
func (b *Budget) inForce(account *budgetAccount) *budgetAccount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.effectiveAccount(account)
}

// effectiveAccount is inForce. It needs mu.
func (b *Budget) effectiveAccount(account *budgetAccount) *budgetAccount {
	if l := b.learned.Get(account.ID); l != nil && l.news != nil {
		told := l.news
		l.news = nil
		ours := b.effectiveAccount(account)
		if theirs, news := b.adopt(account, told.Card, true, told.asked); news {
			b.emit(Event{Kind: LimitsOverridden, Account: account.ID, Ours: ours.Limits, Theirs: theirs.Limits})
		}
	}
	e := b.currentRules().of(account.given, account.inherits)
	if account.isMeter {
		e.edition = account.edition
	}
	if l := b.learned.Get(account.ID); l != nil && l.card != nil && l.card.edition.Compare(e.edition) > 0 {
		return l.card
	}
	if account.pace == nil && account.edition == e.edition && account.origin == e.origin && account.inherits == e.inherits &&
		slices.Equal(account.limits, e.limits) {
		return account
	}
	own, err := b.accountUnder(account.ID, e, account.metered)
	if err != nil {
		return account // its limits are those of a booking, so they are valid
	}
	own.Label, own.isMeter = account.Label, account.isMeter
	return &own
}

// adopt takes in the account's card by which the store answered a question that was asked at that instant, and returns
// the account under it; zero: the limits of the question are in force. whole is set if the card has its Why. If its limits
// are news the caller says so in an event. It needs mu.
func (b *Budget) adopt(account *budgetAccount, told store.Card, whole bool, asked time.Time) (booked *budgetAccount, news bool) {
	l := b.learnedOf(account)
	old := l.card
	if old != nil && told.Edition.Compare(old.edition) < 0 && asked.After(old.since) {
		l.card, old = nil, nil // the store has lost it
	}
	if told.Limits == nil {
		return account, false
	}
	if old != nil && old.edition == told.Edition && (!whole || old.origin != pace.UnknownOrigin) {
		return old, false
	}
	before := b.effectiveAccount(account)
	e := before.effective
	limits, paced := pace.Split(told.Limits)
	e.limits, e.edition, e.since = b.withoutMargins(limits), told.Edition, time.Now()
	if old != nil && old.edition == told.Edition {
		e.since = old.since
	}
	why := pace.Why{Origin: pace.UnknownOrigin, Pace: pace.By(paced)}
	switch {
	case told.Version == 0:
		why.Origin = pace.Configuration
	case whole:
		why = pace.ParseWhy(told.Why, told.Limits)
	}
	e.origin, e.pace = why.Origin, why.Pace
	under, err := b.accountUnder(account.ID, e, account.metered)
	if err != nil {
		return account, false
	}
	under.Label, under.isMeter = account.Label, account.isMeter
	if told.Edition.Compare(before.edition) < 0 {
		return &under, false // the answer was long on its way
	}
	l.card = &under
	b.adopts.Store(true)
	return &under, !slices.Equal(before.limits, under.limits)
}

// delayShare is the part of the shortest window that a slow way to the provider may cost: a twentieth.
const delayShare = 20

// accountUnder returns an account under effective limits, to which requests are charged that are charged to its meters of these
// other limits, and to the shared accounts. How late they may be is for the shortest window of all.
func (b *Budget) accountUnder(id string, e effective, metered []limit.Limit) (budgetAccount, error) {
	limits, err := b.withMargins(e.limits)
	if err != nil {
		return budgetAccount{}, err
	}
	a := budgetAccount{Account: store.Account{ID: id, Limits: limits}, effective: e, metered: metered}
	if e.pace != nil {
		if paced, is := e.paceOf(); is {
			a.Account.Limits = append(slices.Clip(limits), paced)
		}
	}
	if e.edition.Version > 0 {
		a.Account.Edition = e.edition
	}
	least, shortest := limit.MaxMargin, limits[0].Window
	for _, l := range limits {
		a.longest = max(a.longest, l.Window+l.MarginOrDefault())
		least, shortest = min(least, l.MarginOrDefault()), min(shortest, l.Window)
	}
	beside := func(all []limit.Limit) {
		for _, l := range all {
			if l.Margin == 0 {
				l.Margin = b.margin(l)
			}
			if l.Margin > 0 {
				least, shortest = min(least, l.Margin), min(shortest, l.Window)
			}
		}
	}
	beside(metered)
	for i := range b.Shared {
		beside(b.Shared[i].Limits)
	}
	a.tolerance = least / 2 // the other half is for the way to the provider
	if a.tolerance > 0 {
		a.mostDelay = shortest / delayShare
		a.leads = lead.Bounds{Tolerance: a.tolerance, Most: shortest / 4}
	}
	return a, nil
}

var errNoCalls = errors.New("no limit counts calls: name one beside those of other units, such as ration.PerMinute(500)")

// withMargins returns limits with the budget's margin, if they have none of their own.
func (b *Budget) withMargins(limits []limit.Limit) ([]limit.Limit, error) {
	if err := limit.Validate(limits); err != nil {
		if errors.Is(err, limit.ErrNone) && len(b.currentRules().metered) > 0 {
			err = errNoCalls
		}
		return nil, fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	all := make([]limit.Limit, len(limits))
	for i, l := range limits {
		if l.Margin == 0 {
			l.Margin = b.margin(l)
		}
		all[i] = l
	}
	return all, nil
}

// withoutMargins returns limits without the margins that withMargins would add.
func (b *Budget) withoutMargins(limits []limit.Limit) []limit.Limit {
	all := slices.Clone(limits)
	for i := range all {
		if l := &all[i]; l.Margin == b.margin(*l) {
			l.Margin = 0
		}
	}
	return all
}

// margin returns the budget's margin for a limit.
func (b *Budget) margin(l limit.Limit) time.Duration {
	switch {
	case b.Margin < 0:
		return 0
	case b.Margin > 0:
		return b.Margin.Truncate(time.Microsecond)
	}
	return l.DefaultMargin()
}
