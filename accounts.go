package ration

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A single is a token's account as a list of one.
type single struct {
	token    string // its ID
	named    string // its Account
	edition  int    // of the rules
	accounts *store.Accounts
}

// is reports whether the list is that of the token under those rules, with those limits.
func (s *single) is(t *Token, r rules, limits []limit.Limit) bool {
	given := s.accounts.List[0].Given
	same := len(given) == len(limits) && &given[0] == &limits[0] // there is one at least
	return s.token == t.id && s.named == t.Account && s.edition == r.edition && (same || slices.Equal(given, limits))
}

// accountsOf returns the token's account as a list of one, and the revision of its
// limits. What it has made is found again, first that of the latest token: the
// name, the token and the limits were valid then.
func (b *Budget) accountsOf(t *Token) (*store.Accounts, int, error) {
	if b == nil {
		return nil, 0, b.check()
	}
	r := b.current()
	limits := t.Limits
	if limits == nil {
		limits = r.limits
	}
	if s := b.latest.Load(); s != nil && s.is(t, r, limits) {
		return s.accounts, r.revision, nil
	}
	b.mu.Lock()
	s := b.singles[t.id]
	b.mu.Unlock()
	if s == nil || !s.is(t, r, limits) {
		accounts, err := b.newSingle(*t, r)
		if err != nil {
			return nil, 0, err
		}
		s = &single{t.id, t.Account, r.edition, accounts}
		const most = 10_000 // a bound for callers that make tokens without end
		b.mu.Lock()
		if b.singles == nil || len(b.singles) >= most {
			b.singles = make(map[string]*single)
		}
		b.singles[t.id] = s
		b.mu.Unlock()
	}
	b.latest.Store(s)
	return s.accounts, r.revision, nil
}

func (b *Budget) newSingle(t Token, r rules) (*store.Accounts, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	account, err := b.account(r, t)
	if err != nil {
		return nil, err
	}
	return b.list(r, account)
}

// list lists accounts, and those that are charged with any of them.
func (b *Budget) list(r rules, accounts ...store.Account) (*store.Accounts, error) {
	a, err := store.NewAccounts(accounts...)
	if err != nil || len(b.Shared) == 0 {
		return a, err
	}
	var shared []store.Account
	for i, account := range b.Shared {
		if a.Index(account.ID) >= 0 {
			continue // it is asked about itself
		}
		widened, err := b.accountUnder(r, account.ID, account.Limits)
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
	if err := store.ValidateBudgetName(b.Name); err != nil {
		return err
	}
	if b.Margin > limit.MaxMargin {
		return fmt.Errorf("ration: budget %q: Margin is %v: it must be at most %v", b.Name, b.Margin, limit.MaxMargin)
	}
	if b.Revision < 0 {
		return fmt.Errorf("ration: budget %q: Revision is %d: it must not be negative", b.Name, b.Revision)
	}
	if b.Store == nil {
		return fmt.Errorf("ration: budget %q: Store is nil: set a *RedisStore for a fleet, or new(ration.MemoryStore) for one process", b.Name)
	}
	return nil
}

// account returns the token's account under those rules, with the margin of its
// limits.
func (b *Budget) account(r rules, t Token) (store.Account, error) {
	if t.empty() {
		return store.Account{}, errors.New("ration: the token is empty: make it with NewToken from a secret")
	}
	limits := t.Limits
	if limits == nil {
		limits = r.limits
	}
	return b.accountUnder(r, t.AccountID(), limits)
}

// accountUnder returns an account that was given limits, as it is under those rules, with the
// margin of its limits.
func (b *Budget) accountUnder(r rules, id string, given []limit.Limit) (store.Account, error) {
	bare := r.known(id, given)
	limits, err := b.widen(bare)
	if err != nil {
		return store.Account{}, err
	}
	return store.Account{ID: id, Limits: limits, Given: given, Bare: bare}, nil
}

// widen returns limits with their margin.
func (b *Budget) widen(limits []limit.Limit) ([]limit.Limit, error) {
	if err := limit.Validate(limits); err != nil {
		return nil, fmt.Errorf("ration: budget %q: %w", b.Name, err)
	}
	widened := make([]limit.Limit, len(limits))
	for i, l := range limits {
		if l.Margin == 0 {
			l.Margin = b.margin(l)
		}
		widened[i] = l
	}
	return widened, nil
}

const (
	minMargin   = 10 * time.Millisecond
	maxMargin   = time.Second
	marginShare = 100 // a hundredth of the window
)

// margin returns a limit's, where it names none of its own.
func (b *Budget) margin(l limit.Limit) time.Duration {
	switch {
	case b.Margin < 0:
		return 0
	case b.Margin > 0:
		return b.Margin.Truncate(time.Microsecond)
	}
	margin := min(max(l.Window/marginShare, minMargin), maxMargin)
	if l.Algorithm == limit.GCRA {
		// What the burst does not cover is added to every spacing.
		spacing := l.Window / time.Duration(l.Max)
		margin = min(margin, time.Duration(l.BurstOrDefault()-1)*spacing+spacing/10)
	}
	return margin.Truncate(time.Microsecond)
}

// A SharedAccount is charged with every request of a budget, beside the account of the
// request's token: an application's quota, or an address's.
type SharedAccount struct {
	store.Account
	// Scope is what the account stands for: ScopeApp or ScopeIP, say. A refusal of
	// that scope pauses this account only, so that workers that share another are
	// not concerned. Zero: it stands for nothing of the kind.
	Scope provider.Scope
}

// NewSharedAccount returns an account of that name, for [Budget.Shared]: an application,
// or an address from which all requests come. Its ID is a digest of the name, as
// for Token.Account, so that tokens of that Account are charged to it too.
func NewSharedAccount(name string, limits ...limit.Limit) SharedAccount {
	return SharedAccount{Account: store.Account{ID: digest.Of("", "account", name), Limits: limits}}
}
