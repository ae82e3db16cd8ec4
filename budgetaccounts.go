package ration

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A single is a token's account as a list of one.
type single struct {
	token    string // its ID
	named    string // its Account
	accounts *Accounts
}

// is reports whether the list is that of the token, with those limits.
func (s *single) is(t *Token, limits []Limit) bool {
	given := s.accounts.list[0].given
	same := len(given) == len(limits) && &given[0] == &limits[0] // there is one at least
	return s.token == t.id && s.named == t.Account && (same || slices.Equal(given, limits))
}

// accountsOf returns the token's account as a list of one, and the revision of its
// limits. What it has made is found again, first that of the latest token: the
// name, the token and the limits were valid then.
func (b *Budget) accountsOf(t *Token) (*Accounts, int, error) {
	if b == nil {
		return nil, 0, b.check()
	}
	r := b.current()
	limits := t.Limits
	if limits == nil {
		limits = r.limits
	}
	if s := b.latest.Load(); s != nil && s.is(t, limits) {
		return s.accounts, r.revision, nil
	}
	b.mu.Lock()
	s := b.singles[t.id]
	b.mu.Unlock()
	if s == nil || !s.is(t, limits) {
		accounts, err := b.newSingle(*t, r)
		if err != nil {
			return nil, 0, err
		}
		s = &single{t.id, t.Account, accounts}
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

func (b *Budget) newSingle(t Token, r rules) (*Accounts, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	account, err := b.account(t, r)
	if err != nil {
		return nil, err
	}
	return b.list(account)
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

// account returns the token's account under those rules, with the margin of its
// limits.
func (b *Budget) account(t Token, r rules) (Account, error) {
	if t.empty() {
		return Account{}, errors.New("ration: the token is empty: make it with NewToken from a secret")
	}
	limits := t.Limits
	if limits == nil {
		limits = r.limits
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
	minMargin   = 10 * time.Millisecond
	maxMargin   = time.Second
	marginShare = 100 // a hundredth of the window
	mostMargin  = 24 * time.Hour
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
