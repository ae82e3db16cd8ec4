package ration

import (
	"math"
	"slices"
	"time"

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

// knownLimits are what this worker knows of an account's limits.
type knownLimits struct {
	full      []limit.Limit // the provider's, with nothing left to competing clients
	effective []limit.Limit // those that the fleet applies
	since     time.Time     // when the effective limits were adopted; zero: the program set them
}

// headroom returns the share of the full limits that is left to competing clients: none if
// the effective limits are of another kind.
func (l *knownLimits) headroom() float64 {
	share := 0.0
	for i, full := range l.full {
		if i >= len(l.effective) || !sameKind(l.effective[i], full) {
			return 0
		}
		share = max(share, 1-float64(l.effective[i].Max)/float64(full.Max))
	}
	return share
}

// knownLimits returns what is known of an account's limits. A nil reconciler knows nothing of
// its own.
func (r *reconciler) knownLimits(b *Budget, account *budgetAccount) knownLimits {
	limits := knownLimits{full: account.bare, effective: account.bare}
	if r != nil {
		r.mu.Lock()
		if slices.EqualFunc(r.fullLimits, account.bare, sameKind) { // if not, the program has set others since
			limits.full = r.fullLimits
		}
		r.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if effective := b.effectiveOf(account.ID); effective.limits != nil {
		limits.effective, limits.since = effective.limits, effective.since
	}
	return limits
}

// leaveHeadroom has the fleet leave more of the account's limits to competing clients, after
// a response that was throttled because a quota of that scope is exhausted.
func (b *Budget) leaveHeadroom(scope provider.Scope, account *budgetAccount) {
	if scope.HasShared() {
		return // another limit than the account's was exceeded
	}
	if r := b.reconcilerOf(account); r != nil {
		r.enlargeHeadroom(b, account)
	}
}

// enlargeHeadroom leaves more of the limits, because a response was throttled though the log
// had capacity left. All calls in flight are throttled together: that counts once.
func (r *reconciler) enlargeHeadroom(b *Budget, account *budgetAccount) {
	limits := r.knownLimits(b, account)
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
		r.setHeadroom(b, account, limits.full, min(max(firstHeadroom, 2*limits.headroom()), mostHeadroom))
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
	if limits := r.knownLimits(b, account); limits.headroom() == 0 {
		r.setHeadroom(b, account, limits.full, firstHeadroom)
	}
}

// reduceHeadroom leaves less of the limits after some windows without external usage.
func (r *reconciler) reduceHeadroom(b *Budget, account *budgetAccount, limits knownLimits) {
	share := limits.headroom()
	if share == 0 {
		return
	}
	r.mu.Lock()
	quiet := time.Since(cooldown.Later(r.externalSeen, limits.since)) > quietWindows*longestWindow(account.Account)
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
	r.setHeadroom(b, account, limits.full, share)
}

// setHeadroom has the fleet adopt the full limits, each lower by the share.
func (r *reconciler) setHeadroom(b *Budget, account *budgetAccount, full []limit.Limit, share float64) {
	r.mu.Lock()
	r.fullLimits = full
	r.mu.Unlock()
	if limits := withHeadroom(full, share); b.learn(account, limits) {
		b.notify(Event{Kind: HeadroomChanged, Account: account.ID, Ours: full, Theirs: limits})
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
