package ration

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Account is whose quota tokens spend.
type Account struct {
	// ID is 1 to 64 letters, digits, '-' and '_': a digest, not a secret.
	ID string
	// Limits are all kept at once.
	Limits []Limit

	given []Limit // Limits before a budget's margin; nil: there is none
}

// tolerance is how late a caller may be: half the margin of the shortest window.
// The other half is for the way to the provider.
func (a Account) tolerance() time.Duration {
	if a.given == nil {
		return 0
	}
	least := mostMargin
	for i, l := range a.Limits {
		least = min(least, l.Window-a.given[i].Window)
	}
	return least / 2
}

// Accounts is an unchangeable list of accounts that a booking may be charged
// to. A store may keep an index for each list, named by its Digest.
type Accounts struct {
	list   []Account
	byID   map[string]int
	sets   []limitSet
	setOf  []int // for each of list, its index in sets
	most   int
	digest string
}

// A limitSet is what several accounts have in common, so that a store is told
// it once.
type limitSet struct {
	limits []Limit
	name   string // the limits, spelt out
	spans  spans
}

// maxSets bounds what a script is told with every booking.
const maxSets = 10_000

// NewAccounts returns the list. It is an error if there is none, if an ID
// occurs twice or is malformed, or if a limit is not valid.
func NewAccounts(list ...Account) (*Accounts, error) {
	if len(list) == 0 {
		return nil, errors.New("ration: there is no account")
	}
	a := &Accounts{
		list:  slices.Clone(list),
		byID:  make(map[string]int, len(list)),
		setOf: make([]int, len(list)),
	}
	known := make(map[string]int)
	for i, account := range a.list {
		if !validAccountID(account.ID) {
			return nil, fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_'", account.ID)
		}
		if _, found := a.byID[account.ID]; found {
			return nil, fmt.Errorf("ration: account %s occurs twice", account.ID)
		}
		a.byID[account.ID] = i
		name := nameLimits(account.Limits)
		set, found := known[name]
		if !found {
			if err := validateLimits(account.Limits, maxWindow+mostMargin); err != nil {
				return nil, fmt.Errorf("ration: account %s: %w", account.ID, err)
			}
			if set = len(a.sets); set == maxSets {
				return nil, fmt.Errorf("ration: there are more than %d different sets of limits", maxSets)
			}
			known[name] = set
			a.sets = append(a.sets, limitSet{limits: account.Limits, name: name, spans: newSpans(account.Limits)})
		}
		a.setOf[i] = set
		a.most = max(a.most, int(a.sets[set].spans.most))
	}
	if len(a.list) > 1 {
		a.digest = a.sum()
	}
	return a, nil
}

// Len returns how many accounts there are.
func (a *Accounts) Len() int { return len(a.list) }

// At returns the i-th account, from 0. Its Limits must not be changed.
func (a *Accounts) At(i int) Account { return a.list[i] }

// Digest is the same for lists of the same accounts with the same limits in
// the same order, and differs otherwise. It is empty for a list of one, which
// needs no index.
func (a *Accounts) Digest() string { return a.digest }

// MaxCost is the largest cost that any of the accounts can take at once: the
// smallest Max of its limits.
func (a *Accounts) MaxCost() int { return a.most }

func (a *Accounts) sum() string {
	h := sha256.New()
	for i, account := range a.list {
		// A hash never fails to be written.
		_, _ = io.WriteString(h, account.ID+" "+a.sets[a.setOf[i]].name+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))[:idLength]
}

// nameLimits spells limits out as the scripts read them: MAX WINDOW pairs, the
// window in microseconds.
func nameLimits(limits []Limit) string {
	var b strings.Builder
	for i, l := range limits {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(l.Max))
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(l.Window.Microseconds(), 10))
	}
	return b.String()
}

func validAccountID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// member names the i-th account in an index.
func (a *Accounts) member(i int) string {
	return strconv.Itoa(a.setOf[i]+1) + ":" + a.list[i].ID
}

// find returns the place of an account, or -1.
func (a *Accounts) find(id string) int {
	if i, found := a.byID[id]; found {
		return i
	}
	return -1
}
