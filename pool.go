package ration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/store"
	"golang.org/x/sync/singleflight"
)

// A Pool draws on several tokens as if they were one. Which token a call spends
// is decided by the store in the same step that books its slot: the one that is
// free first and, of several that are free now, the one that has been free the
// longest.
// A token that is spent or paused holds nobody up while another is free.
//
// Tokens may be added and removed while callers wait. A Pool is safe for
// concurrent use.
type Pool struct {
	budget *Budget

	quarantining singleflight.Group // by asideID

	mu        sync.Mutex   // protects all below
	tokens    []Token      // in the order in which they were added
	accounts  *accountList // of the tokens; nil: to be made
	rotations map[string]*rotation
	changed   chan struct{} // closed when the tokens change

	quarantined *map[string]QuarantinedToken // the budget's when they were made
	staleAt     time.Time                    // when they are to be made anew; zero: never
	tokenStates map[string]tokenState        // by the token's ID
	subsets     map[string]*accountList      // accounts without those that are named
	hasSuspects atomic.Bool                  // whether there are suspects
}

// A rotation is the tokens of one account, which take turns.
type rotation struct {
	tokens []Token
	next   int
}

// NewPool returns a pool of the tokens. A nil budget, an empty token, and two
// tokens of one account with different limits are errors of the first Take.
func NewPool(b *Budget, tokens ...Token) *Pool {
	p := &Pool{budget: b, changed: make(chan struct{})}
	p.Add(tokens...)
	return p
}

// Add puts tokens into the pool, from which waiting callers may take them at
// once. A token that is there already is replaced; if its Limits differ they rule
// from now on, as those of [Budget.SetLimits] do.
func (p *Pool) Add(tokens ...Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tokens {
		i := slices.IndexFunc(p.tokens, func(o Token) bool { return o.id == t.id })
		if i >= 0 && p.budget != nil && !slices.Equal(p.tokens[i].Limits, t.Limits) {
			p.budget.overrideLimits(t)
		}
		p.drop(t)
		p.tokens = append(p.tokens, t)
	}
	p.change()
}

// Remove takes tokens out of the pool. A caller that waits for one of them takes
// another; requests that were sent are not affected.
func (p *Pool) Remove(tokens ...Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tokens {
		p.drop(t)
	}
	p.change()
}

// drop needs mu.
func (p *Pool) drop(t Token) {
	p.tokens = slices.DeleteFunc(p.tokens, func(o Token) bool { return o.id == t.id })
	p.restore(t)
}

// change wakes all waiting callers. It needs mu.
func (p *Pool) change() {
	p.accounts, p.subsets = nil, nil
	if p.changed != nil {
		close(p.changed)
	}
	p.changed = make(chan struct{})
}

// Tokens returns the tokens in the pool, in the order in which they were added.
func (p *Pool) Tokens() []Token {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.tokens)
}

// Take books cost units on the token that is free first and blocks until their
// slot. Its errors are those of [Budget.Wait]; a pool without tokens is one too.
func (p *Pool) Take(ctx context.Context, cost int) (Grant, error) {
	return p.take(ctx, cost, nil, nil)
}

// take is Take without the excluded accounts. It calls sleeping, unless that is nil, when
// the slot that was booked lies ahead.
func (p *Pool) take(ctx context.Context, cost int, barred []string, sleeping func()) (Grant, error) {
	if p == nil {
		return Grant{}, errNilPool
	}
	for {
		var g Grant
		if accounts, _, err := p.listWithout(barred); err != nil || !p.budget.tryFastPath(ctx, accounts, cost, &g) {
			w := waiter{budget: p.budget, pool: p, excluded: barred, cost: cost, waits: true, sleeping: sleeping}
			if err := w.wait(ctx); err != nil {
				return Grant{}, err
			}
			g = w.grant()
		}
		found := false
		if g.Token, found = p.token(g.account); found {
			return g, nil
		}
		// The account was removed in this very moment, or its token set aside.
		g.cancelSoon()
	}
}

// Remaining returns how many units are left over all accounts, each counted
// once however many tokens it has. It changes nothing.
func (p *Pool) Remaining(ctx context.Context) (int, error) {
	all, err := p.Usage(ctx)
	sum := 0
	for _, u := range all {
		sum += u.Remaining()
	}
	return sum, err
}

// Usage returns what is used of each account, ordered by its ID. It changes
// nothing.
func (p *Pool) Usage(ctx context.Context) ([]store.Usage, error) {
	if p == nil {
		return nil, errNilPool
	}
	accounts, _, err := p.listWithout(nil)
	if err != nil {
		return nil, err
	}
	return p.budget.usage(ctx, accounts)
}

var errNilPool = errors.New("ration: the Pool is nil: make it with NewPool")

// listWithout returns the accounts of the pool's tokens but the barred ones, ordered by ID so
// that all workers with the same tokens share one index in the store, and a channel that
// is closed when they change.
func (p *Pool) listWithout(barred []string) (accounts *accountList, changed <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isStale() {
		if err := p.build(); err != nil {
			return nil, nil, err
		}
	}
	accounts = p.accounts
	if len(barred) > 0 {
		if accounts, err = p.without(barred); err != nil {
			return nil, nil, err
		}
	}
	return accounts, p.changed, nil
}

// isStale reports whether the accounts are to be made. It needs mu.
func (p *Pool) isStale() bool {
	return p.accounts == nil || p.accounts.edition != p.budget.current().edition || p.quarantined != p.budget.quarantined.Load() ||
		!p.staleAt.IsZero() && !time.Now().Before(p.staleAt)
}

// errAllExcluded says that a request is for none of the pool's accounts.
var errAllExcluded = errors.New("ration: every account of the pool is barred")

// excludesAll reports whether no account is left but the barred ones.
func (p *Pool) excludesAll(barred []string) bool {
	if len(barred) == 0 {
		return false
	}
	_, _, err := p.listWithout(barred)
	return errors.Is(err, errAllExcluded)
}

// without returns the accounts but the barred ones. It needs mu.
func (p *Pool) without(barred []string) (*accountList, error) {
	barred = slices.Clone(barred)
	slices.Sort(barred)
	name := strings.Join(slices.Compact(barred), " ")
	if accounts := p.subsets[name]; accounts != nil {
		return accounts, nil
	}
	left := slices.DeleteFunc(slices.Clone(p.accounts.accounts), func(a budgetAccount) bool { return slices.Contains(barred, a.ID) })
	if len(left) == 0 {
		return nil, errAllExcluded
	}
	all, err := storeAccounts(left, p.accounts.shared)
	if err != nil {
		return nil, err
	}
	accounts := new(accountList)
	*accounts = *p.accounts
	accounts.Accounts, accounts.accounts = all, left
	const most = 64 // a bound: which are barred changes
	if p.subsets == nil || len(p.subsets) >= most {
		p.subsets = make(map[string]*accountList)
	}
	p.subsets[name] = accounts
	return accounts, nil
}

// build makes the list of accounts. It needs mu.
func (p *Pool) build() error {
	p.accounts, p.subsets = nil, nil // where this fails it fails for the next caller too
	if err := p.budget.check(); err != nil {
		return err
	}
	if len(p.tokens) == 0 {
		return fmt.Errorf("ration: the pool of budget %q has no token: Add one", p.budget.Name)
	}
	current := p.budget.current()
	tokens, err := p.usable()
	if err != nil {
		return err
	}
	byID, turns := make(map[string]budgetAccount, len(p.tokens)), make(map[string]*rotation, len(p.tokens))
	for i, t := range tokens {
		account, err := p.budget.account(current, t)
		if err != nil {
			return fmt.Errorf("token %d of the pool: %w", i+1, err)
		}
		if other, found := byID[account.ID]; found && store.EncodeLimits(other.Limits) != store.EncodeLimits(account.Limits) {
			return fmt.Errorf("ration: token %v has other limits than another token of its account %q: "+
				"an account has one set of limits", t, t.Account)
		}
		byID[account.ID] = account
		if turns[account.ID] == nil {
			turns[account.ID] = new(rotation)
		}
		turns[account.ID].tokens = append(turns[account.ID].tokens, t)
	}
	list := make([]budgetAccount, 0, len(byID))
	for _, account := range byID {
		list = append(list, account)
	}
	slices.SortFunc(list, func(a, b budgetAccount) int { return strings.Compare(a.ID, b.ID) })
	accounts, err := p.budget.list(current, list...)
	if err != nil {
		return err
	}
	p.accounts, p.rotations = accounts, turns
	return nil
}

// token returns the account's token whose turn it is.
func (p *Pool) token(account string) (Token, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The answer to the booking may have told that the token is set aside.
	if p.isStale() && p.build() != nil {
		return Token{}, false
	}
	of := p.rotations[account]
	if of == nil {
		return Token{}, false
	}
	t := of.tokens[of.next%len(of.tokens)]
	of.next++
	p.startProbe(t)
	return t, true
}
