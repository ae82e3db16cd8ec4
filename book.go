package ration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// askAgain bounds how often a booking is asked for again because a log was lost or
// a clock has stepped.
const askAgain = 4

// ask asks the store once, and again after what it has lost is mended.
func (w *waiter) ask(ctx context.Context, r *store.BookRequest) error {
	b := w.budget
	forgets := w.accounts.losesLogs
	var (
		err   error
		asked time.Time
	)
	for left := askAgain; left > 0; left-- {
		asked = time.Now()
		if forgets {
			b.stampRequest(r, asked)
		}
		if left == 1 {
			r.Expect = time.Time{} // the way is too slow to compare clocks over
		}
		w.booking.Booking, err = b.Store.Book(ctx, *r)
		if err == nil && w.booking.Ahead {
			r.Ahead = b.compareClocks(w.booking.Now)
			continue
		}
		if err != nil || !w.booking.Lost {
			break
		}
		if err = b.refresh(ctx); err != nil {
			break
		}
	}
	if err == nil && (w.booking.Lost || w.booking.Ahead) {
		err = &store.StoreError{Op: "book", Err: errors.New("the store loses its logs again and again")}
	}
	if err != nil {
		w.booking = booking{Booking: store.Booking{ID: r.ID, Budget: r.Budget}}
		return err
	}
	at := w.accounts.Index(w.booking.Account)
	if at < 0 {
		return &store.StoreError{Op: "book", Permanent: true, Err: fmt.Errorf("account %q was not asked for", w.booking.Account)}
	}
	// The wait is counted from where the store's clock stood at the latest, so that the
	// caller does not leave before its slot; how late it left at the most, from where it
	// stood at the soonest. A Store tells when it was.
	arrived := w.booking.ReadAt
	if arrived.IsZero() {
		arrived = time.Now()
		w.soonest, w.due = b.clocks.Place(w.booking.Now, asked, arrived)
	} else {
		w.soonest, w.due = arrived, arrived
	}
	if wait := w.booking.Slot.Sub(w.booking.Now); wait > 0 {
		w.soonest, w.due = w.soonest.Add(wait), w.due.Add(wait)
	}
	b.answered(ctx, &w.booking.Booking, w.accounts, at, arrived)
	w.newest = max(w.newest, w.booking.Effective.Revision)
	return nil
}

func (w *waiter) request(longest time.Duration) store.BookRequest {
	b := w.budget
	w.newest = b.newestKnown()
	return store.BookRequest{ID: store.NewBookingID(), Budget: b.Name, Accounts: w.accounts.Accounts, Scopes: w.options.scopes,
		Reserve: w.options.reserve, Revision: w.accounts.revision, Cost: w.cost, MaxWait: longest}
}

// retryBooking asks until the store answers. It asks with the same ID for as long as
// the store is sure to know it, so that an answer that was lost is found again.
func (w *waiter) retryBooking(ctx context.Context, r store.BookRequest, err error) error {
	const sameID = 30 * time.Second
	patience := w.budget.RetryStoreFor
	if patience == 0 {
		patience = defaultPatience
	}
	policy := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(patience),
	)
	named := time.Now()
	again := func() error {
		if time.Since(named) > sameID {
			w.handBack(booking{Booking: store.Booking{ID: r.ID, Budget: r.Budget}}, w.accounts)
			r.ID, named = store.NewBookingID(), time.Now()
		}
		r.MaxWait, _ = w.longestWait(ctx)
		err = w.ask(ctx, &r)
		if err != nil && !store.Passes(err) {
			return backoff.Permanent(err)
		}
		return err
	}
	if stopped := backoff.Retry(again, backoff.WithContext(policy, ctx)); stopped != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			return fmt.Errorf("%w: %w", ended(ctx), err)
		}
		return err
	}
	return nil
}

// A bookOptions is what one caller asks for, beside its cost.
type bookOptions struct {
	scopes  []string
	reserve int // in thousandths
}

// An requestOptions is what a context asks for: one value, because a request looks for it.
type requestOptions struct {
	scopes     []string
	reserve    float64
	cost       int
	hasReserve bool // keep is said
	hasCost    bool // cost is said
}

type requestOptionsKey struct{}

// requestOptionsOf returns what the context asks for; nil: nothing.
func requestOptionsOf(ctx context.Context) *requestOptions {
	a, _ := ctx.Value(requestOptionsKey{}).(*requestOptions)
	return a
}

// with returns a context that asks for something more.
func with(ctx context.Context, set func(*requestOptions)) context.Context {
	var a requestOptions
	if known := requestOptionsOf(ctx); known != nil {
		a = *known
	}
	set(&a)
	return context.WithValue(ctx, requestOptionsKey{}, &a)
}

// WithScopes returns a context whose requests have the scopes, and no others: a
// limit whose Scope is one of them covers them too.
func WithScopes(ctx context.Context, scopes ...string) context.Context {
	return with(ctx, func(a *requestOptions) { a.scopes = slices.Clone(scopes) })
}

// WithReserve returns a context whose requests leave a share of every limit, from 0
// to 0.999, to requests that keep less back, in place of [Budget.Reserve].
func WithReserve(ctx context.Context, share float64) context.Context {
	return with(ctx, func(a *requestOptions) { a.reserve, a.hasReserve = share, true })
}

// WithCost returns a context whose requests cost so many units when a
// [Transport] sends them, in place of what Transport.Cost says.
func WithCost(ctx context.Context, units int) context.Context {
	return with(ctx, func(a *requestOptions) { a.cost, a.hasCost = units, true })
}

// bookOptions returns what the context asks for.
func (b *Budget) bookOptions(ctx context.Context) (bookOptions, error) {
	if b == nil {
		return bookOptions{}, b.check()
	}
	var d bookOptions
	share := b.Reserve
	if a := requestOptionsOf(ctx); a != nil {
		d.scopes = a.scopes
		if a.hasReserve {
			share = a.reserve
		}
	}
	for _, scope := range d.scopes {
		if !limit.ValidScope(scope) {
			return bookOptions{}, fmt.Errorf("ration: scope %q: it must be 1 to 32 letters, digits, '-', '_' and '.'", scope)
		}
	}
	if !(share >= 0 && share <= 0.999) {
		return bookOptions{}, fmt.Errorf("ration: Keep is %v: it must be from 0 to 0.999", share)
	}
	d.reserve = int(math.Ceil(share*1000 - 1e-9))
	return d, nil
}

// A booking is a store's, or one of this worker alone while the store is down.
type booking struct {
	store.Booking
	offline bool
}

// A Grant is a booking whose slot has come: its holder may send once. A grant
// is a value.
type Grant struct {
	// Token is the one to send with.
	Token Token
	// Cost is in units.
	Cost int
	// Slot is when it may leave, on the store's clock.
	Slot time.Time
	// Late is how long after its slot the caller woke, on the caller's clock.
	Late time.Duration

	budget   *Budget
	soonest  time.Time // Slot on this process's clock, at the soonest
	id       store.BookingID
	account  string
	entry    string
	total    int64     // Booking.Total
	now      time.Time // the store's clock when it was booked
	offline  bool      // booked while the store was down
	accounts *accountList
	scopes   []string
	counted  bool // the budget's smoother counts the call as in flight
}

// booking returns what of the booking it takes to hand it back.
func (g *Grant) booking() booking {
	return booking{store.Booking{ID: g.id, Budget: g.budget.Name, Cost: g.Cost, Booked: true, Account: g.account,
		Slot: g.Slot, Now: g.now, Entry: g.entry}, g.offline}
}

// Cancel hands the grant's units back to the fleet. It says that nothing was
// sent: after a request that may have reached the provider it would overspend.
// To cancel twice is to cancel once; to cancel the zero Grant is nothing.
func (g Grant) Cancel(ctx context.Context) error {
	if g.budget == nil {
		return nil
	}
	return g.budget.cancel(ctx, g.booking(), g.accounts)
}

// cancel hands back a grant on which nothing was sent.
func (g *Grant) cancelSoon() { g.budget.cancelSoon(g.booking(), g.accounts) }

// recordSends corrects the log if the call left more than once, or so much later than its
// slot that a call of the next window could follow it too closely: its connection
// took long to make, or the machine was busy. What it spent is entered where it
// left, and its slot handed back in the same step. If the store fails the slot
// stands, and Margin is what is left between the two calls.
func (g Grant) recordSends(ctx context.Context, at time.Time, times int) {
	account := g.accounts.find(g.account)
	after, tolerance := at.Sub(g.soonest), account.tolerance
	b, instead := g.budget, g.booking().Booking
	if tolerance == 0 || after <= tolerance {
		instead = store.Booking{} // the slot stands for one of them
		times--
	}
	if times < 1 || g.offline {
		return
	}
	ctx, stop := soon(ctx)
	defer stop()
	slot := g.Slot.Add(max(0, after) + time.Microsecond - 1).Truncate(time.Microsecond)
	spent := store.Spending{Slot: slot, Cost: g.Cost * times}
	// The one that hands the slot back comes last: until then both count.
	charged := append(slices.Clone(g.accounts.shared), *account)
	for i, account := range charged {
		r := store.RecordRequest{ID: store.NewBookingID(), Budget: b.Name, Account: account.Account, Scopes: g.scopes,
			Spent: []store.Spending{spent}}
		if i == len(charged)-1 {
			r.Replaces = instead
		}
		if err := b.Store.Record(ctx, r); err != nil {
			return
		}
	}
	if !g.accounts.losesLogs {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.journal.remove(&instead, g.accounts)
	for _, account := range charged {
		b.journal.add(&account, &store.Booking{Slot: spent.Slot, Now: g.now, Cost: spent.Cost}, spent.Slot)
	}
}
