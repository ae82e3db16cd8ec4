package ration

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/store"
)

// recordWithin bounds how long a caller that has its response waits until the log is corrected, which goes on all the same.
const recordWithin = 20 * time.Millisecond

// soon calls a function that corrects the log, and waits for it no longer than recordWithin. What it has made of the grant counts if
// it was in time. The store knows it in any case, for a minute.
func (g *Grant) soon(ctx context.Context, correct func(context.Context, *Grant)) {
	corrected, done := *g, make(chan struct{})
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(done)
		correct(ctx, &corrected)
	}()
	timer := time.NewTimer(recordWithin)
	defer timer.Stop()
	select {
	case <-done:
		*g = corrected
	case <-timer.C:
	}
}

// recordSends corrects the log after a request was sent late, or several times: the connection
// took long to make, the machine was busy, or http.Transport sent the request again by
// itself. The request was sent this many times, so long after its slot. If it was late it counts when it was sent. If the
// store fails, the log keeps the slot, and only Margin separates the request from those of
// the next window.
func (g *Grant) recordSends(ctx context.Context, after time.Duration, times int, isLate bool) {
	slot := time.Time{}
	if isLate {
		slot = g.Slot.Add(max(0, after) + time.Microsecond - 1).Truncate(time.Microsecond)
	}
	units := slices.Clone(g.units)
	for i := range units {
		units[i] *= times
	}
	g.soon(ctx, func(ctx context.Context, g *Grant) {
		if err := g.correct(ctx, g.Cost*times, units, slot); err != nil {
			g.budget.tell(Event{Kind: NotRecorded, Account: g.account.ID, Count: times, Err: err})
			return
		}
		g.sends = times
	})
}

// correct has the store count what a call has spent, and when it was sent; zero: as it is counted now.
func (g *Grant) correct(ctx context.Context, cost int, units []int, slot time.Time) error {
	r := store.CorrectRequest{Booking: g.booking(), Cost: cost, Units: units, Slot: slot}
	corrected, err := g.budget.durable.Correct(ctx, r, g.charges(), g.account, g.accounts.Beside(g.account.ID, cost, units))
	if err != nil {
		return err
	}
	g.Cost, g.units, g.entry, g.counted = cost, units, corrected.Entry, corrected.Slot
	return nil
}
