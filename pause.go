package ration

import (
	"context"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// How far apart slots are behind a pause that was cut to MaxPause, of an account and of all: one request tries whether it is
// over, and the next leaves so much later if there is no response until then. A pause of all accounts cannot be ended by
// itself once it was tried, so those who have waited for it keep that distance.
const (
	triedFor    = time.Minute
	allTriedFor = 2 * time.Second
)

// keyTriedFor is how long the others wait for the request that tries such a pause of a part.
const keyTriedFor = 10 * time.Second

// claimTrial reports whether the caller is the one of the fleet that tries whether the pause of a part is over, whose end has
// come: the others wait until it may have heard.
func (b *Budget) claimTrial(ctx context.Context, over cooldown.Pause) bool {
	ctx, stop := b.durable.Soon(ctx)
	defer stop()
	return b.fleet.ClaimTrial(ctx, store.PauseRequest{Account: over.Account, Key: string(over.Key), For: keyTriedFor, Replaces: over.Until,
		Cause: causeFor("one request tries whether this is over: " + over.Cause)})
}

// mostSpacing is how far apart slots are at most behind other pauses.
const mostSpacing = time.Second

// afterTrial is how long a request rests that has tried such a pause in vain: the others cancel their slots before it books
// again, or it would get the same as one of them.
const afterTrial = time.Second

// spacingAfterPause returns the time between the slots of callers that have waited for the
// end of a pause. They leave ten times as fast as the limits allow in the long run, without
// a burst.
func spacingAfterPause(limits []limit.Limit) time.Duration {
	least := mostSpacing
	for _, l := range limits {
		least = min(least, l.Window/time.Duration(l.Max)/10)
	}
	return least.Truncate(time.Microsecond)
}

// sharedScopes returns the scope that each shared account stands for.
func (b *Budget) sharedScopes() []cooldown.Shared {
	all := make([]cooldown.Shared, len(b.Shared))
	for i, account := range b.Shared {
		all[i] = cooldown.Shared{ID: account.ID, Scope: account.Scope}
	}
	return all
}
