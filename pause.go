package ration

import (
	"context"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// pause has the store pause an account or a key of this budget, and notes the pause here.
func (b *Budget) pause(ctx context.Context, r store.PauseRequest) (time.Time, error) {
	r.Budget, r.Cause = b.Name, causeFor(r.Cause)
	defer b.beginChange()()
	reply, err := asks(ctx, b, "pause", b.Store.Pause, r)
	if err != nil {
		return time.Time{}, err
	}
	if reply.Version == reply.Before {
		r.Cause = "" // a longer pause is in force, by another cause
	}
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isNews(reply) { // or a resumption may have ended it meanwhile
		b.notePause(store.Pause{Account: r.Account, Key: r.Key, Until: reply.Until, Apart: r.Apart, Cause: r.Cause}, b.storeNow())
	}
	b.noteVersion(reply)
	return reply.Until, nil
}

// pauseKey pauses an endpoint, an object or a scope, on one account or, if that is empty, on
// all. If the store does not answer, only this process keeps the pause.
func (b *Budget) pauseKey(ctx context.Context, r store.PauseRequest) {
	if _, err := b.pause(ctx, r); err != nil {
		until := b.storeNow().Add(r.For)
		defer b.tell()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notePause(store.Pause{Account: r.Account, Key: r.Key, Until: until, Cause: r.Cause}, until.Add(-r.For))
	}
}

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
	r := store.PauseRequest{
		Budget: b.Name, Account: over.Account, Key: string(over.Key), For: keyTriedFor, Replaces: over.Until, Cause: "one request tries whether this is over: " + over.Cause,
	}
	r.Cause = causeFor(r.Cause)
	defer b.beginChange()()
	soon, stop := b.soon(ctx)
	defer stop()
	reply, err := asks(soon, b, "pause", b.Store.Pause, r)
	if err != nil || reply.Version == reply.Before && !reply.Until.After(b.storeNow()) {
		return true // or the store has lost it
	}
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	if reply.Until.After(b.storeNow()) {
		b.notePause(store.Pause{Account: r.Account, Key: r.Key, Until: reply.Until, Cause: r.Cause}, b.storeNow())
	}
	b.noteVersion(reply)
	return reply.Version != reply.Before
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
