package ration

import (
	"context"
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
	booking  Booking
	accounts *Accounts
}

// Cancel hands the grant's units back to the fleet. It says that nothing was
// sent: after a request that may have reached the provider it would overspend.
// To cancel twice is to cancel once; to cancel the zero Grant is nothing.
func (g Grant) Cancel(ctx context.Context) error {
	if g.budget == nil {
		return nil
	}
	return g.budget.handBack(ctx, g.booking, g.accounts)
}
