package ration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A tokenAccount is a token's account as a list of one.
type tokenAccount struct {
	token    string        // its ID
	name     string        // its Account
	limits   []limit.Limit // its Limits
	accounts *limits.List
	used     time.Time // on this process's clock, unless it was the latest that was used
}

// isOf reports whether the list is that of the token under those rules.
func (a *tokenAccount) isOf(t *Token, r *limits.Rules) bool {
	if a == nil || a.token != t.id || a.name != t.Account || a.accounts.Rules != r {
		return false
	}
	own := &a.accounts.Each[0]
	return own.Label == t.Label && (a.limits == nil) == (t.Limits == nil) && slices.Equal(a.limits, t.Limits)
}

// tokenAccounts are those of tokens that are in use.
type tokenAccounts struct {
	latest atomic.Pointer[tokenAccount] // of all, used last
	mu     sync.Mutex                   // protects all
	all    sweep.Map[string, *tokenAccount]
}

// forgetTokenAfter is how long the list of a token that nobody uses is kept. It is made again
// within microseconds.
const forgetTokenAfter = time.Minute

// accountsOf returns the token's account as a list of one. It keeps what it has made,
// and looks first at that of the latest token: the name, the token and the limits were
// valid then.
func (b *Budget) accountsOf(t *Token) (*limits.List, error) {
	if b == nil {
		return nil, b.check()
	}
	r, of := b.keeper.Known(), &b.tokens
	if latest := of.latest.Load(); latest.isOf(t, r) {
		return latest.accounts, nil
	}

	now := time.Now()
	of.mu.Lock()
	one := of.all.Get(t.id)
	if one != nil {
		one.used = now
	}
	of.mu.Unlock()

	if r == nil || !one.isOf(t, r) {
		accounts, err := b.listOf(*t)
		if err != nil {
			return nil, err
		}
		one = &tokenAccount{t.id, t.Account, t.Limits, accounts, now}
		of.mu.Lock()
		of.all.Sweep(func(_ string, o *tokenAccount) bool { return now.Sub(o.used) > forgetTokenAfter })
		of.all.Set(t.id, one)
		of.mu.Unlock()
	}
	of.latest.Store(one)
	return one.accounts, nil
}

// listOf makes the list of the token's account.
func (b *Budget) listOf(t Token) (*limits.List, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	r := b.keeper.Rules()
	account, err := b.account(r, t)
	if err != nil {
		return nil, err
	}
	return b.keeper.List(r, account)
}

// check returns what is wrong with the fields. If nothing is, the budget is wired from then on.
func (b *Budget) check() error {
	if b != nil && b.wired.Load() {
		return nil
	}
	if err := b.Validate(); err != nil {
		return err
	}
	b.wiring.Do(b.wire)
	return nil
}

// account returns the token's account under those rules.
func (b *Budget) account(r *limits.Rules, t Token) (limits.Account, error) {
	if t.empty() {
		return limits.Account{}, &ConfigError{Field: "Token", Err: errors.New("the token is empty: make it with NewToken from a secret, or with TokenFrom from an id and a source")}
	}
	if secret, _ := t.open(); secret != "" && (t.Label == secret || len(secret) >= censor.MinSecret && strings.Contains(t.Label, secret)) {
		return limits.Account{}, &ConfigError{Field: "Token.Label", Err: fmt.Errorf("the Label of token %s has its secret: the store keeps the label in clear", t.id)}
	}
	if err := validateLimits(b.Name, "Token.Limits", t.Limits); err != nil {
		return limits.Account{}, err
	}
	account, err := b.keeper.NewAccount(r, t.AccountID(), t.Label, t.Limits)
	if err != nil && t.Limits != nil {
		return account, badLimits(b.Name, "Token.Limits", err)
	}
	return account, badLimits(b.Name, "Budget.Limits", err)
}

// A SharedAccount is an account that every request of a budget is charged to, beside its
// token's account: the quota of an application, or of an address. See [Budget.Shared].
type SharedAccount struct {
	store.Account
	// Scope is what the account stands for: provider.ScopeApp or provider.ScopeIP, say. A
	// refusal of that scope pauses this account only; workers with another shared account go on.
	// Zero: no such scope.
	Scope provider.Scope
}

// NewSharedAccount returns a shared account. The name stands for the application, or for
// the address from which the requests come. The account's ID is a digest of the name, as
// for Token.Account, so that tokens with that Account are charged to it too.
func NewSharedAccount(name string, limits ...limit.Limit) SharedAccount {
	return SharedAccount{Account: store.Account{ID: digest.Of("", "account", name), Limits: limits}}
}
