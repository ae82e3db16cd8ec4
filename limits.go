package ration

import (
	"context"
	"errors"
	"fmt"

	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

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
func (b *Budget) SetLimits(all ...limit.Limit) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := limit.Validate(all); err != nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	if calls, _ := limit.Split(all); calls == nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, limits.ErrNoCalls)
	}
	ctx, stop := b.durable.Soon(context.Background())
	defer stop()
	err := b.keeper.Set(ctx, all)
	if _, is := errors.AsType[*store.StoreError](err); err != nil && !is {
		err = &store.StoreError{Op: "card", Err: err} // it did not answer soon
	}
	if err != nil {
		return fmt.Errorf("ration: budget %q: it is not sure that its limits were changed, so try again: %w", b.Name, err)
	}
	return nil
}

// call returns what the grant's call was charged to.
func (g *Grant) call() limits.Call {
	return limits.Call{Account: g.account, List: g.accounts, Slot: g.Slot, Waited: g.Waited > 0, Cost: g.Cost, Units: g.units, Total: g.total, Scopes: g.scopes}
}

// noteServed has a higher pace tried of what a call was charged to that was served, if any is kept to.
func (b *Budget) noteServed(g *Grant) {
	if !b.keeper.Adopts.Load() || g.offline || g.account == nil {
		return
	}
	c := g.call()
	b.keeper.Served(&c)
}

// Overridden implements limits.Owner.
func (o wired) Overridden(account string, ours, theirs []limit.Limit) {
	o.b.emit(Event{Kind: LimitsOverridden, Account: account, Ours: ours, Theirs: theirs})
}

// Learned implements limits.Owner.
func (o wired) Learned(account string, ours, theirs []limit.Limit, cause string) {
	o.b.emit(Event{Kind: LimitLearned, Account: account, Ours: ours, Theirs: theirs, Cause: cause})
}

// Unclear implements limits.Owner.
func (o wired) Unclear(account string, announced int, ours []limit.Limit) {
	o.b.emit(Event{Kind: LimitUnclear, Account: account, Count: announced, Ours: ours})
}

// External implements limits.Owner.
func (o wired) External(account string, units int) {
	o.b.emit(Event{Kind: ExternalUsage, Account: account, Count: units})
}

// Paced implements limits.Owner.
func (o wired) Paced(account string, ours, pace []limit.Limit, refusals int) {
	e := Event{Kind: PaceChanged, Account: account, Ours: ours, Theirs: pace}
	if len(pace) > 0 {
		e.Count, e.Cause = refusals, "the provider refuses calls that the limits allow"
	}
	o.b.emit(e)
}

// Waiting implements limits.Owner.
func (o wired) Waiting() []*limits.Account { return o.b.lines.accounts() }

// InFlight implements limits.Owner.
func (o wired) InFlight() int { return int(o.b.inFlight.Load()) }
