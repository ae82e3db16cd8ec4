package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
)

// An Lookup is whose quota tokens spend.
type Account struct {
	// ID is 1 to 64 letters, digits, '-' and '_': a digest, not a secret.
	ID string
	// Limits are all kept at once.
	Limits []limit.Limit
}

// tolerance is how late a caller may be: half the smallest margin. The other half
// is for the way to the provider.
func (a Account) Tolerance() time.Duration {
	least := limit.MaxMargin
	for _, l := range a.Limits {
		least = min(least, l.MarginOrDefault())
	}
	return least / 2
}

// Accounts is an unchangeable list of accounts that a booking may be charged
// to. A store may keep an index for each list, named by its Digest.
type Accounts struct {
	List        []Account
	byID        map[string]int
	Sets        []LimitSet
	SetOf       []int     // for each of list, its index in sets
	own         []int     // the sets of list, each once
	SharedValue []Account // charged with whichever of list is
	Shares      []int     // for each of shared, its index in sets
	most        int       // MaxCost of a request without scopes
	scopes      map[string]bool
	Zones       []string           // those that the limits name
	Counts      limit.AlgorithmSet // how the limits are counted
	DigestValue string
}

// A limitSet is what several accounts have in common, so that a store is told
// it once.
type LimitSet struct {
	Limits   []limit.Limit
	Name     string // the limits, spelt out
	Compiled spans
}

func NewLimitSet(limits []limit.Limit, name string) LimitSet {
	return LimitSet{Limits: limits, Name: name, Compiled: newSpans(limits)}
}

// maxSets bounds what a script is told with every booking.
const maxSets = 10_000

// NewAccounts returns the list. It is an error if there is none, if an ID
// occurs twice or is malformed, or if a limit is not valid.
func NewAccounts(list ...Account) (*Accounts, error) { return NewAccountsOf(list, nil) }

// Sharing returns the list with accounts that are charged with every booking,
// whichever account of the list it is charged to: those of an application and of
// an address, say. It is an error if an ID occurs twice or is malformed, or if a
// limit is not valid.
func (a *Accounts) Sharing(shared ...Account) (*Accounts, error) {
	return NewAccountsOf(a.List, shared)
}

func NewAccountsOf(list, shared []Account) (*Accounts, error) {
	if len(list) == 0 {
		return nil, errors.New("ration: there is no account")
	}
	if len(shared) > maxShared {
		return nil, fmt.Errorf("ration: there are %d shared accounts: at most %d are charged with a booking", len(shared), maxShared)
	}
	a := &Accounts{
		List:        slices.Clone(list),
		byID:        make(map[string]int, len(list)),
		SharedValue: slices.Clone(shared),
		scopes:      make(map[string]bool),
	}
	known := make(map[string]int)
	for i, account := range a.List {
		if _, found := a.byID[account.ID]; found {
			return nil, fmt.Errorf("ration: account %s occurs twice", account.ID)
		}
		a.byID[account.ID] = i
		set, err := a.addSet(account, known)
		if err != nil {
			return nil, err
		}
		a.SetOf = append(a.SetOf, set)
		if !slices.Contains(a.own, set) {
			a.own = append(a.own, set)
		}
	}
	for i, account := range a.SharedValue {
		same := func(o Account) bool { return o.ID == account.ID }
		if _, found := a.byID[account.ID]; found || slices.ContainsFunc(a.SharedValue[:i], same) {
			return nil, fmt.Errorf("ration: account %s occurs twice", account.ID)
		}
		set, err := a.addSet(account, known)
		if err != nil {
			return nil, err
		}
		a.Shares = append(a.Shares, set)
	}
	if len(a.List) > 1 {
		a.DigestValue = a.sum()
	}
	a.most = a.mostOf("")
	return a, nil
}

// addSet returns the index of the account's limits in sets.
func (a *Accounts) addSet(account Account, known map[string]int) (int, error) {
	if !ValidAccountID(account.ID) {
		return 0, fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_'", account.ID)
	}
	name := EncodeLimits(account.Limits)
	set, found := known[name]
	if found {
		return set, nil
	}
	if err := limit.Validate(account.Limits); err != nil {
		return 0, fmt.Errorf("ration: account %s: %w", account.ID, err)
	}
	if set = len(a.Sets); set == maxSets {
		return 0, fmt.Errorf("ration: there are more than %d different sets of limits", maxSets)
	}
	known[name] = set
	a.Sets = append(a.Sets, NewLimitSet(account.Limits, name))
	for _, l := range account.Limits {
		a.Counts = a.Counts.With(l.Algorithm)
		if l.Scope != "" {
			a.scopes[l.Scope] = true
		}
		if l.Zone != "" && !slices.Contains(a.Zones, l.Zone) {
			a.Zones = append(a.Zones, l.Zone)
		}
	}
	return set, nil
}

// maxShared bounds the work of one booking.
const maxShared = 16

// Len returns how many accounts there are.
func (a *Accounts) Len() int { return len(a.List) }

// At returns the i-th account, from 0. Its Limits must not be changed.
func (a *Accounts) At(i int) Account { return a.List[i] }

// Digest is the same for lists of the same accounts with the same limits in
// the same order, and differs otherwise. It is empty for a list of one, which
// needs no index.
func (a *Accounts) Digest() string { return a.DigestValue }

// Shared returns the accounts that are charged with every booking. They must not
// be changed.
func (a *Accounts) Shared() []Account {
	if a == nil {
		return nil
	}
	return a.SharedValue
}

// MaxCost is the largest cost that any of the accounts can take at once of a
// request with those scopes: the smallest Max of the limits that cover it, or, of
// a limit counted by GCRA, Burst.
func (a *Accounts) MaxCost(scopes ...string) int {
	if named := a.RelevantScopes(scopes); named != "" {
		return a.mostOf(named)
	}
	return a.most
}

func (a *Accounts) mostOf(named string) int {
	most := int64(0)
	for _, set := range a.own {
		most = max(most, a.Sets[set].Compiled.Most(named))
	}
	for _, set := range a.Shares {
		most = min(most, a.Sets[set].Compiled.Most(named))
	}
	return int(most)
}

func (a *Accounts) sum() string {
	h := sha256.New()
	for i, account := range a.List {
		// A hash never fails to be written.
		_, _ = io.WriteString(h, account.ID+" "+a.Sets[a.SetOf[i]].Name+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))[:idLength]
}

// nameLimits spells limits out as the scripts read them, each MAX WINDOW MARGIN
// LETTER EXTRA SCOPE ZONE, with durations in microseconds.
func EncodeLimits(limits []limit.Limit) string {
	var b strings.Builder
	for i, l := range limits {
		if i > 0 {
			b.WriteByte(' ')
		}
		extra := int64(0)
		switch l.Algorithm {
		case limit.GCRA:
			extra = int64(l.BurstOrDefault())
		case limit.SubWindows:
			extra = l.ResolutionOrDefault().Microseconds()
		}
		zone := cmp.Or(l.Zone, "-")
		if l.FirstUse {
			zone = "*"
		}
		for _, n := range []int64{int64(l.Max), l.Window.Microseconds(), l.MarginOrDefault().Microseconds()} {
			b.WriteString(strconv.FormatInt(n, 10))
			b.WriteByte(' ')
		}
		b.WriteString(limit.AlgorithmsOf[l.Algorithm].Letter)
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(extra, 10))
		b.WriteByte(' ')
		b.WriteString(cmp.Or(l.Scope, "-"))
		b.WriteByte(' ')
		b.WriteString(zone)
	}
	return b.String()
}

// shapeOf returns what of limits that nameLimits spelt out makes a count begin
// anew if it changes: all but Max and the margin.
func LimitsShape(name string) string {
	words := strings.Fields(name)
	kept := words[:0]
	for i, word := range words {
		if i%7 != 0 && i%7 != 2 {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// parseLimits reads what nameLimits spelt out.
func parseLimits(name string) ([]limit.Limit, error) {
	words := strings.Fields(name)
	if len(words) == 0 || len(words)%7 != 0 {
		return nil, fmt.Errorf("%q is not a set of limits", Clip(name))
	}
	var limits []limit.Limit
	for one := range slices.Chunk(words, 7) {
		var numbers [4]int64
		for i, word := range []string{one[0], one[1], one[2], one[4]} {
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%q is not a set of limits", Clip(name))
			}
			numbers[i] = n
		}
		l := limit.Limit{Max: int(min(numbers[0], math.MaxInt)), Window: time.Duration(numbers[1]) * time.Microsecond, Margin: time.Duration(numbers[2]) * time.Microsecond}
		for a, of := range limit.AlgorithmsOf {
			if of.Letter == one[3] {
				l.Algorithm = a
			}
		}
		switch l.Algorithm {
		case limit.GCRA:
			l.Burst = int(min(numbers[3], math.MaxInt))
		case limit.SubWindows:
			l.Resolution = time.Duration(numbers[3]) * time.Microsecond
		}
		if one[5] != "-" {
			l.Scope = one[5]
		}
		switch one[6] {
		case "-":
		case "*":
			l.FirstUse = true
		default:
			l.Zone = one[6]
		}
		limits = append(limits, l)
	}
	return limits, limit.Validate(limits)
}

func ValidAccountID(id string) bool {
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
func (a *Accounts) Member(i int) string {
	return strconv.Itoa(a.SetOf[i]+1) + ":" + a.List[i].ID
}

// find returns the place of an account, or -1.
func (a *Accounts) Index(id string) int {
	if len(a.List) == 1 && a.List[0].ID == id {
		return 0
	}
	if i, found := a.byID[id]; found {
		return i
	}
	return -1
}

// account returns an account, shared or not; nil if there is none.
func (a *Accounts) Lookup(id string) *Account {
	if at := a.Index(id); at >= 0 {
		return &a.List[at]
	}
	for i := range a.SharedValue {
		if a.SharedValue[i].ID == id {
			return &a.SharedValue[i]
		}
	}
	return nil
}

// relevant lists the scopes that a limit names, sorted and between commas.
func (a *Accounts) RelevantScopes(scopes []string) string {
	if len(scopes) == 0 || len(a.scopes) == 0 {
		return ""
	}
	var named []string
	for _, scope := range scopes {
		if a.scopes[scope] && !slices.Contains(named, scope) {
			named = append(named, scope)
		}
	}
	slices.Sort(named)
	return strings.Join(named, ",")
}

// lane names the lane of a request.
func (a *Accounts) Queue(scopes string, keep int) string {
	return QueueName(scopes, keep, a.SharedValue)
}

// laneName names those who leave in the order in which they book: all with the same
// scopes, share kept back and shared accounts. lua/book.lua has it likewise.
func QueueName(scopes string, keep int, shared []Account) string {
	if scopes == "" && keep == 0 && len(shared) == 0 {
		return ""
	}
	ids := make([]string, len(shared))
	for i, account := range shared {
		ids[i] = account.ID
	}
	return scopes + "~" + strconv.Itoa(keep) + "~" + strings.Join(ids, ",")
}

// idLength is the length of an ID in hexadecimal digits: 128 bits, so that two
// secrets with one ID do not occur.
const idLength = 32
