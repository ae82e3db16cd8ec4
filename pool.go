package ration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/ration-go/ration/internal/credential"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/suspect"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A Pool draws on several tokens as if they were one. The store chooses the token in the
// same step that books the slot: the one that is free first or, if several are free now,
// the one that has been free the longest. So a token that is spent or paused delays
// nobody while another is free.
//
// Tokens may be added and removed while callers wait. A Pool is safe for concurrent use;
// make it with [NewPool].
type Pool struct {
	budget     *Budget
	noteSource credential.Notify // the budget's

	quarantining singleflight.Group // by quarantineID
	sourced      atomic.Bool        // whether there may be tokens with a source
	takers       atomic.Int64       // how many callers want a token, while there may be
	near         affinities
	served       sync.Map // by the token's ID, when it was served last: an *atomic.Int64, in nanoseconds

	mu        sync.Mutex           // protects all below
	tokens    []Token              // in the order in which they were added
	changed   chan struct{}        // closed when the tokens change
	accounts  *limits.List         // of the tokens in use; nil: not built
	rotations map[string]*rotation // of the accounts, by ID

	known       *fleet.State             // of which accounts are; nil: they are not built
	staleAt     time.Time                // when accounts must be built again; zero: never
	suspects    map[string]suspect.State // by the token's ID
	hasSuspects atomic.Bool              // whether there are any suspects
}

// A rotation is the tokens of one account, which are used in turn.
type rotation struct {
	tokens []Token
	next   int
}

// NewPool returns a pool of the tokens. The first Take returns an error if the budget is
// nil, a token is empty, or two tokens of one account have different limits.
func NewPool(b *Budget, tokens ...Token) *Pool {
	p := &Pool{budget: b, noteSource: b.noteSource, changed: make(chan struct{})}
	p.add(tokens)
	return p
}

// Add puts tokens into the pool, where waiting callers may take them at once. A token
// that is there already is replaced. If its Limits differ, the fleet adopts the new ones,
// as with [Budget.SetLimits]. If the token is quarantined the fleet uses it again: to add a
// token says that it is mended.
func (p *Pool) Add(tokens ...Token) {
	p.add(tokens)
	if p.budget.check() == nil {
		p.resume(tokens)
	}
}

// resume lets the fleet use tokens again that are quarantined. If the store does not answer only
// this process does.
func (p *Pool) resume(tokens []Token) {
	ctx, stop := p.budget.durable.Soon(context.Background())
	defer stop()
	_ = p.budget.fleet.Refresh(ctx) // this process may not have heard of a quarantine
	for _, t := range tokens {
		if q, _ := p.quarantineOf(t); q.Token != "" {
			p.release(ctx, t)
		}
	}
}

// add is Add for tokens of which nothing is said but that they exist.
func (p *Pool) add(tokens []Token) {
	var changed []Token
	p.mu.Lock()
	known := make(map[string]Token, len(p.tokens)+len(tokens))
	for _, t := range p.tokens {
		known[t.id] = t
	}
	last := make(map[string]int, len(tokens)) // of tokens that are given twice the last one counts
	for i, t := range tokens {
		if before, found := known[t.id]; found && p.budget != nil && !slices.Equal(before.Limits, t.Limits) {
			if accounts, err := p.budget.accountsOf(&t); err == nil { // otherwise who books with the token gets the error
				p.budget.keeper.Override(&accounts.Each[0])
			}
			changed = append(changed, t)
		}
		known[t.id], last[t.id] = t, i
	}

	p.drop(tokens)
	for i, t := range tokens {
		if last[t.id] != i {
			continue
		}
		p.tokens = append(p.tokens, t)
		if p.budget != nil {
			p.budget.pooled.Store(t.id, t.AccountID())
		}
		if t.source != nil {
			p.sourced.Store(true)
		}
	}
	p.change()
	p.mu.Unlock()
	for _, t := range changed {
		if accounts, err := p.budget.accountsOf(&t); err == nil {
			_ = p.budget.keeper.PutOverride(&accounts.Each[0]) // or the next booking does
			p.budget.tell()
		}
	}
}

// Remove takes tokens out of the pool. A caller that waits for one of them books another.
// Requests that were sent already are not affected.
func (p *Pool) Remove(tokens ...Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(tokens)
	p.forgetServed()
	p.change()
}

// drop removes tokens, and what is known against them. It needs mu.
func (p *Pool) drop(tokens []Token) {
	gone := make(map[string]bool, len(tokens))
	for _, t := range tokens {
		gone[t.id] = true
		p.forget(t)
		if p.budget != nil {
			p.budget.pooled.Delete(t.id)
		}
	}
	p.tokens = slices.DeleteFunc(p.tokens, func(o Token) bool { return gone[o.id] })
}

// Tokens returns the tokens in the pool, in the order in which they were added.
func (p *Pool) Tokens() []Token {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.tokens)
}

// Take books cost units on the token that is free first and blocks until their slot. Its
// errors are those of [Budget.Wait]. It also fails if the pool has no token, and with a
// [*NoTokenError] if all are quarantined.
func (p *Pool) Take(ctx context.Context, cost int) (Grant, error) {
	g, err := p.take(ctx, cost, nil, requestOptionsOf(ctx), time.Time{})
	if p != nil {
		p.budget.traceOutcome(ctx, &g, err)
	}
	return g, err
}

// take is Take without the excluded accounts, as far as options say which tokens may serve and which should, for a slot up to an instant;
// zero: any will do.
func (p *Pool) take(ctx context.Context, cost int, excluded []string, o *requestOptions, latest time.Time) (Grant, error) {
	if p == nil {
		return Grant{}, errNilPool
	}
	if p.sourced.Load() {
		p.takers.Add(1)
		defer p.takers.Add(-1)
	}
	var labels []string
	if o != nil {
		labels = o.labels
	}
	if len(excluded) > 0 || labels != nil {
		var err error
		if excluded, err = p.excludedBy(labels, excluded); err != nil {
			return Grant{}, err
		}
	}
	if o != nil && o.affinity != "" {
		return p.takeNear(ctx, cost, excluded, o)
	}
	for {
		accounts, err := p.list(excluded)
		if err != nil {
			return Grant{}, err
		}

		w := waiter{Grant: Grant{Cost: cost, budget: p.budget, booked: booked{accounts: accounts}}, pool: p, excluded: excluded, waits: true, latest: latest}
		if err := w.wait(ctx); err != nil {
			return Grant{}, err
		}
		if len(labels) > 0 && !slices.Contains(labels, w.account.Label) { // the account has come since
			w.cancelSoon()
			if excluded, err = p.excludedBy(labels, excluded); err != nil {
				return Grant{}, err
			}
			continue
		}
		if w.Token.id != "" && (!p.hasSuspects.Load() || p.claimProbe(ctx, &w.Grant)) {
			return w.Grant, nil
		}
		// The account was removed at this very moment, or its token quarantined, or another process
		// probes it.
		w.cancelSoon()
	}
}

// excludedBy returns the accounts that a request must not be charged to, in ascending order: those that are excluded, and those without
// any of the labels that it asks for. It is an error if no account is left that has one.
func (p *Pool) excludedBy(labels, excluded []string) ([]string, error) {
	excluded = slices.Clone(excluded)
	if len(labels) > 0 {
		accounts, err := p.list(nil)
		if err != nil {
			return nil, err
		}
		before := len(excluded)
		for i := range accounts.Each {
			if one := &accounts.Each[i]; !slices.Contains(labels, one.Label) {
				excluded = append(excluded, one.ID)
			}
		}
		if len(excluded)-before == len(accounts.Each) {
			return nil, fmt.Errorf("%w: budget %q: of the pool's tokens that may be used none has the label %s", ErrNoToken, p.budget.Name, strings.Join(labels, " or "))
		}
	}
	slices.Sort(excluded)
	return slices.Compact(excluded), nil
}

const (
	// mostAffinities is of how many keys a pool remembers who has served them, and affinityFor for how long.
	mostAffinities = 10_000
	affinityFor    = time.Hour
)

// affinities are the accounts that have served requests with a key. The zero value has none, and is safe for concurrent use.
type affinities struct {
	mu  sync.Mutex // protects all
	all sweep.Map[string, affinity]
}

type affinity struct {
	account string
	at      time.Time
}

// of returns the account that has served a key last; "": none is known.
func (a *affinities) of(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.all.Get(key); time.Since(one.at) <= affinityFor {
		return one.account
	}
	return ""
}

// note notes who serves a key. If too many are remembered those go that were not served within a minute.
func (a *affinities) note(key, account string) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all.Sweep(func(_ string, one affinity) bool { return now.Sub(one.at) > affinityFor })
	if a.all.Len() >= mostAffinities && a.all.Get(key).account == "" {
		a.all.SweepAll(func(_ string, one affinity) bool { return now.Sub(one.at) > time.Minute })
	}
	if a.all.Len() < mostAffinities || a.all.Get(key).account != "" {
		a.all.Set(key, affinity{account, now})
	}
}

// takeNear is take for requests that should be served by the account that has served their key: it is, unless its slot is later than
// the best by more than the patience.
func (p *Pool) takeNear(ctx context.Context, cost int, excluded []string, o *requestOptions) (grant Grant, err error) {
	defer func() {
		if err == nil {
			p.near.note(o.affinity, grant.account.ID)
		}
	}()
	anyOf := &requestOptions{labels: o.labels}
	accounts, err := p.list(excluded)
	if err != nil {
		return Grant{}, err
	}
	own := p.near.of(o.affinity)
	if accounts.Index(own) < 0 || slices.Contains(excluded, own) {
		return p.take(ctx, cost, excluded, anyOf, time.Time{})
	}
	others := slices.Clone(excluded)
	for _, id := range accounts.Without(excluded) {
		if id != own {
			others = append(others, id)
		}
	}
	slices.Sort(others)

	grant, err = p.take(ctx, cost, others, anyOf, time.Now().Add(o.patience))
	if err == nil || ctx.Err() != nil {
		return grant, err
	}
	slot, is := errors.AsType[*store.ExhaustedError](err)
	if !is || slot.RetryAfter <= o.patience { // it cannot serve, or nobody knows when
		return p.take(ctx, cost, excluded, anyOf, time.Time{})
	}
	// Is another one earlier by more?
	grant, err = p.take(ctx, cost, excluded, anyOf, time.Now().Add(slot.RetryAfter-o.patience))
	if err == nil || ctx.Err() != nil || !outOfTime(err) {
		return grant, err
	}
	return p.take(ctx, cost, others, anyOf, time.Time{})
}

// Format implements fmt.Formatter as [Budget.Format]: how many tokens the pool has, of which budget.
func (p *Pool) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "pool of %d tokens of %v", len(p.Tokens()), p.budget)
}

// Remaining returns how many units all accounts have left. An account counts once,
// however many tokens it has, and not at all while they are all quarantined. Scopes of the context
// count as in [Budget.Remaining]. Remaining changes nothing.
func (p *Pool) Remaining(ctx context.Context) (int, error) {
	all, err := p.Usage(ctx)
	sum := 0
	for _, u := range all {
		if len(u.Quarantined) > 0 && !p.has(u.Account) {
			continue
		}
		sum += min(u.Remaining(scopesOf(ctx)...), math.MaxInt-sum)
	}
	return sum, err
}

// Usage is [Budget.Usage] for each account of the pool, in the order of their IDs.
func (p *Pool) Usage(ctx context.Context) ([]store.Usage, error) {
	if p == nil {
		return nil, errNilPool
	}
	tokens := p.Tokens()
	if err := p.check(tokens); err != nil {
		return nil, err
	}
	accounts, _, err := p.accountsOf(tokens)
	if err != nil {
		return nil, err
	}
	return p.budget.usage(ctx, accounts, tokens...)
}

var errNilPool = &ConfigError{Field: "Pool", Err: errors.New("the Pool is nil: make it with NewPool")}

// list returns the accounts of the pool's tokens. They are in the order of their IDs, so that all workers with the same tokens share
// one index in the store. It is an error if all of them are excluded.
func (p *Pool) list(excluded []string) (*limits.List, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.update(); err != nil {
		return nil, err
	}
	if len(excluded) > 0 && len(p.accounts.Without(excluded)) == 0 {
		return nil, errAllExcluded
	}
	return p.accounts, nil
}

// has reports whether one of the pool's tokens is of the account and not quarantined.
func (p *Pool) has(account string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.update() == nil && p.accounts.Index(account) >= 0
}

// errAllExcluded says that a request may be charged to none of the pool's accounts.
var errAllExcluded = errors.New("ration: every account of the pool is excluded")

// excludesAll reports whether every account of the pool is excluded.
func (p *Pool) excludesAll(excluded []string) bool {
	if len(excluded) == 0 {
		return false
	}
	_, err := p.list(excluded)
	return errors.Is(err, errAllExcluded)
}

// build makes the list of accounts, of the tokens that are not quarantined. It needs mu.
func (p *Pool) build() error {
	p.accounts = nil // if this fails it fails for the next caller too
	if err := p.check(p.tokens); err != nil {
		return err
	}
	tokens, err := p.usable()
	if err != nil {
		return err
	}
	accounts, rotations, err := p.accountsOf(tokens)
	if err != nil {
		return err
	}
	p.accounts, p.rotations = accounts, rotations
	return nil
}

// check returns why the pool cannot be used with those tokens, or nil.
func (p *Pool) check(tokens []Token) error {
	if err := p.budget.check(); err != nil {
		return err
	}
	if len(tokens) == 0 {
		return &ConfigError{p.budget.Name, "Pool", errors.New("the pool has no token: Add one")}
	}
	return nil
}

// accountsOf returns the accounts of some tokens, with which the pool can be used, in the order of
// their IDs, and the tokens of each.
func (p *Pool) accountsOf(tokens []Token) (*limits.List, map[string]*rotation, error) {
	rules := p.budget.keeper.Rules()
	var metered []limit.Limit // of all
	byID, rotations := make(map[string]limits.Account, len(tokens)), make(map[string]*rotation, len(tokens))
	for i, t := range tokens {
		account, err := p.budget.account(rules, t)
		if err != nil {
			if one, is := errors.AsType[*ConfigError](err); is && strings.HasPrefix(one.Field, "Token") {
				err = fmt.Errorf("token %d of the pool: %w", i+1, err)
			}
			return nil, nil, err
		}
		if other, found := byID[account.ID]; found && store.EncodeLimits(other.Limits) != store.EncodeLimits(account.Limits) {
			return nil, nil, &ConfigError{p.budget.Name, "Token.Limits", fmt.Errorf("token %v has other limits than another token of its account %q: "+
				"an account has one set of limits", t, t.Account)}
		}
		if len(byID) == 0 {
			metered = account.Metered
		}
		if !slices.Equal(metered, account.Metered) {
			return nil, nil, &ConfigError{p.budget.Name, "Token.Limits", fmt.Errorf("tokens of a pool must have the same limits of other units: %s, and %s",
				cmp.Or(limit.Join(metered), "none"), cmp.Or(limit.Join(account.Metered), "none"))}
		}
		account.Label = cmp.Or(account.Label, byID[account.ID].Label)
		byID[account.ID] = account
		if rotations[account.ID] == nil {
			rotations[account.ID] = new(rotation)
		}
		rotations[account.ID].tokens = append(rotations[account.ID].tokens, t)
	}

	list := make([]limits.Account, 0, len(byID))
	for _, account := range byID {
		list = append(list, account)
	}
	slices.SortFunc(list, func(a, b limits.Account) int { return strings.Compare(a.ID, b.ID) })
	accounts, err := p.budget.keeper.List(rules, list...)
	return accounts, rotations, err
}

// token returns the account's token whose turn it is, or the zero Token: the account has just lost its last one.
func (p *Pool) token(account string) Token {
	p.mu.Lock()
	defer p.mu.Unlock()
	// With its reply the store may have said that the token is quarantined.
	if p.update() != nil {
		return Token{}
	}
	of := p.rotations[account]
	if of == nil {
		return Token{}
	}
	of.next++
	return of.tokens[(of.next-1)%len(of.tokens)]
}

// onlyAccount returns the ID of the account of all tokens; "": there are several.
func (p *Pool) onlyAccount() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.update() != nil || p.accounts == nil || p.accounts.Len() != 1 {
		return ""
	}
	return p.accounts.At(0).ID
}

// change has waiting callers look for other accounts. It needs mu.
func (p *Pool) change() {
	p.accounts = nil
	if p.changed != nil {
		close(p.changed)
	}
	p.changed = make(chan struct{})
	if p.budget != nil {
		p.budget.lines.changed(p)
	}
}

// update builds the list of accounts again if something has changed. It needs mu.
func (p *Pool) update() error {
	if p.accounts == nil || !p.staleAt.IsZero() && !time.Now().Before(p.staleAt) {
		return p.build()
	}
	known := p.budget.fleet.State()
	if known != p.known && (known.Tokens != p.known.Tokens || p.accounts.Rules != p.budget.keeper.Known()) {
		return p.build()
	}
	p.known = known
	return nil
}
