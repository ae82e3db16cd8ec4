package limits

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
//  2. the budget's card, if the account has no limits of its own: those of Budget.SetLimits;
//  3. the program's settings: the account's own limits, or else Budget.Limits.
//
// Bookings name 2 or 3, and the store applies 1 and tells it: so a store that has forgotten an account takes no
// adopted limits for given ones. All else goes by the effective limits.
//
// Only the store changes a card, if nobody else has changed it since the changer saw it. A change that comes too late
// is not made: what it followed from is looked at again, with the next response.

// effective is an account's effective limits.
type effective struct {
	WithoutMargin []limit.Limit // what is in force, without the budget's margin
	pace          *pace.State   // what is kept to beside them; nil: nothing
	origin        pace.Origin   // who has given limits
	edition       store.Edition
	given         []limit.Limit // 2 or 3 above, when the value was made
	inherits      bool          // given are the budget's limits
	since         time.Time     // when this worker got them, on its own clock; zero: they are given
}

// Paced returns the pace in force as a limit; false: there is none.
func (e *effective) Paced() (l limit.Limit, paced bool) {
	if e.pace == nil {
		return l, false
	}
	return e.pace.Of(e.WithoutMargin)
}

// noteCard notes the budget's card, and reports whether it is another one. Unless this worker has made it, an event says so. It needs mu.
func (k *Keeper) noteCard(card store.Card, own bool) (news bool) {
	old := k.Rules()
	if card.Version <= old.known {
		return false
	}
	r := k.configuredRules(card.Version)
	if card.Revision >= k.Revision {
		var metered []limit.Limit
		r.limits, metered = limit.Split(k.withoutMargins(card.Limits))
		r.Metered = insteadOf(r.Metered, metered)
		r.edition, r.origin = card.Edition, pace.Operator
	}
	k.rules.Store(r)
	if !own && !slices.Equal(old.all(), r.all()) {
		ours, _ := k.withMargins(old.all()) // none are, if each account has its own
		k.Owner.Overridden("", ours, card.Limits)
	}
	return true
}

// NoteStatus notes whose limits the fleet has changed, by the answer to a question that was asked at that instant, and reports whether
// any are changed.
func (k *Keeper) NoteStatus(status *store.Status, asked time.Time) (news bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if status.Card.Version > k.Rules().known {
		news = k.noteCard(status.Card, false)
	}
	if len(status.Cards) == 0 {
		return news
	}
	for _, account := range k.Owner.Waiting() {
		k.learnedOf(account) // or nothing is known of it yet
	}
	for _, one := range status.Cards {
		if l := k.learned.Get(one.Account); l != nil {
			l.news = &toldCard{one.Card, asked}
		}
	}
	return true
}

// A learnedAccount is what a worker has learned of an account that is in use.
type learnedAccount struct {
	reconciler *reconciler // nil: no response has said anything about its limits
	card       *Account    // under its card, as it was told last; nil: it has none, or none that is later than what is given
	overrides  int         // how often the program has given it other limits
	told       int         // of how many of them the store was told
	news       *toldCard   // what the status has told of its card, and nobody has looked at yet; nil: nothing
	until      time.Time   // when it is forgotten if nobody uses it, on this process's clock
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
func (k *Keeper) learnedOf(account *Account) *learnedAccount {
	now := time.Now()
	k.learned.Sweep(func(_ string, l *learnedAccount) bool { return l.until.Before(now) })
	l := k.learned.Get(account.ID)
	if l == nil {
		l = new(learnedAccount)
		k.learned.Set(account.ID, l)
	}
	l.until = now.Add(account.Longest + forgetAfter)
	return l
}

// Forget forgets what was learned of an account.
func (k *Keeper) Forget(account string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.learned.Get(account); l != nil {
		l.reconciler, l.card = nil, nil
	}
}

// InForce returns an account under its effective limits. The account may be one of an earlier
// booking.
func (k *Keeper) InForce(account *Account) *Account {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.effectiveAccount(account)
}

// effectiveAccount is InForce. It needs mu.
func (k *Keeper) effectiveAccount(account *Account) *Account {
	if l := k.learned.Get(account.ID); l != nil && l.news != nil {
		told := l.news
		l.news = nil
		ours := k.effectiveAccount(account)
		if theirs, news := k.adopt(account, told.Card, true, told.asked); news {
			k.Owner.Overridden(account.ID, ours.Limits, theirs.Limits)
		}
	}

	e := k.Rules().of(account.given, account.inherits)
	if account.isMeter {
		e.edition = account.edition
	}
	if l := k.learned.Get(account.ID); l != nil && l.card != nil && l.card.edition.Compare(e.edition) > 0 {
		return l.card
	}
	if account.pace == nil && account.edition == e.edition && account.origin == e.origin && account.inherits == e.inherits &&
		slices.Equal(account.WithoutMargin, e.WithoutMargin) {
		return account
	}
	own, err := k.accountUnder(account.ID, e, account.Metered)
	if err != nil {
		return account // its limits are those of a booking, so they are valid
	}
	own.Label, own.isMeter = account.Label, account.isMeter
	return &own
}

// Adopt takes in the card by which the store has booked an account, when it was asked at that instant of this process's clock. It returns
// the account under it, and whether its limits are news.
func (k *Keeper) Adopt(account *Account, told store.Card, asked time.Time) (booked *Account, news bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if told.Limits == nil && k.learned.Get(account.ID) == nil {
		return account, false
	}
	return k.adopt(account, told, false, asked)
}

// adopt takes in the account's card by which the store answered a question that was asked at that instant, and returns
// the account under it; zero: the limits of the question are in force. whole is set if the card has its Why. If its limits
// are news the caller says so in an event. It needs mu.
func (k *Keeper) adopt(account *Account, told store.Card, whole bool, asked time.Time) (booked *Account, news bool) {
	l := k.learnedOf(account)
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

	before := k.effectiveAccount(account)
	e := before.effective
	limits, paced := pace.Split(told.Limits)
	e.WithoutMargin, e.edition, e.since = k.withoutMargins(limits), told.Edition, time.Now()
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

	under, err := k.accountUnder(account.ID, e, account.Metered)
	if err != nil {
		return account, false
	}
	under.Label, under.isMeter = account.Label, account.isMeter
	if told.Edition.Compare(before.edition) < 0 {
		return &under, false // the answer was long on its way
	}
	l.card = &under
	k.Adopts.Store(true)
	return &under, !slices.Equal(before.WithoutMargin, under.WithoutMargin)
}

// delayShare is the part of the shortest window that a slow way to the provider may cost: a twentieth.
const delayShare = 20

// accountUnder returns an account under effective limits, to which requests are charged that are charged to its meters of these
// other limits, and to the shared accounts. How late they may be is for the shortest window of all.
func (k *Keeper) accountUnder(id string, e effective, metered []limit.Limit) (Account, error) {
	limits, err := k.withMargins(e.WithoutMargin)
	if err != nil {
		return Account{}, err
	}
	a := Account{Account: store.Account{ID: id, Limits: limits}, effective: e, Metered: metered}
	if e.pace != nil {
		if paced, is := e.Paced(); is {
			a.Account.Limits = append(slices.Clip(limits), paced)
		}
	}
	if e.edition.Version > 0 {
		a.Account.Edition = e.edition
	}

	least, shortest := limit.MaxMargin, limits[0].Window
	for _, l := range limits {
		a.Longest = max(a.Longest, l.Window+l.MarginOrDefault())
		least, shortest = min(least, l.MarginOrDefault()), min(shortest, l.Window)
	}
	beside := func(all []limit.Limit) {
		for _, l := range all {
			if l.Margin == 0 {
				l.Margin = k.margin(l)
			}
			if l.Margin > 0 {
				least, shortest = min(least, l.Margin), min(shortest, l.Window)
			}
		}
	}
	beside(metered)
	for i := range k.Shared {
		beside(k.Shared[i].Limits)
	}

	a.Tolerance = least / 2 // the other half is for the way to the provider
	if a.Tolerance > 0 {
		a.MostDelay = shortest / delayShare
		a.Leads = lead.Bounds{Tolerance: a.Tolerance, Most: shortest / 4}
	}
	return a, nil
}

// ErrNoCalls says that limits count other units than calls alone.
var ErrNoCalls = errors.New("no limit counts calls: name one beside those of other units, such as ration.PerMinute(500)")

// withMargins returns limits with the budget's margin, if they have none of their own.
func (k *Keeper) withMargins(limits []limit.Limit) ([]limit.Limit, error) {
	if err := limit.Validate(limits); err != nil {
		if errors.Is(err, limit.ErrNone) && len(k.Rules().Metered) > 0 {
			err = ErrNoCalls
		}
		return nil, fmt.Errorf("ration: budget %q: %w", k.Budget, err)
	}
	all := make([]limit.Limit, len(limits))
	for i, l := range limits {
		if l.Margin == 0 {
			l.Margin = k.margin(l)
		}
		all[i] = l
	}
	return all, nil
}

// withoutMargins returns limits without the margins that withMargins would add.
func (k *Keeper) withoutMargins(limits []limit.Limit) []limit.Limit {
	all := slices.Clone(limits)
	for i := range all {
		if l := &all[i]; l.Margin == k.margin(*l) {
			l.Margin = 0
		}
	}
	return all
}

// margin returns the budget's margin for a limit.
func (k *Keeper) margin(l limit.Limit) time.Duration {
	switch {
	case k.Margin < 0 || l.InFlight > 0:
		return 0
	case k.Margin > 0:
		return k.Margin.Truncate(time.Microsecond)
	}
	return l.DefaultMargin()
}
