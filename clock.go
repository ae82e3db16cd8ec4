package ration

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/store"
)

// learnClock asks the store for the time, if this process has never heard it. All callers wait for one who
// asks. An error is that of a store that does not answer: it would not answer a booking either. If it refuses, the
// booking says why.
//
// It asks by the request that comes next, but that nothing is booked: so its script is there, and the process knows what an answer to
// it takes.
func (b *Budget) learnClock(ctx context.Context, accounts []budgetAccount, r *store.BookRequest) error {
	first := *r // the request itself stays on its caller's stack
	err := b.askOnce(ctx, "clock", func() error {
		if b.clocks.Learned.Load() { // by a caller before this one
			return nil
		}
		hurried := slices.MinFunc(accounts, func(a, b budgetAccount) int { return cmp.Compare(a.tolerance, b.tolerance) })
		first.MaxWait = store.Never
		return b.clocks.Learn(hurried.tolerance, func() error {
			first.ID = store.NewBookingID()
			asked := time.Now()
			answer, err := asks(context.WithoutCancel(ctx), b, "book", b.Store.Book, first)
			if err != nil {
				return err
			}
			arrived := time.Now()
			_, now := b.clocks.Place(answer.Now, asked, arrived)
			b.lead.Note(arrived.Sub(now), 0, hurried.leads, arrived)
			return nil
		})
	})
	if isTemporary(err) {
		return err
	}
	return nil
}

// estimatedNow returns what the store's clock stands at, at least, as its answers tell; zero: it
// has never answered.
func (b *Budget) estimatedNow() time.Time {
	least, _ := b.clocks.Reads(time.Now())
	return least
}

// storeNow returns the time on the store's clock, as estimated from its answers, or on this
// process's clock if it has never answered.
func (b *Budget) storeNow() time.Time {
	if now := b.estimatedNow(); !now.IsZero() {
		return now
	}
	return time.Now()
}
