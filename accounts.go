package ration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/censor"
	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/internal/lead"
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
	leads     lead.Bounds
	mostDelay time.Duration // how much later than others a request is taken to have arrived, at most; 0: nobody asks
	longest   time.Duration // the longest window, with its margin
	metered   []limit.Limit // that count other units than cost, or values apart, without the budget's margin
	isMeter   bool          // its limits are those of the edition that it has, and of no later one of the rules
}

// A meter counts one unit of each account of a list. Its ID is its name.
type meter struct {
	budgetAccount
	unit, per string
}

// An accountList is the accounts that a booking may be charged to, all under this worker's own
// limits. It is not changed after it was made.
type accountList struct {
	*store.Accounts
	accounts []budgetAccount // in the order of Accounts.All
	meters   []meter         // of each of them, in the order of Accounts.Meters
	keyed    *keyedLists     // with what counts the values of requests; nil: no limit counts values apart
	shared   []budgetAccount // charged whichever of them is, in the order of Accounts.Shared
	rules    *limitRules
}

// unitsOf returns what a request charges the meters, of which there are some, in their order; or why it cannot.
func (l *accountList) unitsOf(o *requestOptions, cost int) (units []int, err error) {
	var counted []string
	for i := range l.meters {
		unit, n := l.meters[i].unit, cost
		if unit != "" {
			if o == nil || o.units == nil {
				return nil, fmt.Errorf("ration: a limit counts %s: say how many a request has with WithUnits or Transport.Units", unit)
			}
			counted, n = append(counted, unit), o.units[unit]
		}
		units = append(units, n)
	}
	if len(counted) == 0 {
		return units, nil
	}
	for unit := range o.units {
		if !slices.Contains(counted, unit) {
			return nil, fmt.Errorf("ration: a request has units %v, and the limits count %s", o.units, strings.Join(counted, ", "))
		}
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
		one, err := b.accountUnder(account.ID, r.of(account.Limits, false), nil)
		if err != nil {
			return nil, fmt.Errorf("shared account %d: %w", i+1, err)
		}
		one.Label = account.Label
		shared = append(shared, one)
	}
	var meters []meter
	if len(accounts[0].metered) > 0 {
		var err error
		if meters, err = b.meters(&accounts[0], nil); err != nil {
			return nil, err
		}
	}
	all, err := storeAccounts(accounts, shared, meters)
	if err != nil {
		return nil, err
	}
	a := &accountList{Accounts: all, accounts: accounts, meters: meters, keyed: newKeyedLists(accounts[0].metered), shared: shared, rules: r}
	return a, nil
}

// meters returns an account's meters: one for each unit that its limits count beside cost, and for each value that is not empty of
// those that they count apart.
func (b *Budget) meters(account *budgetAccount, values map[string]string) (meters []meter, err error) {
	of := account.metered
	for _, l := range of {
		same := func(unit, per string) bool { return unit == l.Unit && per == l.Per }
		if l.Per != "" && values[l.Per] == "" || slices.ContainsFunc(meters, func(m meter) bool { return same(m.unit, m.per) }) {
			continue
		}
		var limits []limit.Limit
		for _, o := range of {
			if same(o.Unit, o.Per) {
				o.Unit, o.Per = "", "" // a meter counts nothing else
				limits = append(limits, o)
			}
		}
		name, label := meterName(&l, values[l.Per])
		one, err := b.accountUnder(name, effective{limits: limits, given: limits, edition: account.edition}, nil)
		if err != nil {
			return nil, err
		}
		one.Label, one.isMeter = label, true
		meters = append(meters, meter{one, l.Unit, l.Per})
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

// withValues returns the list as a request with these values is charged to it.
func (l *accountList) withValues(b *Budget, values string) (*accountList, error) {
	k := l.keyed
	if k == nil {
		return l, nil
	}
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.all.Get(values); one != nil {
		one.used = now
		return one.accountList, nil
	}
	idle := func(_ string, o *keyedList) bool { return now.Sub(o.used) > k.apart }
	k.all.Sweep(idle)
	if k.all.Len() >= mostKeyed {
		k.all.SweepAll(idle)
	}
	if k.all.Len() >= mostKeyed {
		return nil, fmt.Errorf("ration: budget %q: requests have more than %d values of %s within %v: a value must name what the provider counts apart, and no more",
			b.Name, mostKeyed, strings.Join(k.per, ", "), k.apart)
	}
	all := make(map[string]string, len(k.per))
	for i, value := range splitValues(values) {
		all[k.per[i]] = value
	}
	meters, err := b.meters(&l.accounts[0], all)
	if err != nil {
		return nil, err
	}
	one := *l
	if one.meters = meters; len(meters) > 0 {
		if one.Accounts, err = storeAccounts(l.accounts, l.shared, meters); err != nil {
			return nil, err
		}
	}
	k.all.Set(values, &keyedList{&one, now})
	return &one, nil
}

// storeAccounts returns the list as the store is asked with it.
func storeAccounts(accounts, shared []budgetAccount, meters []meter) (*store.Accounts, error) {
	of := make([]store.Meter, len(meters))
	for i, meter := range meters {
		of[i] = store.Meter{Unit: meter.ID, Label: meter.Label, Limits: meter.Limits, Edition: meter.Account.Edition}
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

// check names the first required field that is missing. If none is, the budget is wired from then on.
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
	if redis, is := b.Store.(*RedisStore); b.Store == nil || is && redis == nil {
		return fmt.Errorf("ration: budget %q: Store is nil: set a *RedisStore for a fleet, or new(ration.MemoryStore) for one process", b.Name)
	}
	b.wiring.Do(b.wire)
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
	account, err := b.accountUnder(t.AccountID(), r.of(limits, t.Limits == nil), metered)
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
