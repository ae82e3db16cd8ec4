package ration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	Limits []Limit
	// Revision is that of the limits. Where workers of a fleet have different
	// limits for an account those of the highest revision rule, and workers with
	// others keep them and are told by a [Notice]. Different limits of one
	// revision are a [*LimitsError]. From 0.
	Revision int
	// Shared are accounts that every request is charged to beside its token's,
	// in the same step: an application's, or an address's, each with limits of
	// its own. Workers may have different ones.
	Shared []Account
	// Keep is the share of every limit, from 0 to 0.999, that callers leave to
	// those who keep less: a backfill with a Keep of 0.2 never has more than
	// 80 % of any window, and a caller that keeps nothing back overtakes those of
	// it that wait, in the fifth that is left. Either gets a slot when it books,
	// which nobody takes away. [WithKeep] says otherwise for one request.
	Keep float64
	// Store keeps the logs: a *RedisStore for a fleet, a *MemoryStore for one
	// process. Required: there is no default, because a store that is not
	// shared would overspend in silence.
	Store Store
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
	Patience time.Duration

	// Outage is what happens while the store does not answer. Zero: HoldBack,
	// nothing is sent.
	Outage Outage
	// Noticed, unless it is nil, is called when the store went down or came
	// back, lost a log, or had its clock set. It must not block.
	Noticed func(Notice)

	now func() time.Time // stands for the store's clock in tests; nil: none

	out    outage
	asking singleflight.Group

	mu      sync.Mutex           // protects all below
	limits  []Limit              // in place of Limits, since SetLimits; nil: Limits
	raised  int                  // in place of Revision, where that is lower
	changed chan struct{}        // closed when limits changes; nil: nobody waits for it
	ruled   map[string]string    // the limits that were last told to rule, by account
	single  map[string]*Accounts // lists of one account, by its ID
	known   Status
	seen    time.Time // when known was last confirmed, on this process's clock
	told    time.Time // when the store was last told of this worker, likewise
	mended  time.Time // the Status.Lost up to which own was entered again
	own     ledger
	void    time.Time // bookings made before it and ahead of it are void
	worker  BookingID // this budget value, among the fleet's
	last    time.Time // the Now of the latest booking
	answer  time.Time // the Now of the latest answer
	arrived time.Time // when that answer came, on this process's clock
}

const defaultPatience = 30 * time.Second

// Wait books cost units for the token's account and blocks until their slot.
// The caller then sends, once.
//
// It returns an [*ExhaustedError] at once, and books nothing, if the slot lies
// beyond the context's deadline or MaxWait; the context's error if that ends
// while it waits, and its slot then goes to another caller; and a [*StoreError]
// if the store does not answer. A cost that no limit ever admits is an error.
func (b *Budget) Wait(ctx context.Context, t Token, cost int) (Grant, error) {
	w, err := b.waiter(ctx, t, cost)
	if err != nil {
		return Grant{}, err
	}
	if err := w.wait(ctx); err != nil {
		return Grant{}, err
	}
	return w.grant(t), nil
}

// Try books cost units for the token's account if they may leave now. If not it
// books nothing and returns an [*ExhaustedError] that says when the next slot
// is. It never waits for a slot, and for the store only for one answer.
func (b *Budget) Try(ctx context.Context, t Token, cost int) (Grant, error) {
	w, err := b.waiter(ctx, t, cost)
	if err != nil {
		return Grant{}, err
	}
	if err := w.try(ctx); err != nil {
		return Grant{}, err
	}
	return w.grant(t), nil
}

func (b *Budget) waiter(ctx context.Context, t Token, cost int) (*waiter, error) {
	if _, err := b.accountsOf(t); err != nil {
		return nil, err
	}
	demand, err := b.demand(ctx)
	return &waiter{budget: b, cost: cost, demand: demand, source: func() (*Accounts, <-chan struct{}, error) {
		accounts, err := b.accountsOf(t)
		return accounts, nil, err
	}}, err
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
func (b *Budget) Usage(ctx context.Context, t Token) (Usage, error) {
	accounts, err := b.accountsOf(t)
	if err != nil {
		return Usage{}, err
	}
	all, err := b.usage(ctx, accounts)
	if err != nil {
		return Usage{}, err
	}
	return all[0], nil
}

// Pause keeps every slot of the token's account from coming for the given time,
// in the whole fleet, and returns when that ends on the store's clock. It only
// lengthens a pause that is in force. Callers that are waiting for an earlier
// slot book anew behind it.
func (b *Budget) Pause(ctx context.Context, t Token, length time.Duration) (time.Time, error) {
	if _, err := b.accountsOf(t); err != nil {
		return time.Time{}, err
	}
	return b.pause(ctx, t.AccountID(), length)
}

// Reset tells when the window under way of the token's account ends, on the
// store's clock, as a header of the provider's said. It corrects limits with
// FirstUse, whose windows a call may have begun of which the fleet does not know,
// and changes no others. A header in whole seconds is best rounded up. Of several
// such limits all that may end then are corrected: give each budget one.
func (b *Budget) Reset(ctx context.Context, t Token, at time.Time) error {
	accounts, err := b.accountsOf(t)
	if err != nil {
		return err
	}
	return b.Store.Reset(ctx, ResetRequest{Budget: b.Name, Account: accounts.At(0), At: at, Now: b.clock()})
}

func (b *Budget) pause(ctx context.Context, account string, length time.Duration) (time.Time, error) {
	until, err := b.Store.Pause(ctx, PauseRequest{Budget: b.Name, Account: account, For: length, Now: b.clock()})
	if err != nil {
		return time.Time{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known.PausedUntil == nil {
		b.known.PausedUntil = make(map[string]time.Time)
	}
	b.known.PausedUntil[account] = until
	return until, nil
}

// usage asks the store, and names each limit as it was given to us.
func (b *Budget) usage(ctx context.Context, accounts *Accounts) ([]Usage, error) {
	all, err := b.Store.Usage(ctx, UsageRequest{Budget: b.Name, Accounts: accounts, Now: b.clock()})
	if err != nil {
		return nil, err
	}
	if len(all) != accounts.Len() {
		return nil, &StoreError{Op: "usage", Permanent: true, Err: fmt.Errorf("%d accounts came where %d were asked for", len(all), accounts.Len())}
	}
	for i, u := range all {
		for j, given := range accounts.list[i].given {
			u.Limits[j].Limit = given
		}
	}
	return all, nil
}

// clock returns the instant that stands for the store's clock, or zero.
func (b *Budget) clock() time.Time {
	if b.now == nil {
		return time.Time{}
	}
	return b.now()
}

// reckonedNow returns the store's clock as it must stand by now, or zero if it
// never answered. It needs mu.
func (b *Budget) reckonedNow() time.Time {
	if b.answer.IsZero() {
		return b.clock()
	}
	return b.answer.Add(time.Since(b.arrived))
}

// handBack hands a booking back to the store that it was booked in.
func (b *Budget) handBack(ctx context.Context, booking Booking, accounts *Accounts) error {
	b.mu.Lock()
	b.own.remove(booking, accounts.Shared())
	b.mu.Unlock()
	if !booking.away {
		return b.Store.Cancel(ctx, CancelRequest{Booking: booking, Accounts: accounts, Now: b.clock()})
	}
	b.out.mu.Lock()
	shares := b.out.shares
	b.out.mu.Unlock()
	if shares == nil || booking.Entry == "" {
		return nil
	}
	return shares.Cancel(ctx, CancelRequest{Booking: booking, Now: b.clock()})
}

// accountsOf returns the token's account as a list of one.
func (b *Budget) accountsOf(t Token) (*Accounts, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	account, err := b.account(t)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.single[account.ID]; a != nil && nameLimits(a.list[0].Limits) == nameLimits(account.Limits) {
		return a, nil
	}
	a, err := b.list(account)
	if err != nil {
		return nil, err
	}
	const most = 10_000 // a bound for callers that make tokens without end
	if b.single == nil || len(b.single) >= most {
		b.single = make(map[string]*Accounts)
	}
	b.single[account.ID] = a
	return a, nil
}

// list lists accounts, and those that are charged with any of them.
func (b *Budget) list(accounts ...Account) (*Accounts, error) {
	a, err := NewAccounts(accounts...)
	if err != nil || len(b.Shared) == 0 {
		return a, err
	}
	var shared []Account
	for i, account := range b.Shared {
		if a.find(account.ID) >= 0 {
			continue // it is asked about itself
		}
		widened, err := b.widen(account.ID, account.Limits)
		if err != nil {
			return nil, fmt.Errorf("shared account %d: %w", i+1, err)
		}
		shared = append(shared, widened)
	}
	return a.Sharing(shared...)
}

// check names the first required field that is missing.
func (b *Budget) check() error {
	if b == nil {
		return errors.New("ration: the Budget is nil")
	}
	if err := validateName(b.Name); err != nil {
		return err
	}
	if b.Margin > mostMargin {
		return fmt.Errorf("ration: budget %q: Margin is %v: it must be at most %v", b.Name, b.Margin, mostMargin)
	}
	if b.Revision < 0 {
		return fmt.Errorf("ration: budget %q: Revision is %d: it must not be negative", b.Name, b.Revision)
	}
	if b.Store == nil {
		return fmt.Errorf("ration: budget %q: Store is nil: set a *RedisStore for a fleet, or new(ration.MemoryStore) for one process", b.Name)
	}
	return nil
}

// account returns the token's account, with the margin of its limits.
func (b *Budget) account(t Token) (Account, error) {
	if t.empty() {
		return Account{}, errors.New("ration: the token is empty: make it with NewToken from a secret")
	}
	limits := t.Limits
	if limits == nil {
		limits = b.currentLimits()
	}
	return b.widen(t.AccountID(), limits)
}

// widen returns an account with the margin of its limits.
func (b *Budget) widen(id string, limits []Limit) (Account, error) {
	if err := validateLimits(limits); err != nil {
		return Account{}, fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	widened := make([]Limit, len(limits))
	for i, l := range limits {
		if l.Margin == 0 {
			l.Margin = b.margin(l)
		}
		widened[i] = l
	}
	return Account{ID: id, Limits: widened, given: limits}, nil
}

const (
	minMargin    = 10 * time.Millisecond
	maxMargin    = time.Second
	marginShare  = 100 // a hundredth of the window
	mostMargin   = 24 * time.Hour
	confirmAfter = time.Second
)

// margin returns a limit's, where it names none of its own.
func (b *Budget) margin(l Limit) time.Duration {
	switch {
	case b.Margin < 0:
		return 0
	case b.Margin > 0:
		return b.Margin.Truncate(time.Microsecond)
	}
	margin := min(max(l.Window/marginShare, minMargin), maxMargin)
	if l.Algorithm == GCRA {
		// What the burst does not cover is added to every spacing.
		spacing := l.Window / time.Duration(l.Max)
		margin = min(margin, time.Duration(l.burst()-1)*spacing+spacing/10)
	}
	return margin.Truncate(time.Microsecond)
}
