package limits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Set changes the budget's limits for the whole fleet, and returns when the store has them.
func (k *Keeper) Set(ctx context.Context, limits []limit.Limit) error {
	r := k.Rules()
	// Each turn but the first is behind somebody else's change.
	for known := (store.Edition{Revision: r.edition.Revision, Version: r.known}); ; {
		reply, err := k.putLimits(ctx, known, limits)
		if err != nil {
			return err
		}
		if reply.Changed {
			k.Owner.Tell()
			return nil
		}
		known = reply.Card.Edition
	}
}

// putLimits has the store keep an operator's limits as the budget's card, if that is of no later edition.
func (k *Keeper) putLimits(ctx context.Context, known store.Edition, limits []limit.Limit) (store.CardReply, error) {
	all, err := k.withMargins(limits)
	if err != nil {
		return store.CardReply{}, err
	}
	why := pace.Why{Origin: pace.Operator, By: k.Worker}
	reply, err := k.Store.Card(ctx, store.CardRequest{Known: known, Limits: all, Why: why.Text()})
	if err == nil {
		k.mu.Lock()
		news := k.noteCard(reply.Card, reply.Changed)
		k.mu.Unlock()
		if news {
			k.Fleet.LimitsChanged()
		}
	}
	return reply, err
}

// understand returns the account under its effective limits, and whether this worker knows why they are in force. If another
// worker has changed them the store tells, unless it does not answer soon.
func (k *Keeper) understand(account *Account) (now *Account, understood bool) {
	if now = k.InForce(account); now.origin != pace.UnknownOrigin {
		return now, true
	}
	_ = k.askCardOf(now)
	k.Owner.Tell()
	now = k.InForce(account)
	return now, now.origin != pace.UnknownOrigin
}

// askCardOf asks the store for the account's card, once for all who want it at once, unless the store does not answer soon.
func (k *Keeper) askCardOf(account *Account) error {
	return k.asking.Do(context.Background(), "card of "+account.ID, func() error {
		ctx, stop := k.Store.Soon(context.Background())
		defer stop()
		return k.RefreshCard(ctx, account)
	})
}

// RefreshCard asks the store for the account's card.
func (k *Keeper) RefreshCard(ctx context.Context, account *Account) error {
	asked := time.Now()
	reply, err := k.Store.Card(ctx, store.CardRequest{Account: account.ID})
	if err == nil {
		k.noteAccountCard(account, reply.Card, asked)
	}
	return err
}

// noteAccountCard takes in an account's card, with its Why.
func (k *Keeper) noteAccountCard(account *Account, card store.Card, asked time.Time) {
	k.mu.Lock()
	before := k.effectiveAccount(account)
	now, news := k.adopt(account, card, true, asked)
	k.mu.Unlock()
	if news {
		k.Owner.Overridden(account.ID, before.Limits, now.Limits)
	}
}

// changeCard has the fleet keep to other limits of an account, if its effective ones are of the edition still. It reports whether
// it did; if not, the ones in force are known then, unless the error is errBehind. It asks for no status, which may be what it is part of.
func (k *Keeper) changeCard(ctx context.Context, account *Account, next effective) (changed bool, err error) {
	under, err := k.accountUnder(account.ID, next, account.Metered)
	if err != nil {
		return false, err
	}
	why := pace.Why{Origin: next.origin, By: k.Worker, Pace: next.pace}
	asked := time.Now()
	reply, err := k.Store.Card(ctx, store.CardRequest{Account: account.ID, Known: account.edition, KnownCard: k.Rules().known,
		Limits: under.Limits, Why: why.Text()})
	switch {
	case err != nil:
		return false, err
	case reply.Behind:
		return false, errBehind
	case !reply.Changed:
		k.noteAccountCard(account, reply.Card, asked)
		return false, nil
	}

	under.edition, under.Label, under.isMeter = reply.Card.Edition, account.Label, account.isMeter
	under.Account.Edition = reply.Card.Edition
	if !slices.Equal(under.WithoutMargin, account.WithoutMargin) {
		under.since = time.Now()
	}
	k.mu.Lock()
	l := k.learnedOf(account)
	late := l.card != nil && l.card.edition.Compare(under.edition) > 0 // a booking has told a later one meanwhile
	if !late {
		l.card = &under
		k.Adopts.Store(true)
	}
	k.mu.Unlock()
	if !late {
		k.Fleet.LimitsChanged()
	}
	return true, nil
}

// errBehind says that the budget has another card than this worker knows.
var errBehind = errors.New("ration: the budget's limits were changed")

// learn has the fleet keep to limits of an account that follow from what the provider has announced or refused, and
// reports whether it did. They follow from the account's limits: if others are in force by now they are of no use. If the store
// does not answer the next response tries again.
func (k *Keeper) learn(account *Account, next effective) (changed bool) {
	now := k.InForce(account)
	if limit.Validate(next.WithoutMargin) != nil || now.edition != account.edition || now.origin == pace.UnknownOrigin ||
		slices.Equal(next.WithoutMargin, now.WithoutMargin) && next.pace == now.pace {
		return false // or the provider announced nonsense
	}
	ctx, stop := k.Store.Soon(context.Background())
	defer stop()
	changed, err := k.changeCard(ctx, now, next)
	if errors.Is(err, errBehind) {
		_ = k.Fleet.Refresh(ctx) // what it followed from is looked at again, with the next response
	}
	k.Owner.Tell()
	return changed
}

// Restore has the fleet go back to the limits that this worker was given for the accounts, if others are in force. An
// error is the store's.
func (k *Keeper) Restore(ctx context.Context, accounts []*Account) error {
	defer k.Owner.Tell()
	var failed []error
	for _, account := range accounts {
		failed = append(failed, k.restoreAccount(ctx, account, false))
	}
	return errors.Join(failed...)
}

// restoreAccount is restoreLimits for one account. If the program has just given it other limits the store may know it
// under those before.
func (k *Keeper) restoreAccount(ctx context.Context, account *Account, overrides bool) error {
	for {
		now := k.InForce(account)
		given := k.Rules().of(account.given, account.inherits)
		if !overrides && now.pace == nil && slices.Equal(now.WithoutMargin, given.WithoutMargin) {
			return nil
		}
		given.edition = now.edition
		changed, err := k.changeCard(ctx, now, given)
		if errors.Is(err, errBehind) {
			err = k.Fleet.Refresh(ctx)
		}
		if changed || err != nil {
			return err
		}
	}
}

// Override notes that the program has given an account other limits, of which PutOverride tells the store, or the next booking does.
func (k *Keeper) Override(account *Account) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.learnedOf(account).overrides++
}

// PutOverride has the fleet keep to the limits that the program has given an account, unless the store was told already.
func (k *Keeper) PutOverride(account *Account) error {
	k.mu.Lock()
	l := k.learnedOf(account)
	n, told := l.overrides, l.told
	k.mu.Unlock()
	if told >= n {
		return nil
	}
	return k.asking.Do(context.Background(), fmt.Sprint("override ", n, " of ", account.ID), func() error {
		ctx, stop := k.Store.Soon(context.Background())
		defer stop()
		err := k.restoreAccount(ctx, account, true)
		if err == nil {
			k.mu.Lock()
			l.told = max(l.told, n)
			k.mu.Unlock()
		}
		return err
	})
}

// IsOverridden reports whether a booking has failed because the store was not told of an account's new limits yet, and knows
// them now.
func (k *Keeper) IsOverridden(err error, accounts *List) bool {
	differ, is := errors.AsType[*store.LimitsError](err)
	if !is {
		return false
	}
	account := accounts.Find(differ.Account)
	if account == nil {
		return false
	}
	k.mu.Lock()
	l := k.learnedOf(account)
	overridden, known := l.overrides > 0, l.card != nil
	if overridden && !known {
		l.told = 0 // or the account was forgotten meanwhile
	}
	k.mu.Unlock()
	return overridden && k.PutOverride(account) == nil
}

// AgreeOnCards gives the store back the cards that it has lost (that of the budget, if it has another than the rules with which it was
// asked, and after a loss those of accounts) and asks for those that were changed if the status, which is new,
// does not tell whose.
func (k *Keeper) AgreeOnCards(ctx context.Context, r *Rules, status *store.Status, lost bool) error {
	known := &k.Fleet.State().Status
	newest, highest := known.NewestCard, max(known.Revision, k.Revision)
	for _, one := range status.Cards {
		newest = max(newest, one.Card.Version)
	}
	if status.Revision > highest || status.NewestCard > newest {
		go k.learnCards()
	}

	kept := status.Card.Version
	switch {
	case kept >= r.known:
	case r.edition.Version == 0:
		k.rules.CompareAndSwap(r, k.configuredRules(kept)) // the card counts for nothing here
	default:
		if _, err := k.putLimits(ctx, r.edition, r.all()); err != nil {
			return err
		}
	}
	if !lost {
		return nil
	}
	var lacking []*Account
	k.mu.Lock()
	for _, l := range k.learned.All() {
		// One that the budget's card has replaced stays so.
		if c := l.card; c != nil && c.edition.Version > 0 && c.origin != pace.UnknownOrigin && c.edition.Compare(r.of(c.given, c.inherits).edition) > 0 {
			lacking = append(lacking, c)
		}
	}
	k.mu.Unlock()
	var some errgroup.Group
	some.SetLimit(mostCards)
	for _, account := range lacking {
		some.Go(func() error {
			reply, err := k.Store.Card(ctx, store.CardRequest{Account: account.ID})
			if err == nil && reply.Card.Edition.Compare(account.edition) < 0 {
				_, _ = k.changeCard(ctx, account, account.effective)
			}
			return nil // who has lost one learns it again
		})
	}
	return some.Wait()
}

// mostCards bounds how many cards are asked for at once.
const mostCards = 16

// learnCards asks for the cards of all accounts for which callers wait, and has the slots reviewed then. Meanwhile these are
// handed over as ever. A store that does not answer tells with the next bookings.
func (k *Keeper) learnCards() {
	k.AskCards(k.Owner.Waiting())
	k.Fleet.LimitsChanged()
}

// AskCards asks for the cards of accounts. A store that does not answer changes nothing.
func (k *Keeper) AskCards(all []*Account) {
	var some errgroup.Group
	some.SetLimit(mostCards)
	for _, account := range all {
		some.Go(func() error { return k.askCardOf(account) })
	}
	_ = some.Wait()
	k.Owner.Tell()
}

// DoubtAfter is how long a limit that was learned may hold all of an account's callers back without any
// response: as long as a response may pause them by default.
const DoubtAfter = time.Hour

// Doubt lets one more call leave, as far as the limits that the program gave allow it, if those that
// responses announced hold the account's callers back: false ones would for as long as a window, with no
// response to say otherwise. The next response confirms what was learned, or another limit.
func (k *Keeper) Doubt(account *Account) {
	if !k.reconcilerFor(account).announcements.Silent(k.Store.Now(), DoubtAfter) {
		return
	}
	account, understood := k.understand(account)
	given := k.Rules().of(account.given, account.inherits).given
	if !understood || account.origin == pace.Configuration || account.origin == pace.Operator || len(given) != len(account.WithoutMargin) {
		return
	}

	limits := slices.Clone(account.WithoutMargin)
	u, _ := k.usageOf(account)
	for i, l := range u.Limits[:min(len(u.Limits), len(limits))] {
		if one := given[i]; limits[i].Max < one.Max && one.Algorithm != limit.GCRA { // a bucket is never spent for long
			limits[i].Max = min(one.Max, max(limits[i].Max, l.Used+1))
		}
	}
	next := account.effective
	next.WithoutMargin, next.origin = limits, pace.Provider
	if k.learn(account, next) {
		k.Owner.Learned(account.ID, account.WithoutMargin, limits, "no response came for long, and one call tries whether the provider still says so")
		k.Owner.Tell()
	}
}

// usageOf returns what is used of an account's limits, and last of its pace; false if the store does not answer soon.
func (k *Keeper) usageOf(account *Account) (u store.Usage, known bool) {
	one, err := store.NewAccounts(account.Account)
	if err != nil {
		return u, false
	}
	ctx, stop := k.Store.Soon(context.Background())
	defer stop()
	all, err := k.Store.Usage(ctx, one)
	if err != nil || len(all) != 1 || len(all[0].Limits) != len(account.Limits) {
		return u, false
	}
	return all[0], true
}

// AskWhatDiffers asks for the cards of accounts and meters, of some at least, if workers of a higher Revision may have given them other
// limits: a process that books nothing hears of none, and no booking tells a meter's.
func (k *Keeper) AskWhatDiffers(l *List, meters []*Account) {
	if k.Fleet.State().Status.Revision <= k.Revision {
		return
	}
	for i := range l.Each {
		meters = append(meters, &l.Each[i])
	}
	k.AskCards(meters[:min(len(meters), 4*mostCards)])
}
