package ration

import (
	"context"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// If a competing client spends a token too, a window is full earlier than the log says, by
// what that client spends between two responses. Responses report it too late for the
// calls in flight. So while external usage is seen the fleet leaves headroom: it uses less
// than the whole limit, first a little less, and leaves twice as much after each throttled
// response that the log did not foresee. It uses the whole limit again after some windows
// without external usage.

const (
	// firstHeadroom is the share of a limit that is left to competing clients at first, and
	// mostHeadroom the largest.
	firstHeadroom = 0.1
	mostHeadroom  = 0.5
	// After quietWindows windows without external usage the headroom is halved, or given up
	// if it is firstHeadroom.
	quietWindows = 3
)

// withHeadroom returns the limits, each lower by the share that is left to competing clients.
func withHeadroom(limits []limit.Limit, share float64) []limit.Limit {
	all := make([]limit.Limit, len(limits))
	for i, l := range limits {
		l.Max = max(1, int(math.Round(float64(l.Max)*(1-share))))
		if l.Algorithm == limit.GCRA {
			l.Burst = min(max(1, int(math.Round(float64(l.BurstOrDefault())*(1-share)))), l.Max)
		}
		all[i] = l
	}
	return all
}

// headroomOf returns the share of full limits that is left to competing clients under lower
// ones, and whether it can be headroom.
func headroomOf(limits, full []limit.Limit) (share float64, is bool) {
	if len(limits) != len(full) {
		return 0, false
	}
	for i, l := range full {
		if !sameKind(limits[i], l) || limits[i].Max > l.Max {
			return 0, false
		}
		share = max(share, 1-float64(limits[i].Max)/float64(l.Max))
	}
	return share, share <= mostHeadroom
}

// headroom returns the share of the full limits that is left to competing clients.
func (e *effective) headroom() float64 {
	share, _ := headroomOf(e.limits, e.full)
	return share
}

// leaveHeadroom has the fleet leave more of the account's limits to competing clients, because a
// response was throttled for a quota of that scope though the log had capacity left. All calls
// in flight are throttled together: that counts once.
func (b *Budget) leaveHeadroom(scope provider.Scope, account *budgetAccount) {
	r := b.reconcilerOf(account)
	if r == nil || scope.HasShared() {
		return // nothing is known, or another limit than the account's was exceeded
	}
	account = b.inForce(account)
	longest := longestWindow(account.Account)
	now := time.Now()
	r.mu.Lock()
	first := now.Sub(r.enlargedAt) > longest/4
	r.externalSeen = now
	if first {
		r.enlargedAt = now
	}
	r.externalUntil = cooldown.Later(r.externalUntil, b.storeNow().Add(longest))
	r.mu.Unlock()
	if first {
		setHeadroom(b, account, min(max(firstHeadroom, 2*account.headroom()), mostHeadroom))
	}
}

// beginHeadroom leaves a first share of the limits if units are missing for the second time.
// Units that are missing once may have been spent long ago.
func (r *reconciler) beginHeadroom(b *Budget, account *budgetAccount) {
	const inWindow = 50 // the second time is at least a 50th of the longest window later
	now := time.Now()
	r.mu.Lock()
	again := !r.missingSince.IsZero() && now.Sub(r.missingSince) >= longestWindow(account.Account)/inWindow
	if r.missingSince.IsZero() {
		r.missingSince = now
	}
	r.mu.Unlock()
	if !again {
		return
	}
	if account = b.inForce(account); account.headroom() == 0 {
		setHeadroom(b, account, firstHeadroom)
	}
}

// reduceHeadroom leaves less of the limits after some windows without external usage, if they
// are known to be lower for that.
func (r *reconciler) reduceHeadroom(b *Budget, account *budgetAccount) {
	share := account.headroom()
	if share == 0 || account.source == fromFleet {
		return
	}
	r.mu.Lock()
	quiet := time.Since(cooldown.Later(r.externalSeen, account.since)) > quietWindows*longestWindow(account.Account)
	if quiet {
		r.externalSeen = time.Now()
	}
	r.mu.Unlock()
	if !quiet {
		return
	}
	if share /= 2; share < 0.9*firstHeadroom { // about half of firstHeadroom: limits are rounded
		share = 0
		r.mu.Lock()
		r.missingSince = time.Time{}
		r.mu.Unlock()
	}
	setHeadroom(b, account, share)
}

// setHeadroom has the fleet adopt the account's full limits, each lower by the share.
func setHeadroom(b *Budget, account *budgetAccount, share float64) {
	if limits := withHeadroom(account.full, share); b.learn(account, limits, account.full) {
		b.notify(Event{Kind: HeadroomChanged, Account: account.ID, Ours: account.full, Theirs: limits})
	}
}

// sameKind reports whether two limits count in the same way, however much they allow.
func sameKind(a, b limit.Limit) bool {
	return a.Window == b.Window && a.Algorithm == b.Algorithm && a.Scope == b.Scope
}

func longestWindow(a store.Account) (longest time.Duration) {
	for _, l := range a.Limits {
		longest = max(longest, l.Window)
	}
	return longest
}

// announceAll has the fleet hear of the limits of accounts that this worker has changed. It
// returns soon, also if the store does not answer: then the fleet hears of them from who books
// next.
func (b *Budget) announceAll(changed []*budgetAccount) {
	ctx, stop := b.soon(context.Background())
	defer stop()
	var some errgroup.Group
	some.SetLimit(16)
	for _, account := range changed {
		some.Go(func() error {
			b.announce(ctx, account)
			return nil
		})
	}
	_ = some.Wait()
}

// announce has the fleet hear of limits that this worker has made effective, before anybody
// books again. So nobody waits on, or leaves, under the old limits meanwhile, and the callers
// of all workers regroup together.
func (b *Budget) announce(ctx context.Context, account *budgetAccount) {
	b.mu.Lock()
	l, r := b.learnedOf(account), b.currentRules()
	first := r.revision == b.newestKnown() && l.announced < r.revision
	if first {
		l.announced = r.revision
	}
	b.mu.Unlock()
	if !first {
		return
	}
	own, err := b.accountUnder(account.ID, r.of(account.ID, account.given, account.inherits))
	if err != nil {
		return
	}
	own.Label = account.Label
	one, err := b.list(r, own)
	if err != nil {
		return
	}
	w := waiter{Grant: Grant{budget: b, accounts: one, Cost: 1}}
	var request store.BookRequest
	w.request(&request, store.Never)
	_, _ = w.ask(ctx, &request)
}
