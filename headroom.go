package ration

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/headroom"
	"github.com/ration-go/ration/internal/observe"
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

// A reconciler is what a worker knows of one account's usage: by its own bookings, by the
// store's replies and by the provider's responses.
type reconciler struct {
	reports       observe.Reports
	announcements observe.Announcements
	comparison    observe.Comparison
	resets        observe.Resets
	sharing       headroom.Sharing
	lowering      headroom.Lowering
}

// headroom returns the share of the full limits that is left to competing clients.
func (e *effective) headroom() float64 {
	share, _ := headroom.Of(e.limits, e.full)
	return share
}

// wasRefused has the fleet use less of an account's limits, because a response was throttled for a quota
// of that scope though the log had capacity left. If responses tell what is left, competing clients
// spend the rest; if none has, the limits are too high.
func (b *Budget) wasRefused(scope provider.Scope, g *Grant) {
	if scope.HasShared() || scope.HasObject() {
		return // another limit than the account's was exceeded
	}
	understood, account := b.understand(g.account), b.inForce(g.account)
	r := b.reconcilerFor(account)
	switch {
	case !understood:
	case r.reports.Any():
		r.leaveHeadroom(b, account)
	case !scope.Has(provider.ScopeEndpoint) && slices.Equal(g.account.limits, account.limits):
		r.lower(b, account) // and not for calls that were booked before the last change
	}
}

// leaveHeadroom has the fleet leave more of the account's limits to competing clients.
func (r *reconciler) leaveHeadroom(b *Budget, account *budgetAccount) {
	longest := observe.Longest(account.Limits)
	r.comparison.Expect(b.storeNow().Add(longest))
	if share, changed := r.sharing.Refused(account.headroom(), longest, time.Now()); changed {
		setHeadroom(b, account, share)
	}
}

// reduceHeadroom leaves less of the limits after some windows without external usage, if they
// are known to be lower for that.
func (r *reconciler) reduceHeadroom(b *Budget, account *budgetAccount) {
	share := account.headroom()
	if share == 0 {
		return
	}
	longest, now := observe.Longest(account.Limits), time.Now()
	if r.sharing.Ends(share, account.since, longest, now) {
		r.comparison.Expect(b.storeNow().Add(longest)) // a little of it hides among the calls in flight
	}
	if share, changed := r.sharing.Quiet(share, account.since, longest, now); changed {
		setHeadroom(b, account, share)
	}
}

// setHeadroom has the fleet adopt the account's full limits, each lower by the share.
func setHeadroom(b *Budget, account *budgetAccount, share float64) {
	if limits := headroom.Leave(account.full, share); b.learn(account, limits, account.full) {
		b.notify(Event{Kind: HeadroomChanged, Account: account.ID, Ours: account.full, Theirs: limits})
	}
}

// leastUsed is the share of a limit that must be used for a refusal to be about it.
const leastUsed = 0.08

// lower has the fleet use less of an account's limits, which are too high.
func (r *reconciler) lower(b *Budget, account *budgetAccount) {
	if !r.lowering.Refused(account.limits, time.Now()) {
		return
	}
	b.lengthenWindow(account)
	setLowered(b, account, r.lowering.Lower(account.limits, account.full, b.mostUsed(account)))
}

// mostUsed returns the index of the account's limit of which the largest share is used, since that is most
// likely the one that was exceeded; negative: that is small, or the store does not answer.
func (b *Budget) mostUsed(account *budgetAccount) (index int) {
	index, most := -1, leastUsed
	for i, l := range b.usageOf(account) {
		if share := float64(l.Used+l.Ahead) / float64(l.Limit.Capacity()); share >= most {
			index, most = i, share
		}
	}
	return index
}

// usageOf returns what is used of an account's limits; nil if the store does not answer soon.
func (b *Budget) usageOf(account *budgetAccount) []store.LimitUsage {
	one, err := store.NewAccounts(account.Account)
	if err != nil {
		return nil
	}
	ctx, stop := b.soon(context.Background())
	defer stop()
	all, err := asks(ctx, b, "usage", b.Store.Usage, store.UsageRequest{Budget: b.Name, Accounts: one})
	if err != nil || len(all) != 1 || len(all[0].Limits) != len(account.limits) {
		return nil
	}
	return all[0].Limits
}

// lengthenWindow has the account's window that began with a call end no sooner than that of the provider
// can, which has refused one: a whole window from now. Otherwise ours, which begins anew with the refused
// call, would be out of step from then on, and two of ours would fall into one of the provider's.
func (b *Budget) lengthenWindow(account *budgetAccount) {
	var window time.Duration
	for _, l := range account.Limits {
		switch {
		case l.FirstUse && window > 0:
			return // nobody knows which of them was exceeded
		case l.FirstUse:
			window = l.Window
		}
	}
	if window == 0 {
		return
	}
	ctx, stop := b.soon(context.Background())
	defer stop()
	at := b.storeNow().Add(window).Truncate(time.Microsecond)
	_ = tells(ctx, b, "reset", b.Store.Reset, store.ResetRequest{Budget: b.Name, Account: account.Account, At: at})
}

// raiseLowered raises limits that this worker or another has lowered, if nothing was refused for long.
func (b *Budget) raiseLowered(g *Grant) {
	if !b.reconciles.Load() && !b.adopts.Load() || g.offline || !b.understand(g.account) {
		return
	}
	if r := b.reconcilerOf(g.account); r != nil && r.lowering.IsLow() {
		account := b.inForce(g.account)
		setLowered(b, account, r.lowering.Raise(account.limits, account.full, observe.Longest(account.Limits), account.since, time.Now()))
	}
}

// setLowered has the fleet adopt limits, if there are any, in place of the account's full ones.
func setLowered(b *Budget, account *budgetAccount, limits []limit.Limit) {
	if limits != nil && b.learn(account, limits, account.full) {
		b.notify(Event{Kind: HeadroomChanged, Account: account.ID, Ours: account.full, Theirs: limits,
			Cause: "the provider refuses calls, and does not say what it allows"})
	}
}

// doubtAfter is how long a limit that was learned may hold all of an account's callers back without any
// response: as long as a response may pause them by default.
const doubtAfter = defaultMaxPause

// doubtLearned lets one more call leave, as far as the limits that the program gave allow it, if those that
// responses announced hold the account's callers back: false ones would for as long as a window, with no
// response to say otherwise. The next response confirms what was learned, or another limit.
func (b *Budget) doubtLearned(account *budgetAccount) {
	if !b.reconcilerFor(account).announcements.Silent(b.storeNow(), doubtAfter) {
		return
	}
	b.understand(account)
	if account = b.inForce(account); account.source != fromProvider || len(account.given) != len(account.full) {
		return
	}
	limits := slices.Clone(account.limits)
	for i, l := range b.usageOf(account) {
		if given := account.given[i]; limits[i].Max < given.Max && given.Algorithm != limit.GCRA { // a bucket is never spent for long
			limits[i].Max = min(given.Max, max(limits[i].Max, l.Used+1))
		}
	}
	if !slices.Equal(limits, account.limits) && b.learn(account, limits, limits) {
		b.notify(Event{Kind: LimitLearned, Account: account.ID, Ours: account.limits, Theirs: limits,
			Cause: "no response came for long, and one call tries whether the provider still says so"})
	}
}

// understand reports whether this worker knows why an account's limits are in force. If another worker has
// changed them the store tells, unless it does not answer soon.
func (b *Budget) understand(account *budgetAccount) bool {
	if b.isUnderstood(account.ID) {
		return true
	}
	_, _, _ = b.refreshing.Do("note of "+account.ID, func() (any, error) { return nil, b.askNote(b.inForce(account)) })
	return b.isUnderstood(account.ID)
}

// isUnderstood reports whether a worker knows why an account's limits are in force, without asking.
func (b *Budget) isUnderstood(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.learned.Get(id); l != nil && l.adopted != nil {
		return l.adopted.source != fromFleet
	}
	return b.currentRules().accounts[id].source != fromFleet
}

// askNote asks the store why an account's limits are in force that another worker has changed. If there is no
// note about them a program gave them.
func (b *Budget) askNote(account *budgetAccount) error {
	ctx, stop := b.soon(context.Background())
	defer stop()
	kept, err := asks(ctx, b, "note", b.Store.Note, store.NoteRequest{Budget: b.Name, Account: account.ID})
	if err != nil {
		return err
	}
	r, known := b.reconcilerFor(account), *account
	known.full, known.source = account.limits, fromProgram
	note, ok := headroom.ParseNote(kept.Text)
	ok = ok && len(note.InForce) > 0 && store.EncodeLimits(note.InForce) == store.EncodeLimits(account.limits)
	if ok {
		known.full, known.source, note.InForce = note.Full, fromProvider, account.limits
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l, now := b.learnedOf(account), b.effectiveAccount(account)
	if now.source != fromFleet || !slices.Equal(now.limits, known.limits) {
		return nil // they were changed again
	}
	if ok {
		r.lowering.Resume(note)
	}
	if known.revision = now.revision; l.adopted != nil {
		l.adopted = &known
	} else {
		b.replaceOwn(account.ID, known.effective)
	}
	return nil
}

// keepNote has the store keep why this worker has made an account's limits effective.
func (b *Budget) keepNote(ctx context.Context, account *budgetAccount) {
	var note headroom.Note
	if account.source == fromProvider {
		note.InForce, note.Full = account.limits, account.full
		b.reconcilerFor(account).lowering.NoteIn(&note)
	}
	_, _ = asks(ctx, b, "note", b.Store.Note, store.NoteRequest{Budget: b.Name, Account: account.ID,
		Note: store.Note{Revision: account.revision, Text: note.Text()}})
}

// reconcilerOf returns the account's reconciler; nil if no response has said anything about
// its limits.
func (b *Budget) reconcilerOf(account *budgetAccount) *reconciler {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.learned.Get(account.ID)
	if l == nil {
		return nil
	}
	return l.reconciler
}

// reconcilerFor returns the account's reconciler, which it makes if there is none.
func (b *Budget) reconcilerFor(account *budgetAccount) *reconciler {
	b.reconciles.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.learnedOf(account)
	if l.reconciler == nil {
		l.reconciler = new(reconciler)
	}
	return l.reconciler
}

// adoptAnnounced has the fleet adopt the limits that the provider has announced, if they
// differ, and reports whether it did. A lower limit is adopted at once; a higher one not soon
// after another, in case responses contradict each other. One step is tenfold at most.
func (r *reconciler) adoptAnnounced(b *Budget, account *budgetAccount, observed []observe.Observation) bool {
	const seldom = time.Minute
	full := slices.Clone(account.full)
	lower, higher := false, false
	for _, o := range observed {
		old := full[o.Limit]
		full[o.Limit] = o.Toward(old)
		lower = lower || full[o.Limit].Capacity() < old.Capacity()
		higher = higher || full[o.Limit].Capacity() > old.Capacity()
	}
	limits := headroom.Leave(full, account.headroom())
	if slices.Equal(full, account.limits) {
		limits = full // another worker learned them at once: they are no headroom of the limits before
	}
	switch {
	case !lower && !higher:
		return false
	case !lower && time.Since(account.since) < seldom && !r.announcements.Answered():
		return false
	}
	if !b.learn(account, limits, full) {
		return false
	}
	r.comparison.Forget()
	b.notify(Event{Kind: LimitLearned, Account: account.ID, Ours: account.limits, Theirs: full})
	return true
}

// recordResets sends the store the ends of the windows that begin with a call.
func (r *reconciler) recordResets(ctx context.Context, b *Budget, account *budgetAccount, observed []observe.Observation, now time.Time) {
	for _, o := range observed {
		if !account.Limits[o.Limit].FirstUse || !o.Reset.Known {
			continue
		}
		end := now.Add(o.Reset.Value).Truncate(time.Microsecond)
		if r.resets.IsNews(o, end) {
			_ = tells(ctx, b, "reset", b.Store.Reset, store.ResetRequest{Budget: b.Name, Account: account.Account, At: end, Within: o.ResetWithin()})
		}
	}
}

// reconcile has the store record the units that the provider has counted and the log lacks,
// if there may be any.
func (r *reconciler) reconcile(ctx context.Context, b *Budget, account *budgetAccount, grant Grant, observed []observe.Observation, now time.Time) {
	request, ask := r.comparison.Compare(store.ReconcileRequest{Budget: b.Name, Account: account.Account, Scopes: grant.scopes},
		observe.Call{Slot: grant.Slot, Cost: grant.Cost, Total: grant.total}, observed, now)
	longest := observe.Longest(account.Limits)
	if r.comparison.Expects(now) {
		b.smoother.Narrow(account.ID, longest/observe.ReplyShare)
	}
	for ask {
		reply, err := asks(ctx, b, "reconcile", b.Store.Reconcile, request)
		var missing int
		if request, missing, ask = r.comparison.Answered(request, grant.total, reply, err); missing > 0 {
			b.notify(Event{Kind: ExternalUsage, Account: account.ID, Count: missing})
			account = b.inForce(account)
			share, changed := r.sharing.Missing(account.headroom(), longest, time.Now())
			if changed {
				setHeadroom(b, account, share)
			}
		}
	}
}
