package main

import (
	"context"
	"fmt"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/store"
)

// withCancelled is a booking on a pool whose quota is spent, with a cancelled slot of one unit
// on every account.
func (b *bench) withCancelled(name string, cost int, accounts []ration.Account) racer {
	r := b.spent(name, cost, accounts...)
	ready := r.ready
	r.ready = func(ctx context.Context) (peers.Work, error) {
		work, err := ready(ctx)
		if err != nil {
			return nil, err
		}
		list, kept, err := b.store(accounts)
		if err != nil {
			return nil, err
		}
		return work, cancelOneEach(ctx, kept, list, len(accounts))
	}
	return r
}

// cancelOneEach cancels a slot ahead of each account of a spent pool. It is not at the log's
// end, where a cancelled entry is removed: another is booked behind it.
func cancelOneEach(ctx context.Context, kept ration.Store, list *store.Accounts, accounts int) error {
	var first []store.Booking
	booked := make(map[string]int) // by account
	for behind := 0; behind < accounts; {
		booking, err := kept.Book(ctx, store.BookRequest{
			ID: store.NewBookingID(), Budget: peers.Budget, Accounts: list, Cost: 1, MaxWait: store.Forever,
		})
		if err != nil || !booking.Booked || !booking.Slot.After(booking.Now) {
			return fmt.Errorf("book ahead: booked %t at %v: %w", booking.Booked, booking.Slot, err)
		}
		switch booked[booking.Account]++; booked[booking.Account] {
		case 1:
			first = append(first, booking)
		case 2:
			behind++
		}
	}
	for _, booking := range first {
		if err := kept.Cancel(ctx, store.CancelRequest{Booking: booking}); err != nil {
			return err
		}
	}
	return nil
}
