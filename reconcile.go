package ration

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// What answers tell is compared with the log, which the store does in one step, and a
// question to the store for every answer would double the traffic. So a worker asks only
// when it cannot be said, from what it has booked itself, that the log has all that the
// provider counted.

const (
	// So many units, and such a share of a limit, may be missing before a worker asks
	// that has seen no sign of others: they are what other workers have on the way.
	// Towards the end of a window it is ever less, but calls overtake each other.
	slackUnits = 16
	leastSlack = 8
	slackShare = 50
	// A worker remembers so many of its bookings in a window of each account.
	remembered = 32
	// What the store said of an account stands for this share of a window.
	knownShare = 16
	// Of a bucket the store is asked so often in a window, and where others are seen.
	seldomAsked, oftenAsked = 16, 500
)

// A reconciler is what a worker knows of what an account's log counts.
type reconciler struct {
	mu            sync.Mutex
	bookings      []bookingTotal          // some of this worker's bookings, in the order of slots
	logged        []loggedUnits           // by limit, what the store has said last
	externalUntil time.Time               // until when others are taken to spend the account
	asking        bool                    // a question is under way
	waiting       *store.ReconcileRequest // the one that is to be asked behind it
	asked         time.Time
	resets        []time.Time   // by limit, the end of the window that was told last
	learnedAt     time.Time     // when a limit was learnt last
	whole         []limit.Limit // the limits, where a share of them is left to others; nil: those of the account
	externalSeen  time.Time     // of others, the last that was seen
	shrunkAt      time.Time     // when more was left to them last
	missingSince  time.Time     // when anything was owed first, since they were seen
}

// bookingTotal is a booking: its slot, and all units booked before it.
type bookingTotal struct {
	slot   time.Time
	before int64
}

// loggedUnits is what the log had of a limit, when so many units were booked.
type loggedUnits struct {
	until   time.Time
	counted int
	total   int64
}

// reconcile takes in what an answer says of the account's limits, and returns how many units
// it left; negative: that is not known.
func (t *Transport) reconcile(req *http.Request, f *provider.Feedback, grant Grant) (left int) {
	b := t.Pool.budget
	account := grant.account
	costs := t.Cost != nil || t.provider().Cost != nil
	rule := b.reconcilerOf(account.ID).rule(b, account)
	all := observe.Limits(f.Windows, rule.whole, grant.scopes, costs, t.provider())
	if len(all) == 0 {
		return -1
	}
	ctx, stop := soon(req.Context())
	defer stop()
	k := b.reconcilerFor(account)
	if !k.adopt(b, account, rule, all) {
		k.growHeadroom(b, account, rule)
	}
	now := b.storeNow()
	k.recordResets(ctx, b, account, all, now)
	k.reconcile(ctx, b, account, grant, all, now)
	left = all[0].Left
	for _, n := range all[1:] {
		left = min(left, n.Left)
	}
	return left
}

// reconcilerOf returns what there is to know of an account; nil if no answer has told anything.
func (b *Budget) reconcilerOf(account string) *reconciler {
	if !b.reconciles.Load() {
		return nil
	}
	k, found := b.reconcilers.Load(account)
	if !found {
		return nil
	}
	return k.(*reconciler)
}

// reconciler returns what there is to know of an account.
func (b *Budget) reconcilerFor(account *budgetAccount) *reconciler {
	if k, found := b.reconcilers.Load(account.ID); found {
		return k.(*reconciler)
	}
	b.reconciles.Store(true)
	k, _ := b.reconcilers.LoadOrStore(account.ID, new(reconciler))
	return k.(*reconciler)
}

// adopt makes a limit rule that the provider has announced, and reports whether there was
// one. A tighter one does at once; a wider one not soon after another, for answers that
// contradict each other.
func (k *reconciler) adopt(b *Budget, account *budgetAccount, rule rule, all []observe.Observation) bool {
	limits := slices.Clone(rule.whole)
	tighter, wider := false, false
	for _, n := range all {
		was := limits[n.Limit]
		limits[n.Limit] = n.ApplyTo(was)
		tighter = tighter || limits[n.Limit].Capacity() < was.Capacity()
		wider = wider || limits[n.Limit].Capacity() > was.Capacity()
	}
	if !tighter && !wider {
		return false
	}
	const seldom = time.Minute
	k.mu.Lock()
	again := !tighter && !k.learnedAt.IsZero() && time.Since(k.learnedAt) < seldom
	k.mu.Unlock()
	if again || !b.learn(account, reserved(limits, rule.share())) {
		return false
	}
	k.mu.Lock()
	k.learnedAt, k.logged, k.whole = time.Now(), nil, limits
	k.mu.Unlock()
	b.notify(Event{Kind: LimitLearned, Account: account.ID, Ours: account.bare, Theirs: limits})
	return true
}

// recordResets tells the store when windows end that calls have begun.
func (k *reconciler) recordResets(ctx context.Context, b *Budget, account *budgetAccount, all []observe.Observation, now time.Time) {
	for _, n := range all {
		if !account.Limits[n.Limit].FirstUse || !n.Reset.Known {
			continue
		}
		ends := now.Add(n.Reset.Value).Truncate(time.Microsecond)
		k.mu.Lock()
		if k.resets == nil {
			k.resets = make([]time.Time, len(account.Limits))
		}
		news := n.Limit < len(k.resets) && ends.Sub(k.resets[n.Limit]).Abs() > time.Second/2
		if news {
			k.resets[n.Limit] = ends
		}
		k.mu.Unlock()
		if news {
			_ = b.Store.Reset(ctx, store.ResetRequest{Budget: b.Name, Account: account.Account, At: ends})
		}
	}
}

// reconcile has the store enter what the provider has counted and the log lacks, if that may
// be anything.
func (k *reconciler) reconcile(ctx context.Context, b *Budget, account *budgetAccount, grant Grant, all []observe.Observation, now time.Time) {
	r := store.ReconcileRequest{Budget: b.Name, Account: account.Account, Scopes: grant.scopes, Slot: grant.Slot,
		Counted: make([]int, len(account.Limits))}
	doubtful := false
	k.mu.Lock()
	if grant.total > 0 {
		k.remember(bookingTotal{grant.Slot, grant.total - int64(grant.Cost)}, account)
	}
	for _, n := range all {
		l := account.Limits[n.Limit]
		if n.Counted == 0 || l.Algorithm == limit.FixedWindow && (!n.Reset.Known || n.Reset.Value <= now.Sub(grant.Slot)) {
			continue // it may be what was counted in the window before
		}
		r.Counted[n.Limit] = n.Counted
		doubtful = doubtful || k.needsCheck(l, n, grant, now)
	}
	if now.Before(k.externalUntil) {
		b.smoother.Narrow(account.ID, longestWindow(account.Account)/knownShare)
	}
	if doubtful && k.asking {
		k.enqueue(r)
		doubtful = false
	}
	k.asking = k.asking || doubtful
	k.mu.Unlock()
	for doubtful {
		next, owed, again := k.ask(ctx, b, r, grant.total)
		if owed > 0 {
			b.notify(Event{Kind: ExternalUsage, Account: account.ID, Count: owed})
			k.reserve(b, account)
		}
		r, doubtful = next, again
	}
}

// remember keeps a booking, if the last that is kept is some time ago. It needs mu.
func (k *reconciler) remember(booked bookingTotal, account *budgetAccount) {
	longest, n := longestWindow(account.Account), len(k.bookings)
	if n > 0 && booked.slot.Sub(k.bookings[n-1].slot) < longest/remembered {
		return
	}
	i := 0
	for i < n && k.bookings[i].slot.Before(booked.slot.Add(-longest)) {
		i++
	}
	k.bookings = append(slices.Delete(k.bookings, 0, i), booked)
}

// needsCheck reports whether it cannot be said that the log has what the provider counted.
// It needs mu.
func (k *reconciler) needsCheck(l limit.Limit, n observe.Observation, grant Grant, now time.Time) bool {
	watched := now.Before(k.externalUntil)
	if l.Algorithm == limit.GCRA {
		// A bucket that is as full as can be tells nothing: it is where a crawler
		// keeps it.
		return n.Counted > grant.Cost && now.Sub(k.asked) >= askEvery(l, watched, seldomAsked)
	}
	slack := max(slackUnits, l.Capacity()/slackShare)
	if n.Left >= 0 {
		slack = min(slack, max(leastSlack, n.Left/4)) // near the end every unit counts
	}
	least := grant.Cost
	if grant.total > 0 {
		least = max(least, k.leastLogged(l, n, grant, now))
	} else if now.Sub(k.asked) < askEvery(l, watched, knownShare) {
		return false
	}
	// Where others are seen less is enough, but not to ask for every answer.
	return n.Counted > least+slack || watched && n.Counted > least && now.Sub(k.asked) >= askEvery(l, true, 0)
}

// pause is how long it is at least between two questions: where others are seen, or else
// so many in a window.
func askEvery(l limit.Limit, watched bool, inWindow int) time.Duration {
	if watched {
		return max(l.Window/oftenAsked, 20*time.Millisecond)
	}
	return l.Window / time.Duration(inWindow)
}

// leastLogged returns how many units the log has counted at least up to a booking whose
// total is known. It needs mu.
func (k *reconciler) leastLogged(l limit.Limit, n observe.Observation, grant Grant, now time.Time) (units int) {
	if n.Limit < len(k.logged) && now.Before(k.logged[n.Limit].until) {
		c := k.logged[n.Limit]
		units = c.counted + more(grant.total, c.total)
	}
	begins := grant.Slot.Add(-l.Window)
	if l.Algorithm == limit.FixedWindow {
		begins = now.Add(n.Reset.Value - l.Window)
	}
	for _, booked := range k.bookings {
		if booked.slot.After(begins) {
			return max(units, more(grant.total, booked.before))
		}
	}
	return units
}

// more returns by how much a total has grown; nothing if it seems to have shrunk.
func more(total, before int64) int {
	if total < before {
		return 0
	}
	return int(min(total-before, limit.MaxUnits))
}

// enqueue keeps what is to be asked when the question that is under way is answered: the
// most that was counted of each limit. It needs mu.
func (k *reconciler) enqueue(r store.ReconcileRequest) {
	if k.waiting == nil {
		k.waiting = &r
		return
	}
	for i := range r.Counted {
		if i < len(k.waiting.Counted) {
			r.Counted[i] = max(r.Counted[i], k.waiting.Counted[i])
		}
	}
	if k.waiting.Slot.Before(r.Slot) {
		r.Slot = k.waiting.Slot // of the earlier one more may have left the window since
	}
	k.waiting = &r
}

// ask asks the store, and returns what was lacking and what is to be asked next, if
// anything.
func (k *reconciler) ask(ctx context.Context, b *Budget, r store.ReconcileRequest, total int64) (next store.ReconcileRequest, owed int, again bool) {
	debt, err := b.Store.Reconcile(ctx, r)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && len(debt.Limits) == len(r.Account.Limits) {
		k.asked = debt.Now
		k.logged = make([]loggedUnits, len(debt.Limits))
		logged := 0
		for i, one := range debt.Limits {
			owed = max(owed, one.Missing)
			if r.Account.Limits[i].Algorithm.IsLog() {
				logged = max(logged, one.Missing) // and is in the totals from now on
			}
		}
		for i, one := range debt.Limits {
			until := debt.Now.Add(r.Account.Limits[i].Window / knownShare)
			k.logged[i] = loggedUnits{until, one.AtSlot + min(one.Missing, math.MaxInt-one.AtSlot), total + int64(logged)}
		}
		if owed > 0 {
			k.externalUntil, k.externalSeen = debt.Now.Add(longestWindow(r.Account)), time.Now()
		}
	}
	if k.waiting != nil && err == nil {
		next, k.waiting = *k.waiting, nil
		again = true
	}
	k.asking = again
	return next, owed, again
}

// leaveHeadroom has the fleet leave more of the account's limits to competing clients, after
// a response of that scope which was throttled for want of quota.
func (t *Transport) leaveHeadroom(scope provider.Scope, grant Grant) {
	if scope.HasShared() {
		return // the account's limits are not what was exceeded
	}
	// Of a provider that tells of no window it is not known which limit it was.
	b := t.Pool.budget
	if k := b.reconcilerOf(grant.account.ID); k != nil {
		k.shrink(b, grant.account)
	}
}
