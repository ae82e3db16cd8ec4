package ration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A budgetAccount is an account as a budget charges it, under the effective limits. Its Limits
// have the budget's margin.
type budgetAccount struct {
	store.Account
	effective
	tolerance time.Duration // how late after its slot a caller may leave; 0: as late as it likes
	mostDelay time.Duration // how much later than others a request is taken to have arrived, at most; 0: nobody asks
	longest   time.Duration // the longest window, with its margin
}

// An accountList is the accounts that a booking may be charged to, all under this worker's own
// limits. It is not changed after it was made.
type accountList struct {
	*store.Accounts
	accounts []budgetAccount // in the order of Accounts.All
	shared   []budgetAccount // charged whichever of them is, in the order of Accounts.Shared
	rules    *limitRules
	local    store.Local // the store, if it loses no logs; otherwise nil
}

// find returns an account of the list, shared or not; nil: it is not there.
func (l *accountList) find(id string) *budgetAccount {
	if i := l.Index(id); i >= 0 {
		return &l.accounts[i]
	}
	if i := slices.IndexFunc(l.shared, func(a budgetAccount) bool { return a.ID == id }); i >= 0 {
		return &l.shared[i]
	}
	return nil
}

// without returns the IDs of the accounts that are not excluded.
func (l *accountList) without(excluded []string) []string {
	var ids []string
	for _, account := range l.accounts {
		if !slices.Contains(excluded, account.ID) {
			ids = append(ids, account.ID)
		}
	}
	return ids
}

// A tokenAccount is a token's account as a list of one.
type tokenAccount struct {
	token    string // its ID
	name     string // its Account
	accounts *accountList
	used     time.Time // on this process's clock, unless it was the latest that was used
}

// isOf reports whether the list is that of the token under those rules.
func (a *tokenAccount) isOf(t *Token, r *limitRules) bool {
	if a == nil || a.token != t.id || a.name != t.Account || a.accounts.rules != r {
		return false
	}
	own := &a.accounts.accounts[0]
	return own.Label == t.Label && own.inherits == (t.Limits == nil) && (own.inherits || slices.Equal(own.given, t.Limits))
}

// forgetTokenAfter is how long the list of a token that nobody uses is kept. It is made again
// within microseconds.
const forgetTokenAfter = time.Minute

// accountsOf returns the token's account as a list of one. It keeps what it has made,
// and looks first at that of the latest token: the name, the token and the limits were
// valid then.
func (b *Budget) accountsOf(t *Token) (*accountList, error) {
	if b == nil {
		return nil, b.check()
	}
	r := b.rules.Load()
	if latest := b.latest.Load(); latest.isOf(t, r) {
		return latest.accounts, nil
	}
	if r == nil {
		r = b.currentRules()
	}
	now := time.Now()
	b.mu.Lock()
	one := b.tokenAccounts.Get(t.id)
	if one != nil {
		one.used = now
	}
	b.mu.Unlock()
	if !one.isOf(t, r) {
		accounts, err := b.listOf(*t, r)
		if err != nil {
			return nil, err
		}
		one = &tokenAccount{t.id, t.Account, accounts, now}
		b.mu.Lock()
		b.tokenAccounts.Sweep(func(_ string, o *tokenAccount) bool { return now.Sub(o.used) > forgetTokenAfter })
		b.tokenAccounts.Set(t.id, one)
		b.mu.Unlock()
	}
	b.latest.Store(one)
	return one.accounts, nil
}

// listOf makes the list of the token's account under those rules.
func (b *Budget) listOf(t Token, r *limitRules) (*accountList, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	account, err := b.account(r, t)
	if err != nil {
		return nil, err
	}
	return b.list(r, account)
}

// list lists accounts, and the budget's shared ones.
func (b *Budget) list(r *limitRules, accounts ...budgetAccount) (*accountList, error) {
	var shared []budgetAccount
	for i, account := range b.Shared {
		if slices.ContainsFunc(accounts, func(a budgetAccount) bool { return a.ID == account.ID }) {
			continue // it is charged as a token's
		}
		one, err := b.accountUnder(account.ID, r.of(account.Limits, false))
		if err != nil {
			return nil, fmt.Errorf("shared account %d: %w", i+1, err)
		}
		one.Label = account.Label
		shared = append(shared, one)
	}
	all, err := storeAccounts(accounts, shared)
	if err != nil {
		return nil, err
	}
	a := &accountList{Accounts: all, accounts: accounts, shared: shared, rules: r}
	a.local, _ = b.Store.(store.Local)
	return a, nil
}

// inForceList returns the list with the effective limits of each account that is not shared: of
// shared ones stores tell none.
func (b *Budget) inForceList(a *accountList) (*accountList, error) {
	if !b.adopts.Load() {
		return a, nil
	}
	accounts := slices.Clone(a.accounts)
	for i := range accounts {
		accounts[i] = *b.inForce(&accounts[i])
	}
	all, err := storeAccounts(accounts, a.shared)
	return &accountList{Accounts: all, accounts: accounts, shared: a.shared}, err
}

// storeAccounts returns the list as the store is asked with it.
func storeAccounts(accounts, shared []budgetAccount) (*store.Accounts, error) {
	return shareAccounts(contractAccounts(accounts), contractAccounts(shared))
}

// shareAccounts returns the list with accounts that are charged with every booking.
func shareAccounts(list, shared []store.Account) (*store.Accounts, error) {
	accounts, err := store.NewAccounts(list...)
	if err != nil || len(shared) == 0 {
		return accounts, err
	}
	return accounts.Sharing(shared...)
}

func contractAccounts(all []budgetAccount) []store.Account {
	list := make([]store.Account, len(all))
	for i, account := range all {
		list[i] = account.Account
	}
	return list
}

// check names the first required field that is missing.
func (b *Budget) check() error {
	if b == nil {
		return errors.New("ration: the Budget is nil")
	}
	if err := store.ValidateBudgetName(b.Name); err != nil {
		return err
	}
	if b.Margin > limit.MaxMargin {
		return fmt.Errorf("ration: budget %q: Margin is %v: it must be at most %v", b.Name, b.Margin, limit.MaxMargin)
	}
	if b.MaxWait < 0 {
		return fmt.Errorf("ration: budget %q: MaxWait is %v: it must not be negative; Try does not wait", b.Name, b.MaxWait)
	}
	if b.Revision < 0 {
		return fmt.Errorf("ration: budget %q: Revision is %d: it must not be negative", b.Name, b.Revision)
	}
	if b.Store == nil {
		return fmt.Errorf("ration: budget %q: Store is nil: set a *RedisStore for a fleet, or new(ration.MemoryStore) for one process", b.Name)
	}
	return nil
}

// account returns the token's account under those rules.
func (b *Budget) account(r *limitRules, t Token) (budgetAccount, error) {
	if t.empty() {
		return budgetAccount{}, errors.New("ration: the token is empty: make it with NewToken from a secret, or with TokenFrom from an id and a source")
	}
	if secret, _ := t.open(); len(secret) >= censor.MinSecret && strings.Contains(t.Label, secret) {
		return budgetAccount{}, fmt.Errorf("ration: the Label of token %s has its secret: the store keeps the label in clear", t.id)
	}
	account, err := b.accountUnder(t.AccountID(), r.of(t.Limits, t.Limits == nil))
	account.Label = t.Label
	return account, err
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
