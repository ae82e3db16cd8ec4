package ration

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// traces are what observes a caller: the budget's trace and that of its context. Either may be nil.
type traces [2]*rationtrace.Trace

// tracesOf returns the traces of a caller whose context asks for these options.
func (b *Budget) tracesOf(o *requestOptions) traces {
	t := traces{b.Trace}
	if o != nil {
		t[1] = o.trace
	}
	return t
}

// tell calls one function of each trace, which pick returns.
func tell[T any](ctx context.Context, t traces, pick func(*rationtrace.Trace) func(context.Context, T), what T) {
	for _, one := range t {
		if one == nil {
			continue
		}
		if f := pick(one); f != nil {
			f(ctx, what)
		}
	}
}

// A waiting is a caller that people are shown as one that waits. The zero waiting is none.
type waiting struct {
	budget *Budget // nil: it has ended
	reason rationtrace.Reason
	since  *list.Element // in Budget.waits
}

// countWaiting counts a caller that has waited since then, and has the store told of it.
func (b *Budget) countWaiting(reason rationtrace.Reason, since time.Time) waiting {
	b.waiting[reason].Add(1)
	b.waits.mu.Lock()
	w := waiting{b, reason, b.waits.since.PushBack(since)}
	b.waits.mu.Unlock()
	b.fleet.KeepTelling()
	return w
}

func (w *waiting) end() {
	if w.budget == nil {
		return
	}
	w.budget.waiting[w.reason].Add(-1)
	w.budget.waits.mu.Lock()
	w.budget.waits.since.Remove(w.since)
	w.budget.waits.mu.Unlock()
	w.budget = nil
}

// A wait is one that lasts. The zero wait has not begun.
type wait struct {
	waiting
	ctx     context.Context
	traces  traces
	of      rationtrace.Wait
	begun   time.Time
	region  *trace.Region
	labeled bool
}

// waits are since when each caller waits.
type waits struct {
	mu    sync.Mutex // protects all below
	since list.List  // of time.Time, in no order: who books again has waited before
}

// longest returns how long the caller waits that has waited longest; zero: nobody does.
func (w *waits) longest(now time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := w.since.Front(); one != nil; one = one.Next() {
		longest = max(longest, now.Sub(one.Value.(time.Time)))
	}
	return longest
}

// beginWait tells that a caller begins to wait, presumably for so long. It has waited for something since then; zero: it has not. Profiles
// of goroutines show the reason of a long wait: the goroutine has labels for that time, and then those of its context again.
func (b *Budget) beginWait(ctx context.Context, t traces, why rationtrace.Wait, length time.Duration, since time.Time) wait {
	why.Budget = b.Name
	w := wait{ctx: ctx, traces: t, of: why, begun: time.Now(), labeled: length >= watchFrom}
	if since.IsZero() {
		since = w.begun
	}
	w.waiting = b.countWaiting(why.Reason, since)
	if trace.IsEnabled() {
		w.region = trace.StartRegion(ctx, "ration: "+why.Reason.String())
	}
	if w.labeled {
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("ration_budget", b.Name, "ration_reason", why.Reason.String())))
	}
	tell(ctx, t, func(o *rationtrace.Trace) func(context.Context, rationtrace.Wait) { return o.WaitBegan }, why)
	return w
}

// waitingNow returns how many callers wait, by the reason.
func (b *Budget) waitingNow() map[rationtrace.Reason]int {
	now := make(map[rationtrace.Reason]int)
	for reason := range b.waiting {
		if n := b.waiting[reason].Load(); n > 0 {
			now[rationtrace.Reason(reason)] = int(n)
		}
	}
	return now
}

// end tells that the wait has ended, and adds it to those before.
func (w *wait) end(before []rationtrace.Wait) []rationtrace.Wait {
	if w.ctx == nil {
		return before
	}
	w.of.Took = time.Since(w.begun)
	w.waiting.end()
	if w.region != nil {
		w.region.End()
	}
	if w.labeled {
		pprof.SetGoroutineLabels(w.ctx)
	}
	tell(w.ctx, w.traces, func(o *rationtrace.Trace) func(context.Context, rationtrace.Wait) { return o.WaitEnded }, w.of)
	if n := len(before); n > 0 && before[n-1].Reason == w.of.Reason && before[n-1].Account == w.of.Account {
		w.of.Took += before[n-1].Took
		before = before[:n-1]
	}
	return append(before, w.of)
}

// An outcome is how a caller's sleep ended, or why a slot was dropped.
type outcome int

const (
	completed       outcome = iota // zero, as a line.Reason of a good slot
	slotMissed                     // the caller was late for its slot
	slotLost                       // the account was paused meanwhile, or the booking was lost
	slotPaused                     // the account was paused beyond the slot, which lies ahead
	slotResumed                    // the account was resumed since it was booked, and may have an earlier slot
	contextEnded                   // the caller gives up
	accountsChanged                // the pool's tokens changed
	slotTaken                      // the slot may be another caller's: the store had not heard of this process for long
	limitsChanged                  // the fleet has other limits
	noPermit                       // as many calls are in flight as may be
	woken                          // the status changed, perhaps to no effect on this caller
)

// wakers are what wakes a caller before its time. A nil channel never does.
type wakers struct {
	accounts, status <-chan struct{} // closed when they change
}

// sleep is how callers wait that have no slot: for a time, until their context ends, or until
// something wakes them. For slots they stand in line.
func sleep(ctx context.Context, length time.Duration, w wakers) outcome {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.accounts:
		return accountsChanged
	case <-w.status:
		return woken
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return contextEnded
	}
	return completed
}

// describeWaits says what was waited for, and for how long.
func describeWaits(waits []rationtrace.Wait) string {
	var b strings.Builder
	for i, w := range waits {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(w.Took.Round(time.Millisecond).String() + " for " + w.Reason.String())
	}
	return b.String()
}

func (t traces) booked(ctx context.Context, w *waiter) {
	if t == (traces{}) {
		return
	}
	tell(ctx, t, func(o *rationtrace.Trace) func(context.Context, rationtrace.Booked) { return o.Booked },
		rationtrace.Booked{Budget: w.budget.Name, Account: w.account.ID, Cost: w.Cost, Slot: w.Slot, Wait: max(0, w.Slot.Sub(w.now))})
}

var whyRebooking = [...]string{
	slotMissed: "late", slotLost: "late", slotTaken: "taken back", slotPaused: "paused", slotResumed: "resumed", accountsChanged: "accounts changed", limitsChanged: "limits changed",
	noPermit: "concurrency",
}

func (t traces) rebooking(ctx context.Context, b *Budget, account string, how outcome) {
	if t == (traces{}) {
		return
	}
	tell(ctx, t, func(o *rationtrace.Trace) func(context.Context, rationtrace.Rebooking) { return o.Rebooking },
		rationtrace.Rebooking{Budget: b.Name, Account: account, Why: whyRebooking[how]})
}

// traceOutcome counts and tells what a caller got.
func (b *Budget) traceOutcome(ctx context.Context, g *Grant, err error) {
	if b == nil {
		return
	}
	t := g.traces
	if err != nil {
		t = b.tracesOf(requestOptionsOf(ctx))
	} else {
		b.rates.Quarter(time.Now()).Slots.Add(1)
		bucket := 0
		if waited := g.waitedBefore + g.Waited; waited > 0 {
			bucket = store.HistogramBucket(waited)
		}
		b.rates.Waited[bucket].Add(1)
	}
	if err != nil && outcomeOf(err) == rationtrace.Failed {
		b.noteFailure(err)
	}
	if t == (traces{}) {
		return
	}
	if err == nil {
		tell(ctx, t, func(o *rationtrace.Trace) func(context.Context, rationtrace.Granted) { return o.Granted },
			rationtrace.Granted{Budget: b.Name, Account: g.account.ID, Token: g.Token.id, Cost: g.Cost, Slot: g.Slot, Late: g.Late, Waits: g.Waits})
		return
	}
	tell(ctx, t, func(o *rationtrace.Trace) func(context.Context, rationtrace.GaveUp) { return o.GaveUp }, rationtrace.GaveUp{Budget: b.Name, Outcome: outcomeOf(err), Err: err})
}

// outcomeOf returns how a caller has ended that got an error.
func outcomeOf(err error) rationtrace.Outcome {
	switch {
	case errors.Is(err, store.ErrExhausted):
		return rationtrace.Exhausted
	case errors.Is(err, ErrNoToken):
		return rationtrace.NoToken
	case errors.Is(err, store.ErrStoreUnavailable):
		return rationtrace.StoreError
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return rationtrace.Cancelled
	}
	return rationtrace.Failed
}

// A failure is why a caller got nothing.
type failure struct {
	err error
	at  time.Time
}

// failures are the last of them.
type failures struct{ last atomic.Pointer[failure] }

// within returns the last failure, if it is not older than that; nil: none is.
func (f *failures) within(lately time.Duration) *failure {
	if last := f.last.Load(); last != nil && time.Since(last.at) < lately {
		return last
	}
	return nil
}

// noteFailure has the store told within a second that callers fail, for people to see: of a process with wrong limits it hears nothing else.
func (b *Budget) noteFailure(err error) {
	if !b.wired.Load() {
		return
	}
	isLimits := func(err error) bool {
		_, is := errors.AsType[*LimitsError](err)
		return is
	}
	if last := b.failures.within(time.Minute); last != nil && isLimits(err) && isLimits(last.err) {
		err = last.err // the same news, of another account
	}
	b.failures.last.Store(&failure{err, time.Now()})
	b.fleet.KeepTelling()
}

// attempt returns what is told of an attempt of a request on the grant.
func (g *Grant) attempt(req *http.Request) rationtrace.Attempt {
	return rationtrace.Attempt{Budget: g.budget.Name, Account: g.account.ID, Token: g.Token.id, Cost: g.Cost,
		Method: cmp.Or(req.Method, http.MethodGet), Host: req.URL.Host, Resends: g.resends}
}

func (t traces) sent(req *http.Request, g *Grant) {
	if t != (traces{}) {
		tell(req.Context(), t, func(o *rationtrace.Trace) func(context.Context, rationtrace.Attempt) { return o.Sent }, g.attempt(req))
	}
}

// urlOf returns a request's URL without its query, which may have secrets, and without the token's, which some APIs want in the path.
func urlOf(req *http.Request, t Token) string {
	secret, _ := t.open()
	u := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}
	text := u.String()
	if len(text) < len(secret) { // nor any spelling of it, which is longer
		return text
	}
	return censor.New("SECRET", secret).Text(text)
}

func (t traces) answered(req *http.Request, g *Grant, resp *http.Response, err error, begun time.Time) {
	if t == (traces{}) {
		return
	}
	answered := rationtrace.Answered{Attempt: g.attempt(req), URL: urlOf(req, g.Token), Err: redact(err, g.Token), Took: time.Since(begun)}
	if resp != nil {
		answered.Status = resp.StatusCode
	}
	tell(req.Context(), t, func(o *rationtrace.Trace) func(context.Context, rationtrace.Answered) { return o.Answered }, answered)
}

func (t traces) refused(req *http.Request, g *Grant, status int, f *provider.Feedback, cause string) {
	if t != (traces{}) {
		tell(req.Context(), t, func(o *rationtrace.Trace) func(context.Context, rationtrace.Refused) { return o.Refused },
			rationtrace.Refused{Attempt: g.attempt(req), Status: status, Reason: string(f.Reason), Scope: string(f.Scope), Wait: f.Wait.Value, Cause: cause})
	}
}

func (t traces) retrying(req *http.Request, g *Grant, resp *http.Response, err error, after time.Duration, left int) {
	if t == (traces{}) {
		return
	}
	retrying := rationtrace.Retrying{Attempt: g.attempt(req), After: after, Left: left, Err: err}
	if resp != nil {
		retrying.Status = resp.StatusCode
	}
	tell(req.Context(), t, func(o *rationtrace.Trace) func(context.Context, rationtrace.Retrying) { return o.Retrying }, retrying)
}
