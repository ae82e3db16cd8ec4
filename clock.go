package ration

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/store"
)

// The store's clock decides, and a process knows it from the store's replies alone: the store read its clock
// after it was asked and before its reply arrived. How late a caller leaves after its slot is known no
// better than that. So a process asks for the time before its first booking: a first reply is slow, because
// it makes a connection and loads a script, and a caller that leaves with it would be late by all of that
// and not know it.

const (
	// clockQuestions is how often a process asks at most. The quickest reply counts.
	clockQuestions = 8
	// clockKnown is how quick a reply must be for the process to ask no more, or clockShare of how late a caller may leave.
	clockKnown, clockShare = time.Millisecond, 4
	// clockPatience bounds how long the process goes on asking a store that is far away, or busy.
	clockPatience = 250 * time.Millisecond
)

// learnClock asks the store for the time, if this process has never heard it. All callers wait for one who
// asks. An error is that of a store that does not answer: it would not answer a booking either. If it refuses, the
// booking says why.
func (b *Budget) learnClock(ctx context.Context, accounts []budgetAccount, r *store.BookRequest) error {
	first := *r // the request itself stays on its caller's stack
	err := b.askOnce(ctx, "clock", func() error {
		if b.clockLearned.Load() { // by a caller before this one
			return nil
		}
		hurried := slices.MinFunc(accounts, func(a, b budgetAccount) int { return cmp.Compare(a.tolerance, b.tolerance) })
		err := b.askTime(context.WithoutCancel(ctx), &hurried, first)
		b.clockLearned.Store(err == nil)
		return err
	})
	if isTemporary(err) {
		return err
	}
	return nil
}

// askTime asks the store for the time, until a reply comes as quickly as an account needs. It asks by the request that comes
// next, but that nothing is booked: so its script is there, and the process knows what an answer to it takes.
func (b *Budget) askTime(ctx context.Context, account *budgetAccount, r store.BookRequest) error {
	begun, enough := time.Now(), max(clockKnown, account.tolerance/clockShare)
	r.MaxWait = store.Never
	for range clockQuestions {
		r.ID = store.NewBookingID()
		asked := time.Now()
		answer, err := asks(ctx, b, "book", b.Store.Book, r)
		if err != nil {
			return err
		}
		arrived := time.Now()
		_, now := b.clocks.Place(answer.Now, asked, arrived)
		b.lead.Note(arrived.Sub(now), 0, account.leads, arrived)
		quickest := b.away.Note(arrived.Sub(asked), arrived)
		if quickest <= enough || arrived.Sub(begun) > clockPatience {
			break
		}
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
