package ration

import (
	"context"
	"time"
)

// A pause that one process has made must hold back callers of another who have
// booked before it and are asleep. They learn of it without a connection of
// their own: every booking's answer carries the version of the budget's status,
// and a caller that wakes when nothing was heard for confirmAfter asks.

const confirmAfter = time.Second

// answered takes in what the answer to a booking on the at-th account tells beside
// the slot, and when it came on this process's clock.
func (b *Budget) answered(ctx context.Context, booking *Booking, accounts *Accounts, at int, arrived time.Time) {
	account := &accounts.list[at]
	if !b.forgets() && booking.Version == b.version.Load() && booking.Ruling.Limits == nil {
		return // there is nothing to be told, and nothing to be kept in case of a loss
	}
	b.mu.Lock()
	b.answer, b.arrived = booking.Now, arrived
	if booking.Now.After(b.last) {
		b.last = booking.Now
	}
	if booking.Booked && b.forgets() {
		b.own.add(account, booking, booking.Now)
		b.own.share(accounts.shared, booking, booking.Now)
	}
	current := booking.Version == b.known.Version
	if current {
		b.seen = arrived
	}
	if b.Outage == Divide && arrived.Sub(b.told) > heartbeat {
		current = false
	}
	b.mu.Unlock()
	if b.Outage == HoldBack && b.isDown() {
		b.rose(0)
	}
	b.follow(account, booking.Ruling)
	if booking.Stepped != 0 {
		b.notify(Notice{Kind: ClockStepped, By: booking.Stepped})
	}
	if !current {
		_ = b.refresh(ctx) // or the next caller does
	}
}

// stands reports whether a slot that has come may still be used: that none of the
// accounts is paused beyond it, as known no longer than confirmAfter ago, and that
// it is not void. If the store does not answer, what was known before counts: the
// slot was booked.
func (b *Budget) stands(ctx context.Context, booking *Booking, shared []Account) bool {
	b.mu.Lock()
	stale := time.Since(b.seen) > confirmAfter
	b.mu.Unlock()
	if stale && !b.isDown() {
		_ = b.refresh(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	paused := b.known.PausedUntil[booking.Account]
	if until := b.known.PausedUntil[""]; until.After(paused) {
		paused = until
	}
	for _, account := range shared {
		if until := b.known.PausedUntil[account.ID]; until.After(paused) {
			paused = until
		}
	}
	return !paused.After(booking.Slot) && !b.isVoid(booking)
}

// refresh asks the store, once for all callers that want to know, and enters
// again what it has lost.
func (b *Budget) refresh(ctx context.Context) error {
	_, err, _ := b.asking.Do("", func() (any, error) {
		// One caller's cancellation must not harm the others.
		ctx := context.WithoutCancel(ctx)
		brief, stop := soon(ctx)
		defer stop()
		r := StatusRequest{Budget: b.Name, Now: b.clock()}
		if b.Outage == Divide {
			r.Worker = b.process().String()
		}
		status, err := b.Store.Status(brief, r)
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		lost := status.Lost.After(b.mended)
		b.mu.Unlock()
		if lost && b.forgets() {
			if err := b.mend(ctx, status); err != nil {
				return nil, err
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for account, until := range b.known.PausedUntil {
			// A pause that was made while the answer was on its way.
			if until.After(status.Now) && until.After(status.PausedUntil[account]) {
				status.PausedUntil[account] = until
			}
		}
		b.hear(status.Revision)
		b.version.Store(status.Version)
		b.known, b.seen, b.told, b.mended = status, time.Now(), time.Now(), status.Lost
		b.sortPauses()
		return nil, nil
	})
	return err
}

// reckon adds to a request that is asked at an instant of this process's clock what
// a store that forgets can check itself against.
func (b *Budget) reckon(r *BookRequest, asked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Last, r.Mended = b.last, b.mended; b.answer.IsZero() {
		r.Expect = b.clock().Truncate(time.Microsecond)
	} else {
		r.Expect = b.answer.Add(asked.Sub(b.arrived).Truncate(time.Microsecond))
	}
}

// stepFrom is the difference of clocks that is taken for a step.
const stepFrom = time.Second

// compare compares the store's clock, which it said is ahead, with what it must
// stand at by now, and returns by how much it is. If that is no step the question
// was long on its way, and the answer is what is reckoned from.
func (b *Budget) compare(now time.Time) (ahead time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ahead = now.Sub(b.reckonedNow()).Truncate(time.Microsecond); ahead > stepFrom {
		return ahead
	}
	b.answer, b.arrived = now, time.Now()
	return 0
}
