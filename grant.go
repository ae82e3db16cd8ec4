package ration

import (
	"context"
	"slices"
	"time"
)

// A Grant is a booking whose slot has come: its holder may send once. A grant
// is a value.
type Grant struct {
	// Token is the one to send with.
	Token Token
	// Cost is in units.
	Cost int
	// Slot is when it may leave, on the store's clock.
	Slot time.Time
	// Late is how long after its slot the caller woke, on the caller's clock.
	Late time.Duration

	budget   *Budget
	soonest  time.Time // Slot on this process's clock, at the soonest
	id       BookingID
	account  string
	entry    string
	now      time.Time // the store's clock when it was booked
	away     bool      // booked while the store was down
	accounts *Accounts
	scopes   []string
}

// booking returns what of the booking it takes to hand it back.
func (g *Grant) booking() Booking {
	return Booking{ID: g.id, Budget: g.budget.Name, Cost: g.Cost, Booked: true, Account: g.account,
		Slot: g.Slot, Now: g.now, Entry: g.entry, away: g.away}
}

// Cancel hands the grant's units back to the fleet. It says that nothing was
// sent: after a request that may have reached the provider it would overspend.
// To cancel twice is to cancel once; to cancel the zero Grant is nothing.
func (g Grant) Cancel(ctx context.Context) error {
	if g.budget == nil {
		return nil
	}
	return g.budget.handBack(ctx, g.booking(), g.accounts)
}

// handBack hands back a grant on which nothing was sent.
func (g *Grant) handBack() { g.budget.handBackSoon(g.booking(), g.accounts) }

// left corrects the log if the call left more than once, or so much later than its
// slot that a call of the next window could follow it too closely: its connection
// took long to make, or the machine was busy. What it spent is entered where it
// left, and its slot handed back in the same step. If the store fails the slot
// stands, and Margin is what is left between the two calls.
func (g Grant) left(ctx context.Context, at time.Time, times int) {
	account := &g.accounts.list[g.accounts.find(g.account)]
	after, tolerance := at.Sub(g.soonest), account.tolerance()
	b, instead := g.budget, g.booking()
	if tolerance == 0 || after <= tolerance {
		instead = Booking{} // the slot stands for one of them
		times--
	}
	if times < 1 || g.away {
		return
	}
	ctx, stop := soon(ctx)
	defer stop()
	slot := g.Slot.Add(max(0, after) + time.Microsecond - 1).Truncate(time.Microsecond)
	spent := Spending{Slot: slot, Cost: g.Cost * times}
	// The one that hands the slot back comes last: until then both count.
	charged := append(slices.Clone(g.accounts.Shared()), *account)
	for i, account := range charged {
		r := EnterRequest{ID: NewBookingID(), Budget: b.Name, Account: account, Scopes: g.scopes,
			Spent: []Spending{spent}, Now: b.clock()}
		if i == len(charged)-1 {
			r.Instead = instead
		}
		if err := b.Store.Enter(ctx, r); err != nil {
			return
		}
	}
	if !b.forgets() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own.remove(instead, g.accounts.Shared())
	for _, account := range charged {
		b.own.add(&account, &Booking{Slot: spent.Slot, Now: g.now, Cost: spent.Cost}, spent.Slot)
	}
}
