package ration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/clock"
	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/inflight"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
	"golang.org/x/sync/singleflight"
)

// A Budget is the limits of one kind of quota, kept in a Store for every
// account that spends it. Workers anywhere that use the same Name in the same
// Store share the accounts' logs; they must give the same Limits.
//
// Set the fields before first use and do not change them or copy the Budget
// afterwards. Its methods are safe for concurrent use.
//
// Wait blocks until a slot and Try does not; both book. Remaining and Usage
// tell what is left and change nothing. To draw on several tokens as if they
// were one, put the Budget into a [Pool].
type Budget struct {
	// Name names the logs in the store: 1 to 200 bytes without spaces or
	// braces. Required.
	Name string
	// Limits are all kept at once: 10 a second and 5,000 an hour, say.
	// Required, unless every token has its own. [Budget.SetLimits] changes them
	// later.
	Limits []limit.Limit
	// Revision is that of the limits. Where workers of a fleet have different
	// limits for an account those of the highest revision rule, and workers with
	// others keep them and are told by a [Event]. Different limits of one
	// revision are a [*LimitsError]. From 0.
	Revision int
	// Shared are accounts that every request is charged to beside its token's,
	// in the same step: an application's, or an address's, each with limits of
	// its own. Workers may have different ones.
	Shared []SharedAccount
	// Keep is the share of every limit, from 0 to 0.999, that callers leave to
	// those who keep less: a backfill with a Keep of 0.2 never has more than
	// 80 % of any window, and a caller that keeps nothing back overtakes those of
	// it that wait, in the fifth that is left. Either gets a slot when it books,
	// which nobody takes away. [WithKeep] says otherwise for one request.
	Reserve float64
	// Store keeps the logs: a *RedisStore for a fleet, a *Store for one
	// process. Required: there is no default, because a store that is not
	// shared would overspend in silence.
	Store store.Store
	// Margin is added to every Window, because the provider counts a call when
	// it arrives, not when it leaves: of two calls that leave a window apart,
	// the first may be slow and the second fast. A caller that wakes later than
	// its slot and half the margin books anew. Zero: a hundredth of the window, but
	// at least 10 ms and at most 1 s; 5,000 an hour loses 0.03 % to it. For GCRA
	// also at most what the burst covers and a tenth of a unit's share of the
	// window: what the burst does not cover is added to each spacing.
	// Negative: none, and a caller that wakes late is not sent back. At most 24 h.
	Margin time.Duration
	// MaxWait is the longest that Wait and Pool.Take wait for a slot. A slot
	// beyond it is an *ExhaustedError at once. Zero: as long as the context
	// allows.
	MaxWait time.Duration
	// Patience is how long Wait and Pool.Take go on asking a store that does
	// not answer before they return an error that matches ErrStoreUnavailable.
	// Nothing is sent meanwhile. Zero: 30 s, or what the context allows.
	// Negative: they ask once.
	RetryStoreFor time.Duration

	// Outage is what happens while the store does not answer. Zero: FailClosed,
	// nothing is sent.
	Outage Outage
	// Noticed, unless it is nil, is called when the store went down or came
	// back, lost a log, or had its clock set. It must not block.
	OnEvent func(Event)

	outage         outage
	refreshing     singleflight.Group
	rules          atomic.Pointer[limitRules]                  // in place of Limits and Revision; nil: they stand
	newestRevision atomic.Int64                                // the highest revision of the fleet's
	latest         atomic.Pointer[tokenAccount]                // of tokenAccounts
	version        atomic.Int64                                // known.Version
	keyPauses      atomic.Pointer[cooldown.KeyPauses]          // of known; nil: there are none
	quarantined    atomic.Pointer[map[string]QuarantinedToken] // of known, by the token's ID
	clocks         clock.Clock
	reconcilers    sync.Map    // of *teller, by account
	reconciles     atomic.Bool // whether there are any
	smoother       inflight.Smoother

	mu            sync.Mutex                 // protects all below
	rulesChanged  chan struct{}              // closed when rules change; nil: nobody waits for it
	effective     map[string]effectiveLimits // the limits that were last told to rule, by account
	tokenAccounts map[string]*tokenAccount   // by the token's ID
	known         store.Status
	paused        map[store.Pause]time.Time // the ends of the pauses heard of, which have no Until themselves
	confirmedAt   time.Time                 // when known was last confirmed, on this process's clock
	heartbeatAt   time.Time                 // when the store was last told of this worker, likewise
	recoveredUpTo time.Time                 // the Status.Lost up to which own was entered again
	journal       journal
	voidBefore    time.Time       // bookings made before it and ahead of it are void
	worker        store.BookingID // this budget value, among the fleet's
	lastBooked    time.Time       // the Now of the latest booking
	answeredNow   time.Time       // the Now of the latest answer
	answeredAt    time.Time       // when that answer came, on this process's clock
}

const defaultRetryStoreFor = 30 * time.Second

// Wait books cost units for the token's account and blocks until their slot.
// The caller then sends, once.
//
// It returns an [*ExhaustedError] at once, and books nothing, if the slot lies
// beyond the context's deadline or MaxWait; the context's error if that ends
// while it waits, and its slot then goes to another caller; and a [*StoreError]
// if the store does not answer. A cost that no limit ever admits is an error.
func (b *Budget) Wait(ctx context.Context, t Token, cost int) (Grant, error) {
	return b.take(ctx, t, cost, true)
}

// Try books cost units for the token's account if they may leave now. If not it
// books nothing and returns an [*ExhaustedError] that says when the next slot
// is. It never waits for a slot, and for the store only for one answer.
func (b *Budget) Try(ctx context.Context, t Token, cost int) (Grant, error) {
	return b.take(ctx, t, cost, false)
}

// take is Wait, or Try.
func (b *Budget) take(ctx context.Context, t Token, cost int, waits bool) (g Grant, err error) {
	accounts, err := b.accountsOf(&t)
	if err != nil {
		return Grant{}, err
	}
	if accounts.immediate != nil && b.tryFastPath(ctx, accounts, cost, &g) {
		g.Token = t
		return g, nil
	}
	w := waiter{budget: b, token: t, accounts: accounts, cost: cost, waits: waits}
	if err := w.wait(ctx); err != nil {
		return Grant{}, err
	}
	return w.grant(), nil
}

// Remaining returns how many units of the token's account no limit has given
// away: 587 after 4,413 calls of 5,000 in the hour. It counts what the whole
// fleet has booked, also ahead, and changes nothing.
func (b *Budget) Remaining(ctx context.Context, t Token) (int, error) {
	usage, err := b.Usage(ctx, t)
	return usage.Remaining(), err
}

// Usage returns, for each limit of the token's account, what is used, what is
// left and when more will be. It changes nothing.
func (b *Budget) Usage(ctx context.Context, t Token) (store.Usage, error) {
	accounts, err := b.accountsOf(&t)
	if err != nil {
		return store.Usage{}, err
	}
	all, err := b.usage(ctx, accounts)
	if err != nil {
		return store.Usage{}, err
	}
	return all[0], nil
}

// Pause keeps every slot of the token's account from coming for the given time,
// in the whole fleet, and returns when that ends on the store's clock. It only
// lengthens a pause that is in force. Callers that are waiting for an earlier
// slot book anew behind it.
func (b *Budget) Pause(ctx context.Context, t Token, length time.Duration) (time.Time, error) {
	if _, err := b.accountsOf(&t); err != nil {
		return time.Time{}, err
	}
	return b.pause(ctx, store.PauseRequest{Account: t.AccountID(), For: length})
}

// PauseAll is Pause for every account of the budget: where the provider speaks of an
// application or an address, say, or while it is down.
func (b *Budget) PauseAll(ctx context.Context, length time.Duration) (time.Time, error) {
	if err := b.check(); err != nil {
		return time.Time{}, err
	}
	return b.pause(ctx, store.PauseRequest{For: length})
}

// Reset tells when the window under way of the token's account ends, on the
// store's clock, as a header of the provider's said. It corrects limits with
// FirstUse, whose windows a call may have begun of which the fleet does not know,
// and changes no others. A header in whole seconds is best rounded up. Of several
// such limits all that may end then are corrected: give each budget one.
func (b *Budget) Reset(ctx context.Context, t Token, at time.Time) error {
	accounts, err := b.accountsOf(&t)
	if err != nil {
		return err
	}
	return b.Store.Reset(ctx, store.ResetRequest{Budget: b.Name, Account: accounts.At(0), At: at})
}

// pause makes a pause in this budget.
func (b *Budget) pause(ctx context.Context, r store.PauseRequest) (time.Time, error) {
	r.Budget = b.Name
	reply, err := b.Store.Pause(ctx, r)
	if err != nil {
		return time.Time{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notePause(store.Pause{Account: r.Account, Key: r.Key, Until: reply.Until})
	b.noteVersion(reply)
	return reply.Until, nil
}

// usage asks the store, and names each limit without our margin.
func (b *Budget) usage(ctx context.Context, accounts *accountList) ([]store.Usage, error) {
	all, err := b.Store.Usage(ctx, store.UsageRequest{Budget: b.Name, Accounts: accounts.Accounts})
	if err != nil {
		return nil, err
	}
	if len(all) != accounts.Len() {
		return nil, &store.StoreError{Op: "usage", Permanent: true, Err: fmt.Errorf("%d accounts came where %d were asked for", len(all), accounts.Len())}
	}
	for i, u := range all {
		for j, l := range accounts.accounts[i].bare {
			u.Limits[j].Limit = l
		}
	}
	return all, nil
}

// estimatedNow returns the store's clock as it must stand by now, or zero if it
// never answered. It needs mu.
func (b *Budget) estimatedNow() time.Time {
	if b.answeredNow.IsZero() {
		return time.Time{}
	}
	return b.answeredNow.Add(time.Since(b.answeredAt))
}

// cancel hands a booking back to the store that it was booked in.
func (b *Budget) cancel(ctx context.Context, booked booking, accounts *accountList) error {
	b.mu.Lock()
	b.journal.remove(&booked.Booking, accounts)
	b.mu.Unlock()
	if !booked.offline {
		return b.Store.Cancel(ctx, store.CancelRequest{Booking: booked.Booking, Accounts: accounts.Accounts})
	}
	b.outage.mu.Lock()
	shares := b.outage.shares
	b.outage.mu.Unlock()
	if shares == nil || booked.Entry == "" {
		return nil
	}
	b.mu.Lock()
	now := b.estimatedNow()
	b.mu.Unlock()
	return shares.Cancel(ctx, store.CancelRequest{Booking: booked.Booking, Now: now})
}

// Most bookings of a crawler with quota left are of one token, in logs, and may leave at
// once. In memory such a booking takes as long as reading two clocks. The fast path is
// what a waiter and Store.Book do, without all that such a booking does not need. If it
// does need something, the fast path has changed nothing, and the waiter begins anew.

// immediateBooker returns the store if it has a fast path for bookings of the accounts.
func (b *Budget) immediateBooker(a *accountList) store.ImmediateBooker {
	if b.Outage != FailClosed || b.Reserve != 0 || len(a.accounts) > 1 || len(a.shared) > 0 {
		return nil
	}
	immediate, _ := b.Store.(store.ImmediateBooker)
	return immediate
}

// tryFastPath grants cost units of accounts that have a fast path, and reports whether it
// did. The grant lacks its token.
func (b *Budget) tryFastPath(ctx context.Context, accounts *accountList, cost int, g *Grant) bool {
	if requestOptionsOf(ctx) != nil || ctx.Err() != nil {
		return false
	}
	got, booked := accounts.immediate.BookNow(store.ImmediateRequest{Budget: b.Name, Accounts: accounts.Accounts, Cost: cost,
		Revision: accounts.rules.revision, Version: b.version.Load()})
	if !booked {
		return false
	}
	g.id, g.entry, g.total, g.now, g.soonest, g.Slot = got.ID, got.Entry, got.Total, got.Slot, got.ReadAt, got.Slot
	g.Cost, g.budget, g.accounts, g.account = cost, b, accounts, &accounts.accounts[0]
	return true
}
