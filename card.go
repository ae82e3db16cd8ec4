package ration

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

// askCard asks the store for a card, or has it changed.
func (b *Budget) askCard(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	return b.durable.Card(ctx, r)
}

// SetLimits changes the budget's limits for the whole fleet, while requests are booked: it returns when the store has
// them, and no worker books under others from then on. No log is lost. If the store does not answer within 250 ms, or longer
// if it is far away, the error is a [*StoreError], and they may have been changed all the same: call it again.
//
// Callers that wait cancel their slots and book again, about in their order, so that a
// lower Max holds for them too and a higher one helps them within a second.
//
// The limits are in force as long as the store has anything of the budget, which is a day longer than its longest window, or any
// worker runs, and until SetLimits is called again or a program begins with a higher Budget.Revision. The provider can
// only lower them: what it announces beyond them counts for nothing.
//
// Name at least one limit of calls. A Unit, or a key (Per), that none of the limits counts keeps those that Budget.Limits give it.
//
// A limit with another Window, Algorithm or Scope is another limit. An exact log serves
// it at once, because the log stays; any other count begins at zero. Tokens with Limits
// of their own keep them, and what the provider announced of them; [Pool.Add] replaces those.
func (b *Budget) SetLimits(limits ...limit.Limit) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := limit.Validate(limits); err != nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	if calls, _ := limit.Split(limits); calls == nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, errNoCalls)
	}
	ctx, stop := b.durable.Soon(context.Background())
	defer stop()
	r := b.currentRules()
	// Each turn but the first is behind somebody else's change.
	for known := (store.Edition{Revision: r.edition.Revision, Version: r.known}); ; {
		reply, err := b.putLimits(ctx, known, limits)
		if err != nil {
			if _, is := errors.AsType[*store.StoreError](err); !is {
				err = &store.StoreError{Op: "card", Err: err} // it did not answer soon
			}
			return fmt.Errorf("ration: budget %q: it is not sure that its limits were changed, so try again: %w", b.Name, err)
		}
		if reply.Changed {
			b.tell()
			return nil
		}
		known = reply.Card.Edition
	}
}

// putLimits has the store keep an operator's limits as the budget's card, if that is of no later edition.
func (b *Budget) putLimits(ctx context.Context, known store.Edition, limits []limit.Limit) (store.CardReply, error) {
	all, err := b.withMargins(limits)
	if err != nil {
		return store.CardReply{}, err
	}
	why := pace.Why{Origin: pace.Operator}
	reply, err := b.askCard(ctx, store.CardRequest{Known: known, Limits: all, Why: why.Text()})
	if err == nil {
		b.mu.Lock()
		news := b.noteCard(reply.Card, reply.Changed)
		b.mu.Unlock()
		if news {
			b.fleet.LimitsChanged()
		}
	}
	return reply, err
}

// understand returns the account under its effective limits, and whether this worker knows why they are in force. If another
// worker has changed them the store tells, unless it does not answer soon.
func (b *Budget) understand(account *budgetAccount) (now *budgetAccount, understood bool) {
	if now = b.inForce(account); now.origin != pace.UnknownOrigin {
		return now, true
	}
	_ = b.askCardOf(now)
	b.tell()
	now = b.inForce(account)
	return now, now.origin != pace.UnknownOrigin
}

// askCardOf asks the store for the account's card, once for all who want it at once, unless the store does not answer soon.
func (b *Budget) askCardOf(account *budgetAccount) error {
	return b.asking.Do(context.Background(), "card of "+account.ID, func() error {
		ctx, stop := b.durable.Soon(context.Background())
		defer stop()
		return b.refreshCard(ctx, account)
	})
}

// refreshCard asks the store for the account's card.
func (b *Budget) refreshCard(ctx context.Context, account *budgetAccount) error {
	asked := time.Now()
	reply, err := b.askCard(ctx, store.CardRequest{Account: account.ID})
	if err == nil {
		b.noteAccountCard(account, reply.Card, asked)
	}
	return err
}

// noteAccountCard takes in an account's card, with its Why.
func (b *Budget) noteAccountCard(account *budgetAccount, card store.Card, asked time.Time) {
	b.mu.Lock()
	before := b.effectiveAccount(account)
	now, news := b.adopt(account, card, true, asked)
	b.mu.Unlock()
	if news {
		b.emit(Event{Kind: LimitsOverridden, Account: account.ID, Ours: before.Limits, Theirs: now.Limits})
	}
}

// changeCard has the fleet keep to other limits of an account, if its effective ones are of the edition still. It reports whether
// it did; if not, the ones in force are known then.
func (b *Budget) changeCard(ctx context.Context, account *budgetAccount, next effective) (changed bool, err error) {
	under, err := b.accountUnder(account.ID, next, account.metered)
	if err != nil {
		return false, err
	}
	why := pace.Why{Origin: next.origin, Pace: next.pace}
	asked := time.Now()
	reply, err := b.askCard(ctx, store.CardRequest{Account: account.ID, Known: account.edition, KnownCard: b.currentRules().known,
		Limits: under.Limits, Why: why.Text()})
	switch {
	case err != nil:
		return false, err
	case reply.Behind:
		return false, b.fleet.Refresh(ctx)
	case !reply.Changed:
		b.noteAccountCard(account, reply.Card, asked)
		return false, nil
	}
	under.edition, under.Label, under.isMeter = reply.Card.Edition, account.Label, account.isMeter
	under.Account.Edition = reply.Card.Edition
	if !slices.Equal(under.limits, account.limits) {
		under.since = time.Now()
	}
	b.mu.Lock()
	l := b.learnedOf(account)
	late := l.card != nil && l.card.edition.Compare(under.edition) > 0 // a booking has told a later one meanwhile
	if !late {
		l.card = &under
		b.adopts.Store(true)
	}
	b.mu.Unlock()
	if !late {
		b.fleet.LimitsChanged()
	}
	return true, nil
}

// learn has the fleet keep to limits of an account that follow from what the provider has announced or refused, and
// reports whether it did. They follow from the account's limits: if others are in force by now they are of no use. If the store
// does not answer the next response tries again.
func (b *Budget) learn(account *budgetAccount, next effective) (changed bool) {
	now := b.inForce(account)
	if limit.Validate(next.limits) != nil || now.edition != account.edition || now.origin == pace.UnknownOrigin ||
		slices.Equal(next.limits, now.limits) && next.pace == now.pace {
		return false // or the provider announced nonsense
	}
	ctx, stop := b.durable.Soon(context.Background())
	defer stop()
	changed, _ = b.changeCard(ctx, now, next)
	b.tell()
	return changed
}

// restoreLimits has the fleet go back to the limits that this worker was given for the accounts, if others are in force. An
// error is the store's.
func (b *Budget) restoreLimits(ctx context.Context, accounts []*budgetAccount) error {
	defer b.tell()
	var failed []error
	for _, account := range accounts {
		failed = append(failed, b.restoreAccount(ctx, account, false))
	}
	return errors.Join(failed...)
}

// restoreAccount is restoreLimits for one account. If the program has just given it other limits the store may know it
// under those before.
func (b *Budget) restoreAccount(ctx context.Context, account *budgetAccount, overrides bool) error {
	for {
		now := b.inForce(account)
		given := b.currentRules().of(account.given, account.inherits)
		if !overrides && now.pace == nil && slices.Equal(now.limits, given.limits) {
			return nil
		}
		given.edition = now.edition
		if changed, err := b.changeCard(ctx, now, given); changed || err != nil {
			return err
		}
	}
}

// overrides notes that the program has given a token other limits, of which the store is to be told.
func (b *Budget) overrides(t *Token) {
	accounts, err := b.accountsOf(t)
	if err != nil {
		return // who books with the token gets it
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learnedOf(&accounts.accounts[0]).overrides++
}

// tellOverride has the fleet keep to the limits that the program has given a token.
func (b *Budget) tellOverride(t *Token) error {
	defer b.tell()
	accounts, err := b.accountsOf(t)
	if err != nil {
		return err
	}
	return b.putOverride(&accounts.accounts[0])
}

// putOverride is tellOverride for the token's account, unless the store was told already.
func (b *Budget) putOverride(account *budgetAccount) error {
	b.mu.Lock()
	l := b.learnedOf(account)
	n, told := l.overrides, l.told
	b.mu.Unlock()
	if told >= n {
		return nil
	}
	return b.asking.Do(context.Background(), fmt.Sprint("override ", n, " of ", account.ID), func() error {
		ctx, stop := b.durable.Soon(context.Background())
		defer stop()
		err := b.restoreAccount(ctx, account, true)
		if err == nil {
			b.mu.Lock()
			l.told = max(l.told, n)
			b.mu.Unlock()
		}
		return err
	})
}

// isOverridden reports whether a booking has failed because the store was not told of an account's new limits yet, and knows
// them now.
func (b *Budget) isOverridden(err error, accounts *accountList) bool {
	differ, is := errors.AsType[*store.LimitsError](err)
	if !is {
		return false
	}
	account := accounts.find(differ.Account)
	if account == nil {
		return false
	}
	b.mu.Lock()
	l := b.learnedOf(account)
	overridden, known := l.overrides > 0, l.card != nil
	if overridden && !known {
		l.told = 0 // or the account was forgotten meanwhile
	}
	b.mu.Unlock()
	return overridden && b.putOverride(account) == nil
}

// agreeOnCards gives the store back the cards that it has lost, and asks for those that were changed if the status, which is new,
// does not tell whose.
func (b *Budget) agreeOnCards(ctx context.Context, r *limitRules, status *store.Status, lost bool) error {
	known := &b.fleet.State().Status
	newest, highest := known.NewestCard, max(known.Revision, b.Revision)
	for _, one := range status.Cards {
		newest = max(newest, one.Card.Version)
	}
	if status.Revision > highest || status.NewestCard > newest {
		go b.learnCards()
	}
	return b.giveBackCards(ctx, r, status.Card.Version, lost)
}

// mostCards bounds how many cards are asked for at once.
const mostCards = 16

// learnCards asks for the cards of all accounts for which callers wait, and has the slots reviewed then. Meanwhile these are
// handed over as ever. A store that does not answer tells with the next bookings.
func (b *Budget) learnCards() {
	b.askCards(b.lines.accounts())
	b.fleet.LimitsChanged()
}

// askCards asks for the cards of accounts. A store that does not answer changes nothing.
func (b *Budget) askCards(all []*budgetAccount) {
	var some errgroup.Group
	some.SetLimit(mostCards)
	for _, account := range all {
		some.Go(func() error { return b.askCardOf(account) })
	}
	_ = some.Wait()
	b.tell()
}

// giveBackCards has the store keep again the cards that it has lost: that of the budget, if it has another than the rules, with
// which it was asked, and after a loss those of accounts.
func (b *Budget) giveBackCards(ctx context.Context, r *limitRules, kept int64, lost bool) error {
	switch {
	case kept >= r.known:
	case r.edition.Version == 0:
		b.rules.CompareAndSwap(r, b.configuredRules(kept)) // the card counts for nothing here
	default:
		if _, err := b.putLimits(ctx, r.edition, r.all()); err != nil {
			return err
		}
	}
	if !lost {
		return nil
	}
	var known []*budgetAccount
	b.mu.Lock()
	for _, l := range b.learned.All() {
		// One that the budget's card has replaced stays so.
		if c := l.card; c != nil && c.edition.Version > 0 && c.origin != pace.UnknownOrigin && c.edition.Compare(r.of(c.given, c.inherits).edition) > 0 {
			known = append(known, c)
		}
	}
	b.mu.Unlock()
	var some errgroup.Group
	some.SetLimit(mostCards)
	for _, account := range known {
		some.Go(func() error {
			reply, err := b.askCard(ctx, store.CardRequest{Account: account.ID})
			if err == nil && reply.Card.Edition.Compare(account.edition) < 0 {
				_, _ = b.changeCard(ctx, account, account.effective)
			}
			return nil // who has lost one learns it again
		})
	}
	return some.Wait()
}

// doubtAfter is how long a limit that was learned may hold all of an account's callers back without any
// response: as long as a response may pause them by default.
const doubtAfter = defaultMaxPause

// doubtLearned lets one more call leave, as far as the limits that the program gave allow it, if those that
// responses announced hold the account's callers back: false ones would for as long as a window, with no
// response to say otherwise. The next response confirms what was learned, or another limit.
func (b *Budget) doubtLearned(account *budgetAccount) {
	if !b.reconcilerFor(account).announcements.Silent(b.durable.Now(), doubtAfter) {
		return
	}
	account, understood := b.understand(account)
	given := b.currentRules().of(account.given, account.inherits).given
	if !understood || account.origin == pace.Configuration || account.origin == pace.Operator || len(given) != len(account.limits) {
		return
	}
	limits := slices.Clone(account.limits)
	u, _ := b.usageOf(account)
	for i, l := range u.Limits[:min(len(u.Limits), len(limits))] {
		if one := given[i]; limits[i].Max < one.Max && one.Algorithm != limit.GCRA { // a bucket is never spent for long
			limits[i].Max = min(one.Max, max(limits[i].Max, l.Used+1))
		}
	}
	next := account.effective
	next.limits, next.origin = limits, pace.Provider
	if b.learn(account, next) {
		b.tell(Event{Kind: LimitLearned, Account: account.ID, Ours: account.limits, Theirs: limits,
			Cause: "no response came for long, and one call tries whether the provider still says so"})
	}
}

// usageOf returns what is used of an account's limits, and last of its pace; false if the store does not answer soon.
func (b *Budget) usageOf(account *budgetAccount) (u store.Usage, known bool) {
	one, err := store.NewAccounts(account.Account)
	if err != nil {
		return u, false
	}
	ctx, stop := b.durable.Soon(context.Background())
	defer stop()
	all, err := b.durable.Usage(ctx, one)
	if err != nil || len(all) != 1 || len(all[0].Limits) != len(account.Limits) {
		return u, false
	}
	return all[0], true
}
