package ration

import (
	"math"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Where others spend a token too, a window is full earlier than the log says, by what
// they spend between two answers. Answers tell of it too late for the calls that are on
// their way. So while others are seen the fleet keeps less than the whole limit: first a
// little, twice as much after each refusal that the log did not foresee, and again the
// whole when for some windows nobody else was seen.

const (
	// firstReserve is the first share of a limit that is left to others, and
	// mostReserve the largest.
	firstReserve = 0.1
	mostReserve  = 0.5
	// A reserve is halved, and the first is given up, when for so many windows nothing
	// was seen of others.
	quietWindows = 3
)

// reserved returns the limits with a share of each left to others.
func reserved(limits []limit.Limit, share float64) []limit.Limit {
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

// A rule is what this worker knows of an account's limits.
type rule struct {
	whole []limit.Limit // as the provider has them, without what is left to others
	now   []limit.Limit // those that the fleet keeps
	since time.Time     // when they were made to rule; zero: they were given
}

// share returns the share of the limits that is left to others: where the fleet keeps
// limits that are others in kind, none.
func (r *rule) share() float64 {
	share := 0.0
	for i, l := range r.whole {
		if i >= len(r.now) || !alike(r.now[i], l) {
			return 0
		}
		share = max(share, 1-float64(r.now[i].Max)/float64(l.Max))
	}
	return share
}

// rule returns what is known of an account's limits; a nil teller knows of no others than
// those that it was given.
func (k *reconciler) rule(b *Budget, account *budgetAccount) rule {
	r := rule{whole: account.bare, now: account.bare}
	if k != nil {
		k.mu.Lock()
		if slices.EqualFunc(k.whole, account.bare, alike) { // or others were given since
			r.whole = k.whole
		}
		k.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if ruled, known := b.effective[account.ID]; known {
		r.now, r.since = ruled.limits, ruled.since
	}
	return r
}

// shrink takes in that the account was refused though the log had room, and leaves more of
// its limits to others. All calls that were on their way are refused at once: that is
// one sign.
func (k *reconciler) shrink(b *Budget, account *budgetAccount) {
	rule := k.rule(b, account)
	now := time.Now()
	k.mu.Lock()
	first := now.Sub(k.shrunkAt) > longestWindow(account.Account)/4
	k.externalSeen = now
	if first {
		k.shrunkAt = now
	}
	k.externalUntil = cooldown.Later(k.externalUntil, b.storeNow().Add(longestWindow(account.Account)))
	k.mu.Unlock()
	if !first {
		return
	}
	k.leave(b, account, rule.whole, min(max(firstReserve, 2*rule.share()), mostReserve))
}

// reserve leaves a first share to others who are seen to go on: what is owed only once
// may be of long ago.
func (k *reconciler) reserve(b *Budget, account *budgetAccount) {
	const apart = 50 // in a window
	now := time.Now()
	k.mu.Lock()
	again := !k.missingSince.IsZero() && now.Sub(k.missingSince) >= longestWindow(account.Account)/apart
	if k.missingSince.IsZero() {
		k.missingSince = now
	}
	k.mu.Unlock()
	if !again {
		return
	}
	if rule := k.rule(b, account); rule.share() == 0 {
		k.leave(b, account, rule.whole, firstReserve)
	}
}

// growHeadroom leaves less to others where nothing was seen of them for long.
func (k *reconciler) growHeadroom(b *Budget, account *budgetAccount, rule rule) {
	share := rule.share()
	if share == 0 {
		return
	}
	k.mu.Lock()
	quiet := time.Since(cooldown.Later(k.externalSeen, rule.since)) > quietWindows*longestWindow(account.Account)
	if quiet {
		k.externalSeen = time.Now()
	}
	k.mu.Unlock()
	if !quiet {
		return
	}
	if share /= 2; share < 0.9*firstReserve { // as good as less than the first
		share = 0
		k.mu.Lock()
		k.missingSince = time.Time{}
		k.mu.Unlock()
	}
	k.leave(b, account, rule.whole, share)
}

// leave makes limits rule of which a share is left to others.
func (k *reconciler) leave(b *Budget, account *budgetAccount, whole []limit.Limit, share float64) {
	k.mu.Lock()
	k.whole = whole
	k.mu.Unlock()
	if limits := reserved(whole, share); b.learn(account, limits) {
		b.notify(Event{Kind: HeadroomChanged, Account: account.ID, Ours: whole, Theirs: limits})
	}
}

// alike reports whether two limits count the same, however much they allow.
func alike(a, b limit.Limit) bool {
	return a.Window == b.Window && a.Algorithm == b.Algorithm && a.Scope == b.Scope
}

func longestWindow(a store.Account) (longest time.Duration) {
	for _, l := range a.Limits {
		longest = max(longest, l.Window)
	}
	return longest
}
