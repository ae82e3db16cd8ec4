package ration

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/headroom"
	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// The store compares the provider's count, as responses report it, with the log, and records
// the missing units in the same step. Asking it after every response would double the traffic. So a worker
// asks only if it cannot conclude, from its own bookings, that the log has all that the
// provider counted.

const (
	// While no external usage is seen, a worker asks if more than slackUnits, or more than
	// 1/slackShare of the limit, may be missing: other workers have as much in flight.
	// Towards the end of a window the slack shrinks to leastSlack, because calls overtake
	// each other.
	slackUnits = 16
	slackShare = 50
	leastSlack = 8
	// rememberedBookings is how many of its bookings a worker remembers for each window of
	// an account.
	rememberedBookings = 32
	// A reply of the store is used for 1/replyShare of a window.
	replyShare = 16
	// questionsAlone is how often in a window a worker asks about a GCRA limit while no
	// external usage is seen, and questionsShared how often about any limit while it is.
	questionsAlone, questionsShared = 16, 500
)

// A reconciler is what a worker knows of one account's usage: by its own bookings, by the
// store's replies and by the provider's responses.
type reconciler struct {
	reports       observe.Reports
	announcements observe.Announcements
	lowering      headroom.Lowering

	mu            sync.Mutex              // protects all below
	bookings      []bookingTotal          // some of this worker's, in the order of their slots
	logged        []loggedUnits           // by limit, what the store replied last
	asking        bool                    // a question to the store is under way
	next          *store.ReconcileRequest // to ask when it is answered; nil: nothing
	askedAt       time.Time               // the store's clock at its last reply
	externalUntil time.Time               // until when external usage is expected, on the store's clock
	resets        []time.Time             // by limit, the end of the window as last sent to the store

	externalSeen time.Time // when external usage was seen last
	enlargedAt   time.Time // when a throttled response enlarged the headroom last
	missingSince time.Time // when units were first missing; zero: not since the headroom was given up
}

// bookingTotal is the slot of a booking, and all units that were booked before it.
type bookingTotal struct {
	slot   time.Time
	before int64
}

// loggedUnits is how many units the log had for a limit when a total was booked.
type loggedUnits struct {
	until   time.Time // the reply is not used after it
	counted int
	total   int64
}

// reconcile compares what a response says about the account's limits with the log and with
// the limits themselves. It returns how many units are left by the provider's count;
// negative: unknown. It sets the scope of a response whose limit is its endpoint's own.
func (t *Transport) reconcile(req *http.Request, f *provider.Feedback, grant Grant) (left int) {
	b := t.Pool.budget
	account, p := b.inForce(grant.account), t.provider()
	observed := observe.Limits(f.Windows, account.full, grant.scopes, t.Cost != nil || p.Cost != nil, p)
	if len(observed) == 0 {
		return -1
	}
	ctx, stop := b.soon(req.Context())
	defer stop()
	r := b.reconcilerFor(account)
	now := b.storeNow()
	observed, apart := r.announcements.Take(cooldown.Endpoint(req), observed, account.full, now)
	if apart && f.Scope == "" {
		f.Scope = provider.ScopeEndpoint // it pauses no other
	}
	if len(observed) == 0 {
		return -1
	}
	if !r.adoptAnnounced(b, account, observed) {
		r.reduceHeadroom(b, account)
	}
	r.reports.Note(observed, now)
	r.recordResets(ctx, b, account, observed, now)
	r.reconcile(ctx, b, account, grant, observed, now)
	return slices.MinFunc(observed, func(x, y observe.Observation) int { return x.Left - y.Left }).Left
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
	told, lower, higher := false, false, false
	for _, o := range observed {
		old := full[o.Limit]
		full[o.Limit] = o.Toward(old)
		told = told || o.Announced()
		lower = lower || full[o.Limit].Capacity() < old.Capacity()
		higher = higher || full[o.Limit].Capacity() > old.Capacity()
	}
	limits := headroom.Leave(full, account.headroom())
	if slices.Equal(full, account.limits) {
		limits = full // another worker learned them at once: they are no headroom of the limits before
	}
	switch {
	case told && account.source == fromFleet:
		// Only now is it known whether another worker left headroom.
		limits = full
		if _, may := headroom.Of(account.limits, full); may {
			limits = account.limits
		}
	case !lower && !higher:
		return false
	case !lower && time.Since(account.since) < seldom && !r.announcements.Answered():
		return false
	}
	if !b.learn(account, limits, full) {
		return false
	}
	r.mu.Lock()
	r.logged = nil
	r.mu.Unlock()
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
		r.mu.Lock()
		if r.resets == nil {
			r.resets = make([]time.Time, len(account.Limits))
		}
		differs := o.Limit < len(r.resets) && end.Sub(r.resets[o.Limit]).Abs() > time.Second/2+o.ResetWithin()
		if differs {
			r.resets[o.Limit] = end
		}
		r.mu.Unlock()
		if differs {
			_ = tells(ctx, b, "reset", b.Store.Reset, store.ResetRequest{Budget: b.Name, Account: account.Account, At: end, Within: o.ResetWithin()})
		}
	}
}

// reconcile has the store record the units that the provider has counted and the log lacks,
// if there may be any.
func (r *reconciler) reconcile(ctx context.Context, b *Budget, account *budgetAccount, grant Grant, observed []observe.Observation, now time.Time) {
	request := store.ReconcileRequest{Budget: b.Name, Account: account.Account, Scopes: grant.scopes, Slot: grant.Slot,
		Counted: make([]int, len(account.Limits))}
	ask := false
	r.mu.Lock()
	if grant.total > 0 {
		r.remember(bookingTotal{grant.Slot, grant.total - int64(grant.Cost)}, account)
	}
	for _, o := range observed {
		l := account.Limits[o.Limit]
		if o.Counted == 0 || l.Algorithm == limit.FixedWindow && (!o.Reset.Known || o.Reset.Value <= now.Sub(grant.Slot)) {
			continue // the provider may have counted it in the previous window
		}
		request.Counted[o.Limit] = o.Counted
		ask = ask || r.mayLack(l, o, grant, now)
	}
	if now.Before(r.externalUntil) {
		b.smoother.Narrow(account.ID, longestWindow(account.Account)/replyShare)
	}
	if ask && r.asking {
		r.enqueue(request)
		ask = false
	}
	r.asking = r.asking || ask
	r.mu.Unlock()
	for ask {
		next, missing, again := r.ask(ctx, b, request, grant.total)
		if missing > 0 {
			b.notify(Event{Kind: ExternalUsage, Account: account.ID, Count: missing})
			r.beginHeadroom(b, account)
		}
		request, ask = next, again
	}
}

// remember keeps a booking, unless the last that is kept was little before. It needs mu.
func (r *reconciler) remember(booked bookingTotal, account *budgetAccount) {
	longest, n := longestWindow(account.Account), len(r.bookings)
	if n > 0 && booked.slot.Sub(r.bookings[n-1].slot) < longest/rememberedBookings {
		return
	}
	i := 0
	for i < n && r.bookings[i].slot.Before(booked.slot.Add(-longest)) {
		i++
	}
	r.bookings = append(slices.Delete(r.bookings, 0, i), booked)
}

// mayLack reports whether the log may lack units that the provider has counted for a limit.
// It needs mu.
func (r *reconciler) mayLack(l limit.Limit, o observe.Observation, grant Grant, now time.Time) bool {
	shared := now.Before(r.externalUntil)
	if l.Algorithm == limit.GCRA {
		// A full bucket says nothing: a crawler keeps it full.
		return o.Counted > grant.Cost && now.Sub(r.askedAt) >= askInterval(l, shared, questionsAlone)
	}
	slack := max(slackUnits, l.Capacity()/slackShare)
	if o.Left >= 0 {
		slack = min(slack, max(leastSlack, o.Left/4)) // near the end every unit counts
	}
	least := grant.Cost
	if grant.total > 0 {
		least = max(least, r.leastLogged(l, o, grant, now))
	} else if now.Sub(r.askedAt) < askInterval(l, shared, replyShare) {
		return false
	}
	// After external usage a smaller difference is enough, but not after every response.
	return o.Counted > least+slack || shared && o.Counted > least && now.Sub(r.askedAt) >= askInterval(l, true, 0)
}

// askInterval is the least time between two questions about a limit: a fixed number in a
// window, and another one while external usage is expected.
func askInterval(l limit.Limit, shared bool, inWindow int) time.Duration {
	if shared {
		return max(l.Window/questionsShared, 20*time.Millisecond)
	}
	return l.Window / time.Duration(inWindow)
}

// leastLogged returns how many units the log has at least for a limit, up to a booking whose
// total is known. It needs mu.
func (r *reconciler) leastLogged(l limit.Limit, o observe.Observation, grant Grant, now time.Time) (units int) {
	if o.Limit < len(r.logged) && now.Before(r.logged[o.Limit].until) {
		last := r.logged[o.Limit]
		units = last.counted + increase(last.total, grant.total)
	}
	begin := grant.Slot.Add(-l.Window)
	if l.Algorithm == limit.FixedWindow {
		begin = now.Add(o.Reset.Value - l.Window)
	}
	for _, booked := range r.bookings {
		if booked.slot.After(begin) {
			return max(units, increase(booked.before, grant.total))
		}
	}
	return units
}

// increase returns by how many units a total has grown; 0 if it shrank.
func increase(before, total int64) int {
	if total < before {
		return 0
	}
	return int(min(total-before, limit.MaxUnits))
}

// enqueue keeps a request until the question under way is answered. If one is kept already,
// it keeps the higher count for each limit. It needs mu.
func (r *reconciler) enqueue(request store.ReconcileRequest) {
	if r.next == nil {
		r.next = &request
		return
	}
	for i := range request.Counted {
		if i < len(r.next.Counted) {
			request.Counted[i] = max(request.Counted[i], r.next.Counted[i])
		}
	}
	if r.next.Slot.Before(request.Slot) {
		request.Slot = r.next.Slot // since the earlier slot more may have left the window
	}
	r.next = &request
}

// ask asks the store. It returns how many units were missing, and the request to ask next,
// if there is one.
func (r *reconciler) ask(
	ctx context.Context, b *Budget, request store.ReconcileRequest, total int64,
) (next store.ReconcileRequest, missing int, again bool) {
	reply, err := asks(ctx, b, "reconcile", b.Store.Reconcile, request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && len(reply.Limits) == len(request.Account.Limits) {
		r.askedAt = reply.Now
		r.logged = make([]loggedUnits, len(reply.Limits))
		recorded := 0
		for i, one := range reply.Limits {
			missing = max(missing, one.Missing)
			if request.Account.Limits[i].Algorithm.IsLog() {
				recorded = max(recorded, one.Missing) // from now on the totals include it
			}
		}
		for i, one := range reply.Limits {
			until := reply.Now.Add(request.Account.Limits[i].Window / replyShare)
			r.logged[i] = loggedUnits{until, one.AtSlot + min(one.Missing, math.MaxInt-one.AtSlot), total + int64(recorded)}
		}
		if missing > 0 {
			r.externalUntil, r.externalSeen = reply.Now.Add(longestWindow(request.Account)), time.Now()
		}
	}
	if r.next != nil && err == nil {
		next, r.next = *r.next, nil
		again = true
	}
	r.asking = again
	return next, missing, again
}
