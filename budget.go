package ration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/arrival"
	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/durable"
	"github.com/ration-go/ration/internal/estimate"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/holding"
	"github.com/ration-go/ration/internal/lead"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/rates"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A Budget is the limits of one kind of quota, and the logs of every account that spends
// it, kept in a Store. All workers that use the same Name in the same Store share the
// logs. Give all of them the same Limits.
//
// Wait blocks until a slot; Try does not. Both book. Remaining and Usage return what is
// left and change nothing. To draw on several tokens as if they were one, make a [Pool]
// of the Budget and the tokens.
//
// Set the fields before first use; do not change them or copy the Budget afterwards. Its
// methods are safe for concurrent use.
type Budget struct {
	// Name names the logs in the store: 1 to 200 bytes without spaces or braces. Required.
	Name string
	// Limits all apply at once: 10 a second and 5,000 an hour, say. Required, unless
	// every token has its own. [Budget.SetLimits] changes them later.
	Limits []limit.Limit
	// Revision is the number of this configuration, which you raise when you deploy other Limits, of the budget or of a
	// token. If workers disagree about an account's limits, the
	// highest Revision wins; the other workers adopt its limits and get an [Event].
	// Different limits with the same revision are a [*LimitsError]. What [Budget.SetLimits] has set, or the provider
	// announced, counts until a worker with a higher Revision books. Zero: the first.
	Revision int
	// Shared are accounts that every request is charged to beside its token's account, in
	// the same step: the account of an application, say, or of an address. Each has its own
	// limits. Workers may have different shared accounts. Nil: none.
	Shared []SharedAccount
	// Reserve is the share of every limit, from 0 to 0.999, that callers leave to callers
	// with a smaller reserve. A backfill with a Reserve of 0.2 never has more than 80 % of
	// any window. An urgent caller without a reserve can use the rest, and so overtakes
	// the backfill's waiting callers; nobody loses a slot. [WithReserve] sets it for one
	// request. Zero: none.
	Reserve float64
	// EstimateBy is a key ([WithKey], or the Provider's Keys) whose value says which requests use about as many units: "model", say.
	// A request with a value books of each unit what 95 of 100 like it have used lately in this process, rounded up by less than an
	// eighth, as [Grant.Settle] and the Provider have told; before ten are known, and where the key has no value, it books what
	// [WithUnits] says. The limit is kept: what is used beyond an estimate counts when it is known. Empty: nothing is estimated.
	EstimateBy string
	// Store keeps the logs: a *RedisStore for a fleet, a *MemoryStore for one process.
	// Required: workers with stores of their own would exceed the limits unnoticed.
	Store store.Store
	// Margin is added to every Window, because the provider counts a request when it
	// arrives: of two requests that are sent a window apart, the first may be slow and the
	// second fast. A caller that wakes later than its slot and half the margin books again. If a
	// response took longer than the quickest of its host by more than the margin, a [Transport]
	// records the call that much later, by a twentieth of the shortest window at most.
	// Zero: a hundredth of the window, at least 10 ms and at most 1 s; a limit of 5,000 an
	// hour loses 0.03 % to it. Negative: no margin, and a late caller keeps its slot. At
	// most 24 h.
	//
	// A GCRA limit spaces its units Window/Max apart, and makes each spacing longer by the
	// part of the margin that its burst does not cover. Its default margin is therefore a
	// quarter of the Burst-1 spacings that its burst covers, or a tenth of one spacing and at
	// most 50 ms, whichever is longer, and at most 1 s.
	Margin time.Duration
	// MaxWait is the longest that Wait and Pool.Take wait for a slot. If the slot lies
	// beyond it they return an [*ExhaustedError] at once. Zero: as long as the context
	// allows.
	MaxWait time.Duration
	// RetryStoreFor is how long Wait and Pool.Take retry a store that does not answer,
	// before they return an error that matches [ErrStoreUnavailable]. Nothing is sent
	// meanwhile. Zero: 30 s, or what the context allows. Negative: they do not retry.
	RetryStoreFor time.Duration
	// Outage is what callers do while the store does not answer. Zero: FailClosed,
	// which sends nothing.
	Outage Outage
	// OnEvent is called with what an operator may want to know: an outage of the store, a
	// limit that was learned, a token that was quarantined. Several goroutines may call it at
	// once. Callers wait for it, so it must not block; it may ask the budget. Nil: nothing is called.
	OnEvent func(Event)
	// Logger gets the same events, each at a level that fits and with its fields. Nil: nothing is
	// logged.
	Logger *slog.Logger
	// Trace is told what happens to every caller. Nil: nobody is told. [WithTrace] adds one for some.
	Trace *rationtrace.Trace

	wiring  sync.Once
	wired   atomic.Bool
	durable durable.Store[*limits.Account] // asks Store; wired by check, as the fleet is
	fleet   fleet.Mirror
	untold  untold

	evidence cooldown.Evidence // of what refusals are about
	reach    cooldown.Reach

	keeper      limits.Keeper // of the accounts' limits, wired likewise
	tokens      tokenAccounts
	turns       atomic.Uint64 // how many callers have come
	lines       lines         // the callers that wait
	holds       holding.Holds // their slots, as far as the store is told of them
	waking      lead.Wake
	waiting     [rationtrace.Concurrency + 1]atomic.Int64 // callers, by reason
	spent       spent
	used        estimate.Estimates
	delays      arrival.Delays
	inFlight    atomic.Int64 // attempts that have no response yet
	leaving     atomic.Bool  // whether nobody comes any more
	rates       rates.Rates
	waits       waits
	failures    failures
	told        toldLoad    // what the store was told of the callers
	recentLines recentLines // what was logged a moment ago
	pooled      sync.Map    // the ID of each token's account, of tokens that were in a pool, by the token's ID
	once        told        // hosts of HostNotNamed, and fields of ConfigDoubtful
	unread      told        // the refusals of LimitUnclear
	failed      told        // the workers of WorkerFailing
}

const defaultRetryStoreFor = 30 * time.Second

// Wait books cost units for the token's account and blocks until their slot. The caller
// then sends one request.
//
// If the slot lies beyond the context's deadline or MaxWait, Wait returns an
// [*ExhaustedError] at once. If the context ends while it waits, it returns the context's
// error, and another caller gets the slot. If the store does not answer for RetryStoreFor,
// it returns a [*StoreError]. A cost that no limit ever admits is an error too. After an
// error nothing is booked.
func (b *Budget) Wait(ctx context.Context, t Token, cost int) (Grant, error) {
	var w waiter
	w.Token, w.Cost, w.budget, w.waits = t, cost, b, true
	err := w.take(ctx)
	b.traceOutcome(ctx, &w.Grant, err)
	return w.Grant, err
}

// Try books cost units for the token's account if they may leave now. If not, it books
// nothing and returns an [*ExhaustedError] that says when the next slot is. It never waits
// for a slot, and asks the store once, and again if the budget's limits were just changed: its other errors are those of Wait.
func (b *Budget) Try(ctx context.Context, t Token, cost int) (Grant, error) {
	var w waiter
	w.Token, w.Cost, w.budget = t, cost, b
	err := w.take(ctx)
	b.traceOutcome(ctx, &w.Grant, err)
	return w.Grant, err
}

// Remaining returns how many units of cost the token's account has left: 587 after 4,413
// of 5,000 in the hour. Of several limits the one with the least left counts; if the context
// has scopes ([WithScopes]), of those that cover a request with these. Remaining counts what
// the whole fleet has booked, slots that lie ahead included, is 0 while the account is paused, and changes nothing.
func (b *Budget) Remaining(ctx context.Context, t Token) (int, error) {
	usage, err := b.Usage(ctx, t)
	return usage.Remaining(scopesOf(ctx)...), err
}

// Format implements fmt.Formatter: the budget's name and limits, whatever the verb. It may be
// called while the budget is in use.
func (b *Budget) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "budget %q, %s", b.Name, cmp.Or(limit.Join(b.Limits), "no limits but those of its tokens"))
}

// Counts is what the callers of one process do at an instant. What they wait for in other processes
// is booked ahead in [LimitUsage].
type Counts struct {
	// Waiting is how many wait, by the reason. A reason for which nobody waits is not in it.
	Waiting map[rationtrace.Reason]int
	// InFlight is how many attempts of requests were sent and have no response yet.
	InFlight int
	// Workers is how many processes share the budget, this one included, by what the store said last:
	// those that it has heard of within a minute. 0: nothing was said, or the store is of this process.
	Workers int
}

// Counts returns what the callers of this process do just now.
func (b *Budget) Counts() Counts {
	return Counts{Waiting: b.waitingNow(), InFlight: int(b.inFlight.Load()), Workers: b.fleet.State().Status.Workers}
}

// Usage returns how much of each limit of the token's account is used and booked ahead, how much
// is left, when the next units are free, and what pauses and quarantines hold it back. It changes
// nothing.
func (b *Budget) Usage(ctx context.Context, t Token) (store.Usage, error) {
	accounts, err := b.accountsOf(&t)
	if err != nil {
		return store.Usage{}, err
	}
	all, err := b.usage(ctx, accounts, t)
	if err != nil {
		return store.Usage{}, err
	}
	return all[0], nil
}

// Pause keeps the whole fleet from sending anything with the token's account for the
// given time, from a microsecond to 366 days. It returns the end of the pause on the
// store's clock. A longer pause that is in force stays. Callers that wait for a slot
// within the pause book again, behind it.
func (b *Budget) Pause(ctx context.Context, t Token, length time.Duration) (time.Time, error) {
	if _, err := b.accountsOf(&t); err != nil {
		return time.Time{}, err
	}
	return b.fleet.Pause(ctx, store.PauseRequest{Account: t.AccountID(), For: length, Cause: causeFor("a call of Pause")})
}

// PauseAll is Pause for every account of the budget: while the provider is down, say, or
// if it has refused the whole application.
func (b *Budget) PauseAll(ctx context.Context, length time.Duration) (time.Time, error) {
	if err := b.check(); err != nil {
		return time.Time{}, err
	}
	return b.fleet.Pause(ctx, store.PauseRequest{For: length, Cause: causeFor("a call of PauseAll")})
}

// Reset sets the end of the current window of the token's account, on the store's clock, to
// the instant that a header of the provider names. Round a header in whole seconds up.
//
// Reset corrects only limits with FirstUse, because a request that the fleet does not know
// of may have begun the window. Give a budget one such limit: Reset corrects each whose
// window may end then. A [Transport] does it by itself for the providers that need it.
func (b *Budget) Reset(ctx context.Context, t Token, at time.Time) error {
	accounts, err := b.accountsOf(&t)
	if err != nil {
		return err
	}
	return b.durable.Reset(ctx, store.ResetRequest{Account: b.keeper.InForce(&accounts.Each[0]).Account, At: at})
}

// Leave says that nobody will call in this Budget value any more, while the process goes on: where a configuration is replaced,
// say. It returns at once. When its last caller has ended the store is told that this worker has left, so that people and other workers
// need not find out by its silence. Callers that come nevertheless are served. [RedisStore.Settle] says so of a whole process.
func (b *Budget) Leave() {
	if b.check() != nil || b.durable.Local || b.fleet.State().Status.Now.IsZero() { // or nobody knows of it
		return
	}
	b.leaving.Store(true)
	go func() { _ = b.fleet.Refresh(context.Background()) }() // if the store does not answer it finds out by itself
}

// SetLimits changes the budget's limits for the whole fleet, while requests are booked: it returns when the store has
// them, and no worker books under others from then on. No log is lost. If the store does not answer within 250 ms, or longer
// if it is far away, the error is a [*StoreError], and they may have been changed all the same: call it again.
//
// Callers that wait cancel their slots and book again, about in their order, so that a
// lower Max holds for them too and a higher one helps them within a second.
//
// The limits are in force as long as the store has anything of the budget, which is a day longer than its longest window, or any
// worker runs, and until SetLimits is called again or a program begins with a higher Budget.Revision. The provider can
// only lower them: what it announces beyond them counts for nothing.
//
// Name at least one limit of calls. A Unit, or a key (Per), that none of the limits counts keeps those that Budget.Limits give it.
//
// A limit with another Window, Algorithm or Scope is another limit. An exact log serves
// it at once, because the log stays; any other count begins at zero. Tokens with Limits
// of their own keep them, and what the provider announced of them; [Pool.Add] replaces those.
func (b *Budget) SetLimits(all ...limit.Limit) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := limit.Validate(all); err != nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	if calls, _ := limit.Split(all); calls == nil {
		return fmt.Errorf("ration: budget %q: %w", b.Name, limits.ErrNoCalls)
	}
	ctx, stop := b.durable.Soon(context.Background())
	defer stop()
	err := b.keeper.Set(ctx, all)
	if _, is := errors.AsType[*store.StoreError](err); err != nil && !is {
		err = &store.StoreError{Op: "card", Err: err} // it did not answer soon
	}
	if err != nil {
		return fmt.Errorf("ration: budget %q: it is not sure that its limits were changed, so try again: %w", b.Name, err)
	}
	return nil
}

// usage asks the store, and returns each limit without the budget's margin, and what holds back the
// accounts and those tokens.
func (b *Budget) usage(ctx context.Context, accounts *limits.List, tokens ...Token) ([]store.Usage, error) {
	var err error
	if accounts.Keyed != nil {
		values, _ := accounts.Keyed.Values(keysOf(requestOptionsOf(ctx)))
		if accounts, err = accounts.WithValues(values); err != nil {
			return nil, err
		}
	}
	if f := &b.fleet; f.IsOld(time.Now()) {
		if err := f.Refresh(ctx); err != nil {
			return nil, err
		}
	}

	meters := accounts.MetersOfAll()
	b.keeper.AskWhatDiffers(accounts, meters)
	if accounts, err = b.keeper.InForceList(accounts); err != nil {
		return nil, err
	}
	for i := range meters {
		meters[i] = b.keeper.InForce(meters[i])
	}
	asked, err := accounts.With(meters)
	if err != nil {
		return nil, err
	}

	all, err := b.durable.Usage(ctx, asked)
	if err != nil {
		return nil, err
	}
	if len(all) != asked.Len() {
		return nil, &store.StoreError{Op: "usage", Permanent: true, Err: fmt.Errorf("the store returned %d accounts instead of %d", len(all), asked.Len())}
	}

	all, metered := all[:accounts.Len()], all[accounts.Len():]
	for i := range all {
		b.keeper.AddReports(&all[i], &accounts.Each[i])
		for j := range accounts.Meters {
			at := i*len(accounts.Meters) + j
			u := &metered[at]
			b.keeper.AddReports(u, meters[at])
			for k := range u.Limits {
				u.Limits[k].Limit.Unit, u.Limits[k].Limit.Per = accounts.Meters[j].Unit, accounts.Meters[j].Per
			}
			for k := range u.Paces {
				u.Paces[k].Unit, u.Paces[k].Per = accounts.Meters[j].Unit, accounts.Meters[j].Per
			}
			all[i].Limits, all[i].Paces = append(all[i].Limits, u.Limits...), append(all[i].Paces, u.Paces...)
		}
		b.addHoldups(&all[i], tokens)
	}
	return all, inFlight{b}.addTo(ctx, accounts, all)
}

// addHoldups adds the pauses and quarantines that this worker knows of an account.
func (b *Budget) addHoldups(u *store.Usage, tokens []Token) {
	known := b.fleet.State()
	for _, account := range [...]string{"", u.Account} {
		if p := known.PauseOf(account); p.Until.After(u.Now) {
			u.Pauses = append(u.Pauses, store.Pause{Account: account, Until: p.Until, Cause: p.Cause})
		}
		for _, p := range b.fleet.Keys.Of(account, u.Now) {
			u.Pauses = append(u.Pauses, p.Request(0).Pause(p.Until))
		}
	}
	for _, t := range tokens {
		for _, q := range known.QuarantinesOf(t.id) {
			if t.AccountID() == u.Account && q.Until.After(u.Now) {
				u.Quarantined = append(u.Quarantined, q)
			}
		}
	}
	slices.SortFunc(u.Pauses, func(p, q store.Pause) int { return q.Until.Compare(p.Until) })
	slices.SortFunc(u.Quarantined, func(p, q store.Quarantine) int { return q.Until.Compare(p.Until) })
}
