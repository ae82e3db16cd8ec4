package ration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/durable"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/permits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A waiter is one caller between its call and its grant, which it fills in: it books, and stands in line if its slot lies
// ahead. It lives on its caller's stack and stays there; what books in the background has a copy.
type waiter struct {
	Grant
	pool     *Pool           // whose accounts may be charged; nil: the token's account
	excluded []string        // accounts of the pool that may not be charged, in ascending order
	waits    bool            // false: only a slot that has come will do
	reserve  int             // in thousandths
	values   string          // of what limits count apart
	options  *requestOptions // what the request says of itself; nil: nothing
	has      map[string]int  // of each unit; nil: it is not said
	stands   bool            // in a line, or it is a line's: what it is charged to must stay as it is

	ctx        context.Context // of what is booked in the background; nil: the caller books itself
	turn       uint64          // in the order in which this process's callers came
	begun      time.Time       // zero: there is no MaxWait
	latest     time.Time       // the latest slot that will do; zero: any
	until      time.Time       // when it ends for MaxWait, or the context; zero: not looked at, or never
	byDeadline bool            // it is the context's
	asleep     time.Time       // when the caller first found its slot ahead; zero: it never did
	due        time.Time       // the slot on this process's clock, at the latest
	state      *fleet.State    // what was known when it booked
	freed      int64           // lines.freed when it booked
	unwanted   func() bool     // reports whether nobody waits for the slot any more; nil: the caller does
}

// regroup is how long a process waits at least for others to give their slots back after the limits have
// changed, or an account was paused.
const regroup = 100 * time.Millisecond

// watchFrom is the wait from which on a caller has the store say when the status changes. A caller
// that waits for less books again, or is gone, before it could hear of much.
const watchFrom = 100 * time.Millisecond

// leave gives the caller a token of its account, the zero Token if that has none left, and measures how late it is for its
// slot, which has come. It is the last step before the caller returns: whatever may block comes before the look at the clock.
// Of a crowd that waits for the pool's lock all would otherwise be later than they say. Only a request that might be the probe of a
// token has another step. It returns slotMissed if the calls of the next window could follow this one too closely.
func (w *waiter) leave() outcome {
	if !w.Slot.After(w.now) && w.budget.spent.any.Load() {
		w.budget.noteRoom(w.account.ID, w.values)
	}
	if w.pool != nil {
		w.Token = w.pool.token(w.account.ID)
	}
	if w.accounts.TakesPermits && (w.held == nil || w.held.Account != w.account.ID) && !w.takePermit() {
		return noPermit
	}
	now := time.Now()
	w.Late = 0
	if !w.soonest.IsZero() || w.Slot.After(w.now) { // a store in this process answers at once
		w.Late = max(0, now.Sub(w.due))
	}
	if !w.asleep.IsZero() {
		w.Waited = now.Sub(w.asleep)
	}
	if w.account.Tolerance > 0 && w.Late > w.account.Tolerance {
		return slotMissed
	}
	return completed
}

// book books a slot within the longest wait. While the store does not answer it retries,
// or books offline, as Budget.Outage says.
func (w *waiter) book(ctx context.Context) error {
	b := w.budget
	allowed, byDeadline := w.longestWait(ctx)
	var r store.BookRequest
	w.request(&r, allowed)

	var retries storeRetries
	defer func() {
		if retries.pauses != nil {
			w.Waits = retries.wait.end(w.Waits)
		}
	}()
	behind := 0 // the changes of limits that it has come too late for
	for {
		var booked bool
		var err error
		if b.Outage != FailClosed && !b.reachable(ctx) {
			booked, err = w.bookOffline(ctx, r)
		} else {
			booked, err = w.ask(ctx, &r)
		}
		switch {
		case booked:
			w.traces.booked(ctx, w)
			return nil
		case err == nil:
			why := w.why(ctx)
			w.noteSpent(why)
			return &store.ExhaustedError{Budget: b.Name, Account: w.account.ID, RetryAfter: w.Slot.Sub(w.now),
				Allowed: allowed, Deadline: byDeadline, Wait: why}
		case behind < mostBehind && (errors.Is(err, errBehind) || b.keeper.IsOverridden(err, w.accounts) || errors.Is(err, store.ErrCost) && b.keeper.WidenPace(w.accounts, w.Cost, w.units)):
			behind++
			if err := w.findAccounts(); err != nil {
				return err
			}
			r = store.BookRequest{}
			w.request(&r, allowed)
		case durable.IsTemporary(err):
			b.durable.Failed(err)
			b.tell()
			if err := w.beforeRetry(ctx, &r, &retries, err); err != nil {
				w.cancelSoon() // the store may have booked it all the same
				return err
			}
		default:
			return err
		}
		allowed, byDeadline = w.longestWait(ctx)
		r.MaxWait = allowed
	}
}

// permitRest is how long after a slot was given back for want of a permit another one is booked.
const permitRest = 10 * time.Millisecond

// mostUnwanted is how often a booking that waits for a permit looks whether anybody waits for its slot any more.
const mostUnwanted = time.Second

// errUnwanted says that a booking waits for a permit that nobody needs any more.
var errUnwanted = errors.New("ration: nobody waits for the slot any more")

// A permitKey is what callers have in common that wait for the same permits.
type permitKey struct {
	list             *limits.List
	excluded, scopes string
}

// bookPermitted books a slot, of an account of which the call can have the permits that it needs. If the slot has come it has them.
func (w *waiter) bookPermitted(ctx context.Context) error {
	if err := w.awaitPermit(ctx); err != nil {
		return err
	}
	err := w.book(ctx)
	if err != nil || w.Slot.After(w.now) {
		w.held.Return()
		w.held = nil
	}
	return err
}

// awaitPermit waits for the permits of any account that may be charged. In front of accounts of which the store was not asked yet
// nobody waits: which of them it is is known with the slot.
func (w *waiter) awaitPermit(ctx context.Context) error {
	b, room := w.budget, &w.budget.lines.permits
	w.held = nil
	for {
		sets := w.permitSets()
		unknown := false
		for _, set := range sets {
			if len(set.Limits) == 0 {
				return nil
			}
			held, unasked := room.Take(set)
			if held != nil {
				w.held = held
				return nil
			}
			unknown = unknown || unasked
		}
		if unknown && len(sets) > 1 {
			return nil
		}
		why := rationtrace.Wait{Budget: b.Name, Account: sets[0].Account, Reason: rationtrace.Concurrency, Limit: limit.Limit{InFlight: sets[0].Limits[0].Max}.String()}
		allowed, byDeadline := w.longestWait(ctx)
		if allowed == 0 {
			if w.held = room.TakeNow(ctx, sets[0]); w.held != nil {
				return nil
			}
			return &store.ExhaustedError{Budget: b.Name, Account: why.Account, Allowed: allowed, Deadline: byDeadline, Wait: why}
		}
		if err := w.queueForPermit(ctx, sets, why, allowed, byDeadline); err != nil {
			return err
		}
		if w.held != nil {
			return nil
		}
		if err := w.findAccounts(); err != nil {
			return err
		}
	}
}

// queueForPermit waits until the caller is given permits. Without them and without an error it is to look again.
func (w *waiter) queueForPermit(ctx context.Context, sets []permits.Set, why rationtrace.Wait, allowed time.Duration, byDeadline bool) error {
	b := w.budget
	wait := b.beginWait(ctx, w.traces, why, watchFrom, time.Time{})
	defer func() { w.Waits = wait.end(w.Waits) }()
	c := b.lines.permits.Join(permitKey{w.accounts, strings.Join(w.excluded, ","), strings.Join(w.scopes, ",")}, w.turn, sets)
	timer := time.NewTimer(min(allowed, mostUnwanted))
	defer timer.Stop()
	for began := time.Now(); ; {
		select {
		case w.held = <-c.Taken():
			return nil
		case <-ctx.Done():
			c.Leave()
			return flight.Ended(ctx)
		case <-timer.C:
		}
		left := allowed - time.Since(began)
		switch {
		case w.unwanted != nil && w.unwanted():
			c.Leave()
			return errUnwanted
		case left <= 0 && !byDeadline: // or the context ends now
			c.Leave()
			return &store.ExhaustedError{Budget: b.Name, Account: why.Account, Allowed: allowed, Deadline: byDeadline, Wait: why}
		}
		timer.Reset(max(time.Millisecond, min(left, mostUnwanted)))
	}
}

// findAccounts finds the accounts that may be charged now.
func (w *waiter) findAccounts() (err error) {
	if w.pool != nil {
		w.accounts, err = w.pool.list(w.excluded)
	} else {
		w.accounts, err = w.budget.accountsOf(&w.Token)
	}
	if err != nil || w.accounts.Keyed == nil && len(w.accounts.Meters) == 0 && len(w.units) == 0 {
		return err
	}
	values, units := w.values, w.units
	if err = w.charge(); err == nil && w.stands && (w.values != values || !slices.Equal(w.units, units)) {
		err = errRegroup
	}
	return err
}

// errRegroup says that a line's requests are charged otherwise by now: each of its callers looks for another line.
var errRegroup = errors.New("ration: the limits count other units, or other keys, than before")

// charge finds what the request is charged beside its cost, for its accounts.
func (w *waiter) charge() (err error) {
	w.values, w.units = "", nil
	if keyed := w.accounts.Keyed; keyed != nil {
		var missing string
		if w.values, missing = keyed.Values(keysOf(w.options)); missing != "" {
			return fmt.Errorf("ration: budget %q: a limit counts each %[2]s by itself: say which a request has with WithKey(ctx, %[2]q, value), "+
				"an empty value if it has none; a Provider's Keys may say it", w.budget.Name, missing)
		}
		if w.accounts, err = w.accounts.WithValues(w.values); err != nil {
			return err
		}
	}
	if len(w.accounts.Meters) > 0 {
		if o := w.options; w.has == nil && o != nil { // once: an estimate changes with each answer
			w.has = o.units
			if w.kind = o.keys[w.budget.EstimateBy]; w.kind != "" {
				w.has = w.budget.used.Of(w.kind, w.has)
			}
		}
		guessed := w.options != nil && w.options.mayHaveMore
		if w.units, err = w.accounts.UnitsOf(w.has, w.Cost, guessed); guessed || w.kind != "" {
			for i, n := range w.units { // a guess is no reason to refuse a request for ever
				if n > 1 {
					w.units[i] = min(n, int(w.accounts.MeterLimitSet(i).MaxCost(w.accounts.RelevantScopes(w.scopes))))
				}
			}
		}
	}
	return err
}

// waitWithin sleeps for a time, without a slot, or until something holds, for a caller that has begun to wait then, and adds to the waits. If
// the caller may not wait that long it returns an *ExhaustedError at once.
func (b *Budget) waitWithin(ctx context.Context, length time.Duration, begun time.Time, until func() bool, why rationtrace.Wait, waits *[]rationtrace.Wait) error {
	w := waiter{Grant: Grant{budget: b}, waits: true, begun: begun}
	if allowed, byDeadline := w.longestWait(ctx); length > allowed {
		return &store.ExhaustedError{Budget: b.Name, RetryAfter: length, Allowed: allowed, Deadline: byDeadline, Wait: why}
	}
	return b.sleepUnless(ctx, length, begun, until, why, waits)
}

// longestWait returns how long the caller may still wait, and whether it is the context's
// deadline that bounds the wait.
func (w *waiter) longestWait(ctx context.Context) (longest time.Duration, byDeadline bool) {
	if !w.waits {
		return 0, false
	}
	until, byDeadline := w.until, w.byDeadline
	if until.IsZero() {
		until, byDeadline = w.waitsUntil(ctx)
	}
	if until.IsZero() {
		return store.Forever, false
	}
	return max(0, time.Until(until)), byDeadline
}

// outOfTime reports whether the error says that no slot came within the allowed time.
func outOfTime(err error) bool {
	return errors.Is(err, store.ErrExhausted) || errors.Is(err, context.DeadlineExceeded)
}

// waitsUntil returns until when the caller may wait, and whether it is the context's deadline; zero: for ever.
func (w *waiter) waitsUntil(ctx context.Context) (until time.Time, byDeadline bool) {
	if w.budget.MaxWait > 0 {
		until = w.begun.Add(w.budget.MaxWait)
	}
	if !w.latest.IsZero() && (until.IsZero() || w.latest.Before(until)) {
		until = w.latest
	}
	if deadline, found := ctx.Deadline(); found && (until.IsZero() || deadline.Before(until)) {
		return deadline, true
	}
	return until, false
}

// why returns what the caller waits for until the slot that it has booked, or would.
func (w *waiter) why(ctx context.Context) rationtrace.Wait {
	why := rationtrace.Wait{Budget: w.budget.Name, Account: w.account.ID}
	paused := w.pause(w.budget.fleet.State())
	isPause := paused.Kind != store.PauseSpent // or the window is spent, as the provider says
	if isPause && !paused.Until.IsZero() && !w.Slot.Before(paused.Until) && (paused.Until.After(w.now) || paused.IsRecent(w.Slot)) {
		why.Reason, why.Until, why.Cause = rationtrace.Pause, paused.Until, paused.Cause
		if !paused.Until.After(w.now) { // in its slow start
			why.Until = w.Slot
		}
		return why
	}
	why.Reason, why.Until, why.Limit = rationtrace.Quota, w.Slot, w.bindingLimit(ctx)
	return why
}

// sleepUnless sleeps for a time, or until something holds that the fleet's state tells, for a caller that has begun to wait then, zero: now,
// and adds to the waits.
func (b *Budget) sleepUnless(ctx context.Context, length time.Duration, begun time.Time, until func() bool, why rationtrace.Wait, waits *[]rationtrace.Wait) error {
	wait := b.beginWait(ctx, b.tracesOf(requestOptionsOf(ctx)), why, length, begun)
	defer func() { *waits = wait.end(*waits) }()
	if length >= watchFrom {
		defer b.fleet.Watch()()
	}
	for due := time.Now().Add(length); ; {
		wake := b.fleet.Woken() // before the look, or a change after it would wake nobody
		if until() {
			return nil
		}
		switch sleep(ctx, time.Until(due), wakers{status: wake}) {
		case completed:
			return nil
		case contextEnded:
			return flight.Ended(ctx)
		}
	}
}
