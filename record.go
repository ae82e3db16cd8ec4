package ration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/durable"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// recordWithin bounds how long a caller that has its response waits until the log is corrected, which goes on all the same.
const recordWithin = 20 * time.Millisecond

// recordSends corrects the log after a request was sent late, or several times: the connection
// took long to make, the machine was busy, or http.Transport sent the request again by
// itself. The request was sent this many times, so long after its slot. If it was late, its
// slot is cancelled in the same step; if not, the slot counts for one of the times. If the
// store fails, the log keeps the slot, and only Margin separates the request from those of
// the next window.
func (g *Grant) recordSends(ctx context.Context, after time.Duration, times int, isLate bool) {
	sent, recorded := *g, make(chan struct{})
	g.replaced = g.replaced || isLate
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(recorded)
		sent.recordSendsNow(ctx, after, times, isLate)
	}()
	timer := time.NewTimer(recordWithin)
	defer timer.Stop()
	select {
	case <-recorded:
	case <-timer.C:
	}
}

// recordSendsNow is recordSends, and returns when the store has answered.
func (g *Grant) recordSendsNow(ctx context.Context, after time.Duration, times int, isLate bool) {
	if !isLate {
		times--
	}
	slot := g.Slot.Add(max(0, after) + time.Microsecond - 1).Truncate(time.Microsecond)
	charged := g.charges()
	for i := range charged {
		charged[i].Units *= times
	}
	if err := g.recordAnew(ctx, slot, charged, isLate); err != nil {
		g.budget.tell(Event{Kind: NotRecorded, Account: g.account.ID, Count: times, Err: err})
	}
}

// recordAnew records units at a slot, with the account's last. With instead they replace those of the grant, whose booking
// is cancelled.
func (g *Grant) recordAnew(ctx context.Context, slot time.Time, charged []limits.Charge, instead bool) error {
	b := g.budget
	// The record that cancels the slot comes last, when the others are made: until then both count. Cancelled before the
	// units of a meter are recorded anew, it would leave room there for another caller.
	for i, o := range charged {
		r := store.RecordRequest{ID: store.NewBookingID(), Budget: b.Name, Account: o.Account.Account, Scopes: g.scopes,
			Spent: []store.Spending{{Slot: slot, Cost: o.Units}}}
		if instead && i == len(charged)-1 {
			r.Replaces = g.booking()
		}
		if err := b.durable.Record(ctx, r); err != nil {
			return err
		}
	}
	if b.durable.Local {
		return nil
	}
	for _, o := range charged {
		b.durable.Journal.Add(o.Account, nil, &store.Booking{Slot: slot, Now: g.now, Cost: o.Units}, slot)
	}
	if instead { // if the store loses its log meanwhile both are recorded, and not none
		_ = b.durable.Cancel(ctx, durable.Cancelled[*limits.Account]{Booking: g.booking(), Charges: g.charges(), Replaced: true})
	}
	return nil
}

// RecordUnits records how many units a request has used, where that is known only when it is answered, as the tokens of an
// answer are. units are as [WithUnits] has them; a unit that they lack stays as it was booked. From then on the store counts
// what was used at the grant's Slot, less or more: bookings that come get the difference, and callers that wait already keep
// their slots. Call it once for a grant, whenever its use is known: after the window it changes nothing.
//
// Of a request that was sent too late for its slot nothing becomes free, and of one that was booked while the store was down
// nothing is recorded. An error is about the units, the context's, or a [*StoreError].
func (g Grant) RecordUnits(ctx context.Context, units map[string]int) error {
	if g.budget == nil || g.account == nil {
		return errors.New("ration: RecordUnits: the grant is zero")
	}
	used, more := slices.Clone(g.units), make([]int, len(g.units))
	known := make(map[string]bool)
	less := false
	for i := range g.accounts.Meters {
		unit := g.accounts.Meters[i].Unit
		n, told := units[unit]
		if known[unit] = true; unit == "" || !told {
			continue
		}
		if n < 0 || n > limit.MaxUnits {
			return fmt.Errorf("ration: RecordUnits: %d %s: there must be 0 to %d", n, unit, limit.MaxUnits)
		}
		used[i], more[i] = n, max(0, n-g.units[i])
		less = less || n < g.units[i]
	}
	for unit := range units {
		if unit == "" || !known[unit] {
			return fmt.Errorf("ration: RecordUnits: no limit of budget %q counts %q", g.budget.Name, unit)
		}
	}
	switch {
	case g.offline:
		return nil
	case less && !g.replaced:
		return g.recordAnew(ctx, g.Slot, append(g.accounts.Beside(g.account.ID, g.Cost, used), limits.Charge{Account: g.account, Units: g.Cost}), true)
	}
	var beyond []limits.Charge
	for i, n := range more {
		if n > 0 {
			beyond = append(beyond, limits.Charge{Account: g.accounts.Meter(i, g.account.ID), Units: n})
		}
	}
	return g.recordAnew(ctx, g.Slot, beyond, false)
}
