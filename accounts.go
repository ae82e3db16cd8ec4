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
	metered   []limit.Limit // that count other units than cost, without the budget's margin
}

// An accountList is the accounts that a booking may be charged to, all under this worker's own
// limits. It is not changed after it was made.
type accountList struct {
	*store.Accounts
	accounts []budgetAccount // in the order of Accounts.All
	meters   []budgetAccount // of each of them, in the order of Accounts.Meters; the ID is its unit
	shared   []budgetAccount // charged whichever of them is, in the order of Accounts.Shared
	rules    *limitRules
	local    store.Local // the store, if it loses no logs; otherwise nil
}

// unitsOf returns what a request charges the meters, of which there are some, in their order; or why it cannot.
func (l *accountList) unitsOf(o *requestOptions) (units []int, err error) {
	meters := l.Meters()
	if o == nil || o.units == nil {
		return nil, fmt.Errorf("ration: a limit counts %s: say how many a request has with WithUnits or Transport.Units", meters[0].Unit)
	}
	of, known := o.units, 0
	for _, meter := range meters {
		n, found := of[meter.Unit]
		if found {
			known++
		}
		units = append(units, n)
	}
	if known < len(of) {
		names := make([]string, len(meters))
		for i, meter := range meters {
			names[i] = meter.Unit
		}
		return nil, fmt.Errorf("ration: a request has units %v, and the limits count %s", of, strings.Join(names, ", "))
	}
	return units, nil
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
	token    string        // its ID
	name     string        // its Account
	limits   []limit.Limit // its Limits
	accounts *accountList
	used     time.Time // on this process's clock, unless it was the latest that was used
}

// isOf reports whether the list is that of the token under those rules.
func (a *tokenAccount) isOf(t *Token, r *limitRules) bool {
	if a == nil || a.token != t.id || a.name != t.Account || a.accounts.rules != r {
		return false
	}
	own := &a.accounts.accounts[0]
	return own.Label == t.Label && own.inherits == (t.Limits == nil) && (own.inherits || slices.Equal(a.limits, t.Limits))
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
		one = &tokenAccount{t.id, t.Account, t.Limits, accounts, now}
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
	var meters []budgetAccount
	if len(accounts[0].metered) > 0 {
		var err error
		if meters, err = b.meters(&accounts[0]); err != nil {
			return nil, err
		}
	}
	all, err := storeAccounts(accounts, shared, meters)
	if err != nil {
		return nil, err
	}
	a := &accountList{Accounts: all, accounts: accounts, meters: meters, shared: shared, rules: r}
	a.local, _ = b.Store.(store.Local)
	return a, nil
}

// meters returns an account's meters: one for each unit that its limits count beside cost.
func (b *Budget) meters(account *budgetAccount) (meters []budgetAccount, err error) {
	of := account.metered
	for _, l := range of {
		if slices.ContainsFunc(meters, func(m budgetAccount) bool { return m.ID == l.Unit }) {
			continue
		}
		var limits []limit.Limit
		for _, o := range of {
			if o.Unit == l.Unit {
				o.Unit = "" // a meter counts nothing else
				limits = append(limits, o)
			}
		}
		one, err := b.accountUnder(l.Unit, effective{limits: limits, full: limits, given: limits, edition: account.edition})
		if err != nil {
			return nil, err
		}
		meters = append(meters, one)
	}
	return meters, nil
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
	all, err := storeAccounts(accounts, a.shared, a.meters)
	return &accountList{Accounts: all, accounts: accounts, meters: a.meters, shared: a.shared}, err
}

// storeAccounts returns the list as the store is asked with it.
func storeAccounts(accounts, shared, meters []budgetAccount) (*store.Accounts, error) {
	of := make([]store.Meter, len(meters))
	for i, meter := range meters {
		of[i] = store.Meter{Unit: meter.ID, Limits: meter.Limits}
	}
	return chargedAccounts(contractAccounts(accounts), contractAccounts(shared), of)
}

// chargedAccounts returns the list with meters, and accounts that are charged with every booking.
func chargedAccounts(list, shared []store.Account, meters []store.Meter) (*store.Accounts, error) {
	accounts, err := store.NewAccounts(list...)
	if err == nil && len(shared) > 0 {
		accounts, err = accounts.Sharing(shared...)
	}
	if err == nil && len(meters) > 0 {
		accounts, err = accounts.Metering(meters...)
	}
	return accounts, err
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
	limits, metered := limit.Split(t.Limits)
	if t.Limits == nil {
		metered = r.metered
	}
	account, err := b.accountUnder(t.AccountID(), r.of(limits, t.Limits == nil))
	account.Label, account.metered = t.Label, metered
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
