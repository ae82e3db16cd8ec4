package limits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/journal"
	"github.com/ration-go/ration/internal/lead"
	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/internal/permits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// An Account is an account as a budget charges it, under the effective limits. Its Limits
// have the budget's margin.
type Account struct {
	store.Account
	effective
	Tolerance time.Duration // how late after its slot a caller may leave; 0: as late as it likes
	Leads     lead.Bounds   // how early its slots are asked for, and its callers woken
	MostDelay time.Duration // how much later than others a request is taken to have arrived, at most; 0: nobody asks
	Longest   time.Duration // the longest window, with its margin
	Metered   []limit.Limit // that count other units than cost, or values apart, without the budget's margin
	isMeter   bool          // its limits are those of the edition that it has, and of no later one of the rules
}

// A Meter counts one unit of each account of a list. Its ID is its name.
type Meter struct {
	Account
	Unit string // empty: it counts cost
	Per  string // the key whose values are counted apart; empty: none
}

// A List is the accounts that a booking may be charged to, all under this worker's own
// limits. It is not changed after it was made.
type List struct {
	*store.Accounts
	Each   []Account // in the order of Accounts.All
	Meters []Meter   // of each of them, in the order of Accounts.Meters
	Keyed  *Keyed    // with what counts the values of requests; nil: no limit counts values apart
	Shared []Account // charged whichever of them is, in the order of Accounts.Shared
	Rules  *Rules    // under which it was made

	OnlyScoped     bool              // each limit has a scope
	TakesPermits   bool              // calls in flight are limited
	scopes         []string          // that limits have
	inFlight       []limit.Limit     // of calls in flight, of each of them
	inFlightShared []permits.Limit   // likewise, of the shared accounts
	values         map[string]string // of what is counted apart; nil: those of no request
	permits        []permits.Set     // what a request takes of each of them; nil: its scopes decide
}

// UnitsOf returns what a request charges the meters, of which there are some, in their order; or why it cannot. It may have units that
// none of them counts if more is set.
func (l *List) UnitsOf(has map[string]int, cost int, more bool) (units []int, err error) {
	var counted []string
	for i := range l.Meters {
		unit, n := l.Meters[i].Unit, cost
		if unit != "" {
			if has == nil {
				return nil, fmt.Errorf("ration: a limit counts %s: say how many a request has with WithUnits or Transport.Units", unit)
			}
			counted, n = append(counted, unit), has[unit]
		}
		units = append(units, n)
	}
	if len(counted) == 0 || more {
		return units, nil
	}
	for unit := range has {
		if !slices.Contains(counted, unit) {
			return nil, fmt.Errorf("ration: a request has units %v, and the limits count %s", has, strings.Join(counted, ", "))
		}
	}
	return units, nil
}

// HasScope reports whether a limit has a scope.
func (l *List) HasScope(scope string) bool { return slices.Contains(l.scopes, scope) }

// ScopesText lists the scopes that limits have.
func (l *List) ScopesText() string { return cmp.Or(strings.Join(l.scopes, ", "), "none") }

// keepScopes notes which scopes the limits have.
func (l *List) keepScopes() {
	l.OnlyScoped = true
	note := func(all []limit.Limit) {
		for i := range all {
			if scope := all[i].Scope; scope == "" {
				l.OnlyScoped = false
			} else if !slices.Contains(l.scopes, scope) {
				l.scopes = append(l.scopes, scope)
			}
		}
	}
	for _, accounts := range [...][]Account{l.Each, l.Shared} {
		for i := range accounts {
			note(accounts[i].Limits)
			note(accounts[i].Metered)
		}
	}
	l.OnlyScoped = l.OnlyScoped && l.inFlightShared == nil // whose scopes are not kept
	slices.Sort(l.scopes)
}

// Counts reports whether a limit counts a unit.
func (l *List) Counts(unit string) bool {
	return slices.ContainsFunc(l.Meters, func(m Meter) bool { return m.Unit == unit })
}

// Find returns an account of the list, shared or not; nil: it is not there.
func (l *List) Find(id string) *Account {
	if i := l.Index(id); i >= 0 {
		return &l.Each[i]
	}
	if i := slices.IndexFunc(l.Shared, func(a Account) bool { return a.ID == id }); i >= 0 {
		return &l.Shared[i]
	}
	return nil
}

// Without returns the IDs of the accounts that are not excluded.
func (l *List) Without(excluded []string) []string {
	var ids []string
	for _, account := range l.Each {
		if !slices.Contains(excluded, account.ID) {
			ids = append(ids, account.ID)
		}
	}
	return ids
}

// A Charge is what a booking charges an account with.
type Charge = journal.Charge[*Account]

// Meter returns the i-th meter of an account, as an account by itself: without a label, since the store makes one of the account's
// and the meter's.
func (l *List) Meter(i int, account string) *Account {
	one := l.Meters[i].Account
	one.ID, one.Label = store.MeterID(account, one.ID), ""
	return &one
}

// Beside returns what a booking of an account charges beside it: its meters, as far as there are any units, and the shared
// accounts.
func (l *List) Beside(account string, cost int, units []int) (all []Charge) {
	for i, n := range units {
		if n > 0 {
			all = append(all, Charge{Account: l.Meter(i, account), Units: n})
		}
	}
	for i := range l.Shared {
		all = append(all, Charge{Account: &l.Shared[i], Units: cost})
	}
	return all
}

// Journalled implements journal.Account.
func (a *Account) Journalled() (id string, counts time.Duration) { return a.ID, a.Longest }

// Stored implements journal.Account.
func (a *Account) Stored() store.Account { return a.Account }

// NewAccount returns an account under those rules. Without limits of its own it has the budget's.
func (k *Keeper) NewAccount(r *Rules, id, label string, own []limit.Limit) (Account, error) {
	limits, metered := limit.Split(own)
	if own == nil {
		metered = r.Metered
	}
	account, err := k.accountUnder(id, r.of(limits, own == nil), metered)
	account.Label = label
	return account, err
}

// KeepsLimits reports whether an account has the limits in force under which another one, of an earlier booking, was booked.
func (k *Keeper) KeepsLimits(account, booked *Account) bool {
	return account.ID == booked.ID && slices.Equal(k.InForce(account).WithoutMargin, booked.WithoutMargin)
}

// List lists accounts, and the budget's shared ones.
func (k *Keeper) List(r *Rules, accounts ...Account) (*List, error) {
	var shared []Account
	var inFlightShared []permits.Limit
	for i, account := range k.Shared {
		if slices.ContainsFunc(accounts, func(a Account) bool { return a.ID == account.ID }) {
			continue // it is charged as a token's
		}
		inFlight, others := limit.SplitInFlight(account.Limits)
		for _, l := range inFlight {
			inFlightShared = append(inFlightShared, permitsOf(&l, account.ID, account.Label, ""))
		}
		if others == nil && inFlight != nil {
			continue
		}
		one, err := k.accountUnder(account.ID, r.of(others, false), nil)
		if err != nil {
			return nil, fmt.Errorf("shared account %d: %w", i+1, err)
		}
		one.Label = account.Label
		shared = append(shared, one)
	}
	var meters []Meter
	if len(accounts[0].Metered) > 0 {
		var err error
		if meters, err = k.meters(&accounts[0], nil); err != nil {
			return nil, err
		}
	}

	all, err := storeAccounts(accounts, shared, meters)
	if err != nil {
		return nil, err
	}
	list := &List{Accounts: all, Each: accounts, Meters: meters, Keyed: k.keyed(accounts[0].Metered), Shared: shared, Rules: r}
	list.inFlight, _ = limit.SplitInFlight(accounts[0].Metered)
	list.inFlightShared = inFlightShared
	list.keepPermits(nil)
	list.keepScopes()
	return list, nil
}

// meters returns an account's meters: one for each unit that its limits count beside cost, and for each value that is not empty of
// those that they count apart.
func (k *Keeper) meters(account *Account, values map[string]string) (meters []Meter, err error) {
	of := account.Metered
	for _, l := range of {
		same := func(unit, per string) bool { return unit == l.Unit && per == l.Per }
		if l.InFlight > 0 || l.Per != "" && values[l.Per] == "" || slices.ContainsFunc(meters, func(m Meter) bool { return same(m.Unit, m.Per) }) {
			continue
		}
		var limits []limit.Limit
		for _, o := range of {
			if same(o.Unit, o.Per) && o.InFlight == 0 {
				o.Unit, o.Per = "", "" // a meter counts nothing else
				limits = append(limits, o)
			}
		}
		name, label := meterName(&l, values[l.Per])
		one, err := k.accountUnder(name, effective{WithoutMargin: limits, given: limits, edition: account.edition}, nil)
		if err != nil {
			return nil, err
		}
		one.Label, one.isMeter = label, true
		meters = append(meters, Meter{one, l.Unit, l.Per})
	}
	return meters, nil
}

// InForceList returns the list with the effective limits of each account that is not shared: of
// shared ones stores tell none.
func (k *Keeper) InForceList(a *List) (*List, error) {
	if !k.Adopts.Load() {
		return a, nil
	}
	accounts := slices.Clone(a.Each)
	for i := range accounts {
		accounts[i] = *k.InForce(&accounts[i])
	}
	all, err := storeAccounts(accounts, a.Shared, a.Meters)
	list := *a
	list.Accounts, list.Each, list.Rules = all, accounts, nil
	return &list, err
}

// WithValues returns the list as a request with these values is charged to it.
func (l *List) WithValues(values string) (*List, error) {
	k := l.Keyed
	if k == nil {
		return l, nil
	}
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.all.Get(values); one != nil {
		one.used = now
		return one.List, nil
	}
	idle := func(_ string, o *keyedList) bool { return now.Sub(o.used) > k.apart }
	k.all.Sweep(idle)
	if k.all.Len() >= mostKeyed {
		k.all.SweepAll(idle)
	}
	if k.all.Len() >= mostKeyed {
		return nil, fmt.Errorf("ration: budget %q: requests have more than %d values of %s within %v: a value must name what the provider counts apart, and no more",
			k.keeper.Budget, mostKeyed, strings.Join(k.per, ", "), k.apart)
	}
	all := make(map[string]string, len(k.per))
	for i, value := range splitValues(values) {
		all[k.per[i]] = value
	}

	meters, err := k.keeper.meters(&l.Each[0], all)
	if err != nil {
		return nil, err
	}
	one := *l
	if one.Meters = meters; len(meters) > 0 {
		if one.Accounts, err = storeAccounts(l.Each, l.Shared, meters); err != nil {
			return nil, err
		}
	}
	one.keepPermits(all)
	k.all.Set(values, &keyedList{&one, now})
	return &one, nil
}

// storeAccounts returns the list as the store is asked with it.
func storeAccounts(accounts, shared []Account, meters []Meter) (*store.Accounts, error) {
	of := make([]store.Meter, len(meters))
	for i, meter := range meters {
		of[i] = store.Meter{Unit: meter.ID, Label: meter.Label, Limits: meter.Limits, Edition: meter.Account.Edition}
	}
	return Charged(contractAccounts(accounts), contractAccounts(shared), of)
}

// Charged returns the list with meters, and accounts that are charged with every booking.
func Charged(list, shared []store.Account, meters []store.Meter) (*store.Accounts, error) {
	accounts, err := store.NewAccounts(list...)
	if err == nil && len(shared) > 0 {
		accounts, err = accounts.Sharing(shared...)
	}
	if err == nil && len(meters) > 0 {
		accounts, err = accounts.Metering(meters...)
	}
	return accounts, err
}

func contractAccounts(all []Account) []store.Account {
	list := make([]store.Account, len(all))
	for i, account := range all {
		list[i] = account.Account
	}
	return list
}

// MetersOfAll returns the meters of the list's accounts, of each in its order.
func (l *List) MetersOfAll() (all []*Account) {
	for _, account := range l.Each {
		for i := range l.Meters {
			all = append(all, l.Meter(i, account.ID))
		}
	}
	return all
}

// With returns the accounts of the list, and others behind them.
func (l *List) With(others []*Account) (*store.Accounts, error) {
	if len(others) == 0 {
		return l.Accounts, nil
	}
	all := slices.Clone(l.All())
	for _, o := range others {
		all = append(all, o.Account)
	}
	return store.NewAccounts(all...)
}

// Rules are what this worker knows of the limits of accounts without limits of their own. They are never written to,
// and read as one value: the old limits with the new edition would become the fleet's.
type Rules struct {
	limits   []limit.Limit
	edition  store.Edition // of limits
	origin   pace.Origin   // likewise
	Metered  []limit.Limit // that count other units than cost
	revision int           // Budget.Revision, of accounts with limits of their own
	known    int64         // the version of the budget's card; 0: it has none
}

// insteadOf returns the limits of units and keys with those that are given in place of others of the same unit and key.
func insteadOf(metered, given []limit.Limit) []limit.Limit {
	isGiven := func(l limit.Limit) bool {
		return slices.ContainsFunc(given, func(o limit.Limit) bool {
			return o.Unit == l.Unit && o.Per == l.Per && (o.InFlight > 0) == (l.InFlight > 0)
		})
	}
	return append(slices.DeleteFunc(slices.Clone(metered), isGiven), given...)
}

// all returns the limits of accounts without limits of their own, with those that count other units than cost.
func (r *Rules) all() []limit.Limit { return slices.Concat(r.limits, r.Metered) }

// Known returns the worker's rules; nil: nobody has asked for them yet.
func (k *Keeper) Known() *Rules { return k.rules.Load() }

// Rules returns the worker's rules: the budget's fields, until there is a card.
func (k *Keeper) Rules() *Rules {
	if k.rules.Load() == nil {
		k.rules.CompareAndSwap(nil, k.configuredRules(0))
	}
	return k.rules.Load()
}

// configuredRules returns the budget's fields as rules, beside a card of that version that they come before.
func (k *Keeper) configuredRules(known int64) *Rules {
	limits, metered := limit.Split(k.Limits)
	return &Rules{
		limits: limits, Metered: metered, edition: store.Edition{Revision: k.Revision}, origin: pace.Configuration, revision: k.Revision, known: known,
	}
}

// of returns the limits of an account that was given some; with inherits, those of accounts without limits of their own.
func (r *Rules) of(given []limit.Limit, inherits bool) effective {
	if inherits {
		return effective{WithoutMargin: r.limits, given: r.limits, origin: r.origin, edition: r.edition, inherits: true}
	}
	return effective{WithoutMargin: given, given: given, origin: pace.Configuration, edition: store.Edition{Revision: r.revision}}
}

// Stamp tells a request under which rules its accounts were listed.
func (r *Rules) Stamp(request *store.BookRequest) {
	request.Revision, request.KnownCard = r.revision, r.known
}
