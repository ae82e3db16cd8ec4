package ration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration/limit"
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
		}
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

// Settle says what a request has really spent, where that is known only when it is answered: the tokens of an answer, or that it
// was free. units has so many of each unit, as [WithUnits] has them, and of "" the cost; what it lacks stays as it was booked.
// From then on the store counts that at the grant's Slot, for the account, its units and shared accounts in one step. What was booked
// too much is free at once, also for callers that wait.
//
// It may be called again, with the same or with other numbers, for a minute; later the second call may count twice. After the window
// it changes nothing. Of a request that was booked while the store was down nothing is recorded. A [Transport] settles by itself what
// its Provider can read. An error is about the units, the context's, or a [*StoreError].
func (g Grant) Settle(ctx context.Context, units map[string]int) error {
	cost, used, err := g.spent(units)
	if err != nil || g.offline || len(units) == 0 {
		return err
	}
	return g.correct(ctx, cost, used, time.Time{})
}

// spent returns what a request has spent if that is so many of those units, and otherwise as it was booked.
func (g *Grant) spent(units map[string]int) (cost int, used []int, err error) {
	if g.budget == nil || g.account == nil {
		return 0, nil, errors.New("ration: Settle: the grant is zero")
	}
	cost, used = g.Cost, slices.Clone(g.units)
	known := map[string]bool{"": true}
	if n, told := units[""]; told {
		cost = n
	}
	for i := range g.accounts.Meters {
		unit := g.accounts.Meters[i].Unit
		known[unit] = true
		if n, told := units[unit]; told {
			used[i] = n
		}
	}
	for unit, n := range units {
		switch {
		case !known[unit]:
			return 0, nil, fmt.Errorf("ration: Settle: no limit of budget %q counts %q", g.budget.Name, unit)
		case n < 0 || n > limit.MaxUnits:
			return 0, nil, fmt.Errorf("ration: Settle: %d %s: there must be 0 to %d", n, cmp.Or(unit, "units of cost"), limit.MaxUnits)
		}
	}
	return cost, used, nil
}
