package ration

import (
	"context"
	"time"
)

// A pause that one process has made must hold back callers of another who have
// booked before it and are asleep. They learn of it without a connection of
// their own: every booking's answer carries the version of the budget's status,
// and a caller that wakes when nothing was heard for confirmAfter asks.

// noticed compares a booking's version with what is known.
func (b *Budget) noticed(ctx context.Context, booking Booking) {
	b.mu.Lock()
	current := booking.Version == b.known.Version
	if current {
		b.seen = time.Now()
	}
	b.mu.Unlock()
	if !current {
		b.refresh(ctx)
	}
}

// pausedUntil returns the end of the account's pause, as known no longer than
// confirmAfter ago. If the store does not answer it is what was known before:
// the slot was booked, and stands.
func (b *Budget) pausedUntil(ctx context.Context, account string) time.Time {
	b.mu.Lock()
	stale := time.Since(b.seen) > confirmAfter
	b.mu.Unlock()
	if stale {
		b.refresh(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known.PausedUntil[account]
}

// refresh asks the store, once for all callers that want to know.
func (b *Budget) refresh(ctx context.Context) {
	_, _, _ = b.asking.Do("", func() (any, error) {
		// One caller's cancellation must not harm the others.
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), handBackWithin)
		defer stop()
		status, err := b.Store.Status(ctx, StatusRequest{Budget: b.Name, Now: b.clock()})
		if err != nil {
			return nil, nil // asked again by the next caller
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.known, b.seen = status, time.Now()
		return nil, nil
	})
}
