package ration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/durable"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/permits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// mostBehind bounds how often a caller begins a booking anew because limits were changed.
const mostBehind = 4

// errBehind says that the budget's limits were changed: nothing was booked, and the accounts are to be found again.
var errBehind = errors.New("ration: the budget's limits change again and again")

// ask asks the store for a booking, and reports whether it booked. After an error the grant names what the store may have booked all the
// same.
func (w *waiter) ask(ctx context.Context, r *store.BookRequest) (booked bool, err error) {
	b, s := w.budget, &w.budget.durable
	w.id, w.account, w.offline, w.holder = r.ID, nil, false, store.BookingID{}
	if !s.Clock.Learned.Load() {
		if err := w.learnClock(ctx, r); err != nil {
			return false, err
		}
	}

	for {
		var answer durable.Answer
		if err := s.Book(ctx, r, w.waits, &answer); err != nil {
			return false, err
		}
		if answer.Behind {
			if err := b.fleet.Refresh(ctx); err != nil {
				return false, err
			}
			return false, errBehind
		}
		if err := w.answered(ctx, &answer); err != nil || !answer.Retry {
			return answer.Booked && err == nil, err
		}

		wait := b.beginWait(ctx, w.traces, rationtrace.Wait{Account: w.account.ID, Reason: rationtrace.StoreDown, Until: w.Slot,
			Cause: "it has lost a log, and the workers tell it again what they had booked"}, time.Until(w.due), time.Time{})
		slept := sleep(ctx, time.Until(w.due), wakers{})
		if w.Waits = wait.end(w.Waits); slept == contextEnded {
			return false, flight.Ended(ctx)
		}
		if r.MaxWait != store.Forever {
			r.MaxWait = max(0, r.MaxWait-answer.Slot.Sub(answer.Now))
		}
	}
}

// learnClock asks the store for the time, which this process has never heard. An error is that of a
// store that does not answer: it would not answer a booking either. If it refuses, the booking says why.
func (w *waiter) learnClock(ctx context.Context, r *store.BookRequest) error {
	b := w.budget
	if b.fleet.State().Status.Version == 0 {
		// The answer to a booking would be followed by that question, for which its slot does not wait.
		if err := b.fleet.Refresh(ctx); durable.IsTemporary(err) {
			return err
		}
	}
	hurried := slices.MinFunc(w.accounts.Each, func(a, b limits.Account) int { return cmp.Compare(a.Tolerance, b.Tolerance) })
	err := b.durable.Learn(ctx, *r, hurried.Tolerance, hurried.Leads)
	if durable.IsTemporary(err) {
		return err
	}
	return nil
}

// answered applies the store's answer: first its slot, and then what it says beside.
func (w *waiter) answered(ctx context.Context, a *durable.Answer) error {
	b, at := w.budget, w.accounts.Index(a.Account)
	if at < 0 {
		return &store.StoreError{Op: "book", Permanent: true, Err: fmt.Errorf("account %q was not asked for", a.Account)}
	}
	own, s := &w.accounts.Each[at], &b.durable
	w.account, w.Slot, w.now, w.entry, w.total = own, a.Slot, a.Now, a.Entry, a.Total
	w.soonest, w.due = a.Soonest, a.Due
	if s.Local {
		if a.Version == b.fleet.State().Status.Version && a.Effective.Limits == nil && !b.keeper.Adopts.Load() {
			return nil // the answer says nothing else, and the store loses no logs
		}
		s.Sight(a)
	} else {
		wait := a.Slot.Sub(a.Now)
		s.Lead.Note(a.Arrived.Sub(w.due)+wait, wait, own.Leads, a.Arrived)
	}

	tells := a.Stepped != 0
	if tells {
		b.emit(Event{Kind: ClockStepped, By: a.Stepped})
	}
	if a.Effective.Limits != nil || b.keeper.Adopts.Load() {
		tells = w.adopt(a) || tells
	}
	if s.Enter(ctx, a, w.account, w.accounts.Beside(own.ID, a.Cost, w.units)) || tells {
		b.tell()
	}
	if !b.fleet.Heard(a.Version, a.Arrived) {
		_ = b.fleet.Refresh(ctx) // or the next caller does
	}
	return nil
}

// adopt takes in the limits under which the store has booked, and reports whether people are to be told.
func (w *waiter) adopt(a *durable.Answer) (tells bool) {
	b, own := w.budget, w.account
	w.account, tells = b.keeper.Adopt(own, a.Effective, a.Asked)
	if tells {
		b.emit(Event{Kind: LimitsOverridden, Account: own.ID, Ours: own.Limits, Theirs: a.Effective.Limits})
	}
	return tells
}

// request fills in the request for a booking, with the longest wait.
func (w *waiter) request(r *store.BookRequest, longest time.Duration) {
	w.state, w.freed = w.budget.fleet.State(), w.budget.lines.freed.Load()
	r.ID, r.Budget, r.Accounts, r.Excluded, r.Scopes = store.NewBookingID(), w.budget.Name, w.accounts.Accounts, w.excluded, w.scopes
	r.Reserve, r.Cost, r.MaxWait = w.reserve, w.Cost, longest
	r.Units = w.units
	if w.accounts.TakesPermits && len(w.accounts.Each) > 1 {
		r.Excluded = w.withoutBusy()
	}
	w.accounts.Rules.Stamp(r)
}

// bookOptions returns what options ask for beside a cost.
func (b *Budget) bookOptions(o *requestOptions) (scopes []string, reserve int, err error) {
	if b == nil {
		return nil, 0, b.check()
	}
	if o != nil {
		scopes = o.scopes
	}
	for _, scope := range scopes {
		if !limit.ValidScope(scope) {
			return nil, 0, &ConfigError{b.Name, "WithScopes", fmt.Errorf("scope %q: it must be 1 to 32 letters, digits, '-', '_' and '.'", scope)}
		}
	}
	share := b.Reserve
	if o != nil && o.hasReserve {
		share = o.reserve
	}
	if !(share >= 0 && share <= 0.999) {
		return nil, 0, &ConfigError{b.Name, "WithReserve", fmt.Errorf("the reserve is %v: it must be from 0 to 0.999", share)}
	}
	return scopes, int(math.Ceil(share*1000 - 1e-9)), nil // too much left does no harm
}

// A Grant is a booking whose slot has come: its holder may send one request. A grant is a
// value. [GrantOf] returns the grant of a response. Cancel gives back a grant that is not
// used.
type Grant struct {
	// Token is the token to send with.
	Token Token
	// Cost is what the request costs, in units.
	Cost int
	// Slot is when the request may leave, on the store's clock.
	Slot time.Time
	// Waited is how long the caller waited for a slot, booking again included. Zero: its slot
	// had come when it was booked.
	Waited time.Duration
	// Late is how long after its slot the caller woke, or had the answer that the slot had come,
	// on the caller's clock.
	Late time.Duration
	// Waits are what the caller waited for on its way to the grant, in order, with what each wait
	// took. Nil: nothing. It must not be changed.
	Waits []rationtrace.Wait

	booked

	budget   *Budget
	scopes   []string
	traces   traces
	sends    int    // that its booking counts; 0: one
	replaced bool   // another slot was booked in place of it, in the same step
	kind     string // of Budget.EstimateBy; empty: what it uses says nothing about others
	resends  int    // attempts of the request before this one
	// waitedBefore is how long it waited before it booked, for a pause of a part or in vain.
	waitedBefore time.Duration
	probe        *store.Quarantine // the token's while this call probes it; nil: this is no probe
	cooling      *cooldown.Pause   // of a part, likewise
}

// A booked is what the store has answered to a booking.
type booked struct {
	id       store.BookingID
	account  *limits.Account // the charged one; nil: the store's answer was lost
	accounts *limits.List    // of which it is
	entry    string
	counted  time.Time       // when the store counts it as sent; zero: at its slot
	total    int64           // Booking.Total
	now      time.Time       // the store's clock when it was booked
	soonest  time.Time       // the earliest instant of this process's clock that may be the slot; zero: the store is in it
	held     *permits.Held   // what the call has of limits of calls in flight; nil: nothing
	units    []int           // what the meters of the account are charged with
	offline  bool            // booked while the store was down: only this worker knows of it
	holder   store.BookingID // as which the store was told of the booking, which waits; zero: it was not
}

// LogValue returns what the fields say, for log/slog. It has the token's ID and no secret.
func (g Grant) LogValue() slog.Value {
	all := []slog.Attr{slog.String("token", g.Token.ID()), slog.Int("cost", g.Cost), slog.Time("slot", g.Slot),
		slog.Duration("waited", g.Waited), slog.Duration("late", g.Late)}
	if g.account != nil {
		all = append(all, slog.String("account", g.account.ID))
	}
	if len(g.Waits) > 0 {
		all = append(all, slog.String("waits", describeWaits(g.Waits)))
	}
	return slog.GroupValue(all...)
}

// Format writes, whatever the verb, which token may be used from when on, and for what it waited.
func (g Grant) Format(f fmt.State, _ rune) {
	text := fmt.Sprintf("token %s, %d units, from %s", g.Token.ID(), g.Cost, g.Slot.UTC().Format(time.RFC3339Nano))
	if len(g.Waits) > 0 {
		text += ", after " + describeWaits(g.Waits)
	}
	_, _ = io.WriteString(f, text)
}

// soonestSlot returns the earliest instant of this process's clock that may be Slot.
func (g *Grant) soonestSlot() time.Time {
	if g.soonest.IsZero() {
		return g.budget.Store.At(g.Slot)
	}
	return g.soonest
}

// booking returns the grant's booking, as far as its cancellation needs it.
func (g *Grant) booking() store.Booking {
	b := store.Booking{ID: g.id, Budget: g.budget.Name}
	if g.account != nil {
		b.Cost, b.Booked, b.Account, b.Slot, b.Now, b.Entry = g.Cost, true, g.account.ID, g.Slot, g.now, g.entry
		if !g.counted.IsZero() {
			b.Slot = g.counted
		}
	}
	return b
}

// Cancel gives the grant's units back to the fleet. Call it only if nothing was sent: if
// the request may have reached the provider, the fleet would exceed the limit. Cancelling
// again, or cancelling the zero Grant, does nothing. The context bounds how long Cancel waits for the store, which is told also if the
// context has ended. After a [*StoreError] the units are unused until they have left their window.
func (g Grant) Cancel(ctx context.Context) error {
	if g.budget == nil {
		return nil
	}
	return g.budget.cancel(ctx, &g)
}

// cancelSoon cancels a booking on which nothing was sent, and waits for the store for cancelWithin at most. If it cannot be reached
// the slot counts until it has left its window: some quota is then unused, and none is
// overspent.
func (g *Grant) cancelSoon() {
	kept := *g // g stays on its caller's stack
	cancelAll([]*Grant{&kept})
}

// cancel cancels bookings in the store that they were booked in. They are on their way there also if the context has ended.
func (b *Budget) cancel(ctx context.Context, all ...*Grant) error {
	gone := make([]durable.Cancelled[*limits.Account], len(all))
	for i, g := range all {
		if g.held != nil {
			g.held.Return()
		}
		gone[i] = durable.Cancelled[*limits.Account]{Booking: g.booking(), Holder: g.holder, Offline: g.offline, Replaced: g.replaced}
		if g.account != nil && g.accounts != nil && !b.durable.Local {
			gone[i].Charges = g.charges()
		}
	}
	return b.durable.Cancel(ctx, gone...)
}

// cancelWithin bounds how long a caller that gives up waits for the store. The store goes
// on afterwards.
const cancelWithin = 250 * time.Millisecond

// cancelAll cancels grants of one budget as cancelSoon does. The store has all of them before anybody stops waiting.
func cancelAll(all []*Grant) {
	if len(all) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), cancelWithin)
	defer stop()
	_ = all[0].budget.cancel(ctx, all...)
}

// mostLate bounds how many late slots a process has cancelled at once. A busy process has some hundreds, and each that is not
// cancelled costs a call. A process with ten times as many callers as its machine can wake in time has thousands, and cancelling
// them all would keep the store too busy for bookings.
const mostLate = 512

// cancelLate cancels slots that have passed before their callers could use them, and waits for that as cancelAll does: what is
// booked next may have their room. Beyond mostLate a slot counts until it has left its window.
func (b *Budget) cancelLate(all []*Grant) {
	l := &b.lines
	l.mu.Lock()
	all = all[:min(len(all), mostLate-l.late)]
	l.late += len(all)
	l.mu.Unlock()
	cancelAll(all)
	l.mu.Lock()
	l.late -= len(all)
	l.mu.Unlock()
}

// pause returns the longest known pause of a booking's accounts.
func (o *booked) pause(known *fleet.State) cooldown.Pause {
	longest := known.PauseOf("")
	longer := func(account string) {
		if p := known.PauseOf(account); p.Until.After(longest.Until) {
			longest = p
		}
	}
	longer(o.account.ID)
	for _, account := range o.accounts.Shared {
		longer(account.ID)
	}
	return longest
}

// charges returns all that the grant's booking charges.
func (g *Grant) charges() []limits.Charge {
	return append(g.accounts.Beside(g.account.ID, g.Cost, g.units), limits.Charge{Account: g.account, Units: g.Cost})
}

// call returns what the grant's call was charged to.
func (g *Grant) call() limits.Call {
	return limits.Call{Account: g.account, List: g.accounts, Slot: g.Slot, Waited: g.Waited > 0, Cost: g.Cost, Units: g.units, Total: g.total, Scopes: g.scopes}
}

// noteServed has a higher pace tried of what a call was charged to that was served. It is for budgets of which some account has a card.
func (b *Budget) noteServed(g *Grant) {
	if !g.offline && g.account != nil {
		c := g.call()
		b.keeper.Served(&c)
	}
}
