package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ration-go/ration/limit"
)

// An Account is whose quota tokens spend.
type Account struct {
	// ID is 1 to 64 letters, digits, '-' and '_': a digest, not a secret.
	ID string
	// Limits are all kept at once.
	Limits []limit.Limit
	// Edition is that of the [Card] with the limits. Zero: they are the configuration's, of the Revision of the request.
	Edition Edition
	// Label is what people call the account, for a store to show beside its ID: at most 100
	// bytes of printable text, and never a secret. Empty: none. It changes nothing else.
	Label string
}

// Accounts is a list of accounts to which a booking may be charged. It never changes, and
// is safe for concurrent use. A store may keep indexes for each list, named by its Digest.
type Accounts struct {
	list       []Account
	byID       map[string]int
	shared     []Account
	meters     []Meter
	charged    []Account // meters and shared accounts, as a queue's name has them
	sets       []LimitSet
	setOf      []int // for each of list, the index of its limits in sets
	sharedSet  []int // for each of shared
	meterSet   []int // for each of meters
	ownSets    []int // the sets of list, each once
	maxCost    int   // MaxCost of a request without scopes
	scopes     map[string]bool
	zones      []string
	algorithms limit.AlgorithmSet
	digest     string
}

// maxSets bounds the sets of limits that every booking carries, and maxShared the accounts
// that one booking is charged to.
const (
	maxSets   = 10_000
	maxShared = 16
)

// A Meter counts something else than calls of each account of a list: the tokens of a language model, say. Whichever account
// of the list a booking is charged to, its meters are charged with units of their own: see [BookRequest.Units].
type Meter struct {
	// Unit is what it counts: 1 to 32 letters, digits, '-' and '_'.
	Unit string
	// Label is what people call it, behind the account's label, in as many bytes. Empty: Unit.
	Label string
	// Limits are all kept at once, beside the account's.
	Limits []limit.Limit
	// Edition is that of the limits, as an [Account] has it.
	Edition Edition
}

// MeterID is the ID under which a store keeps what an account has spent of a unit: an account of its own, which can be asked
// for, paused and recorded like any other.
func MeterID(account, unit string) string { return account + "_" + unit }

// NewAccounts returns the list. It is an error if there is none, if an ID
// occurs twice or is malformed, or if a limit is not valid.
func NewAccounts(list ...Account) (*Accounts, error) { return newAccounts(list, nil, nil) }

// Sharing returns the list with accounts that are charged with every booking,
// whichever account of the list it is charged to: those of an application and of
// an address, say. It is an error if an ID occurs twice or is malformed, or if a
// limit is not valid.
func (a *Accounts) Sharing(shared ...Account) (*Accounts, error) {
	return newAccounts(a.list, shared, a.meters)
}

// Metering returns the list with meters, which each of its accounts has. It is an error if a unit occurs twice or is malformed,
// if a limit is not valid, or if an account has the [MeterID] of another one's meter.
func (a *Accounts) Metering(meters ...Meter) (*Accounts, error) {
	return newAccounts(a.list, a.shared, meters)
}

func newAccounts(list, shared []Account, meters []Meter) (*Accounts, error) {
	if len(list) == 0 {
		return nil, errors.New("ration: there is no account")
	}
	if len(shared)+len(meters) > maxShared {
		return nil, fmt.Errorf("ration: there are %d shared accounts and meters: at most %d are charged with a booking", len(shared)+len(meters), maxShared)
	}
	a := &Accounts{
		list:   slices.Clone(list),
		byID:   make(map[string]int, len(list)),
		shared: slices.Clone(shared),
		meters: slices.Clone(meters),
		scopes: make(map[string]bool),
	}
	known := make(map[setKey]int)
	for i, account := range a.list {
		if _, found := a.byID[account.ID]; found {
			return nil, fmt.Errorf("ration: account %s occurs twice", account.ID)
		}
		a.byID[account.ID] = i
		set, err := a.addSet(account, known)
		if err != nil {
			return nil, err
		}
		a.setOf = append(a.setOf, set)
		if !slices.Contains(a.ownSets, set) {
			a.ownSets = append(a.ownSets, set)
		}
	}
	if len(meters) > 0 {
		if err := a.addMeters(known); err != nil {
			return nil, err
		}
	}
	for i, account := range a.shared {
		same := func(o Account) bool { return o.ID == account.ID }
		if _, found := a.byID[account.ID]; found || slices.ContainsFunc(a.shared[:i], same) {
			return nil, fmt.Errorf("ration: account %s occurs twice", account.ID)
		}
		set, err := a.addSet(account, known)
		if err != nil {
			return nil, err
		}
		a.sharedSet = append(a.sharedSet, set)
	}
	a.charged = append(a.charged, a.shared...)
	if len(a.list) > 1 {
		a.digest = a.sum()
	}
	a.maxCost = a.maxCostOf("")
	return a, nil
}

// addMeters adds the sets of the meters' limits.
func (a *Accounts) addMeters(known map[setKey]int) error {
	for i, meter := range a.meters {
		if !limit.ValidUnit(meter.Unit) {
			return fmt.Errorf("ration: unit %q: it must be 1 to 32 letters, digits, '-' and '_'", meter.Unit)
		}
		if !validLabel(meter.Label) {
			return fmt.Errorf("ration: unit %q: its Label must be at most %d bytes of printable text", meter.Unit, MaxLabel)
		}
		if slices.ContainsFunc(a.meters[:i], func(o Meter) bool { return o.Unit == meter.Unit }) {
			return fmt.Errorf("ration: unit %q occurs twice", meter.Unit)
		}
		for _, account := range a.list {
			if id := MeterID(account.ID, meter.Unit); !ValidAccountID(id) {
				return fmt.Errorf("ration: account %s, unit %q: %w", account.ID, meter.Unit, accountIDError(id))
			}
			if strings.HasSuffix(account.ID, "_"+meter.Unit) {
				return fmt.Errorf("ration: account %s: an ID must not end like that of a meter of unit %q", account.ID, meter.Unit)
			}
		}
		set, err := a.addSet(Account{ID: MeterID("meter", meter.Unit), Limits: meter.Limits, Edition: meter.Edition}, known)
		if err != nil {
			return err
		}
		a.meterSet = append(a.meterSet, set)
		a.charged = append(a.charged, Account{ID: "*" + meter.Unit})
	}
	return nil
}

// A setKey is what accounts must have in common to share a set of limits.
type setKey struct {
	edition Edition
	limits  string
}

// addSet returns the index of the account's limits in sets.
func (a *Accounts) addSet(account Account, known map[setKey]int) (int, error) {
	if !ValidAccountID(account.ID) {
		return 0, accountIDError(account.ID)
	}
	if !validLabel(account.Label) {
		return 0, fmt.Errorf("ration: account %s: its Label must be at most %d bytes of printable text", account.ID, MaxLabel)
	}
	key := setKey{account.Edition, EncodeLimits(account.Limits)}
	set, found := known[key]
	if found {
		return set, nil
	}
	if err := limit.Validate(account.Limits); err != nil {
		return 0, fmt.Errorf("ration: account %s: %w", account.ID, err)
	}
	if err := account.Edition.validate("Account.Edition"); err != nil {
		return 0, err
	}
	if i := slices.IndexFunc(account.Limits, func(l limit.Limit) bool { return l.Unit != "" }); i >= 0 {
		return 0, fmt.Errorf("ration: account %s: limit %v: what counts a unit is a limit of a Meter, without its Unit", account.ID, account.Limits[i])
	}
	if set = len(a.sets); set == maxSets {
		return 0, fmt.Errorf("ration: there are more than %d different sets of limits", maxSets)
	}
	known[key] = set
	compiled := NewLimitSet(account.Limits)
	compiled.Edition = account.Edition
	a.sets = append(a.sets, compiled)
	for _, l := range account.Limits {
		a.algorithms = a.algorithms.With(l.Algorithm)
		if l.Scope != "" {
			a.scopes[l.Scope] = true
		}
		if l.Zone != "" && !slices.Contains(a.zones, l.Zone) {
			a.zones = append(a.zones, l.Zone)
		}
	}
	return set, nil
}

// Len returns how many accounts there are, without the shared ones.
func (a *Accounts) Len() int { return len(a.list) }

// At returns the i-th account, from 0. Its Limits must not be changed.
func (a *Accounts) At(i int) Account { return a.list[i] }

// All returns the accounts, without the shared ones. They must not be changed.
func (a *Accounts) All() []Account { return a.list }

// Shared returns the accounts that are charged with every booking. They must not
// be changed.
func (a *Accounts) Shared() []Account {
	if a == nil {
		return nil
	}
	return a.shared
}

// Meters returns the meters that each account of the list has. They must not be changed.
func (a *Accounts) Meters() []Meter {
	if a == nil {
		return nil
	}
	return a.meters
}

// Index returns the index of the account with the ID, or -1 if it is not in the list. A
// shared account is not.
func (a *Accounts) Index(id string) int {
	if len(a.list) == 1 && a.list[0].ID == id {
		return 0
	}
	if i, found := a.byID[id]; found {
		return i
	}
	return -1
}

// Lookup returns the account with the ID, shared or not; nil if there is none. It must not
// be changed.
func (a *Accounts) Lookup(id string) *Account {
	if at := a.Index(id); at >= 0 {
		return &a.list[at]
	}
	for i := range a.shared {
		if a.shared[i].ID == id {
			return &a.shared[i]
		}
	}
	return nil
}

// Digest is the same for lists of the same accounts with the same limits in
// the same order, and differs otherwise. It is empty for a list of one, which
// needs no index. Shared accounts do not change it.
func (a *Accounts) Digest() string { return a.digest }

// IndexUnits returns by which of a list's indexes a booking of so many units finds its account: the one in
// which accounts stand in the order of their slots for that many units, or for the next lower of 1 to 8, 10,
// 12, 14, 16, 20, 24, 28, 32, 40 and so on. So it looks at few accounts that have units free, but too few for
// it, and there are no more than four indexes for twice as many units.
func IndexUnits(units int) int {
	units = min(units, 1<<30)
	step := 1 << max(0, bits.Len(uint(units))-3)
	return units / step * step
}

func (a *Accounts) sum() string {
	const digits = 32 // 128 bits, so that two lists with one digest do not occur
	h := sha256.New()
	for i, account := range a.list {
		// A hash never fails to be written.
		_, _ = io.WriteString(h, account.ID+" "+strconv.Itoa(a.setOf[i])+" "+a.sets[a.setOf[i]].Name+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))[:digits]
}

// MaxCost is the largest cost that any of the accounts can take at once of a
// request with those scopes: the smallest Max of the limits that cover it, or, of
// a limit counted by GCRA, Burst.
func (a *Accounts) MaxCost(scopes ...string) int {
	if named := a.RelevantScopes(scopes); named != "" {
		return a.maxCostOf(named)
	}
	return a.maxCost
}

func (a *Accounts) maxCostOf(scopes string) int {
	most := int64(0)
	for _, set := range a.ownSets {
		most = max(most, a.sets[set].MaxCost(scopes))
	}
	for _, set := range a.sharedSet {
		most = min(most, a.sets[set].MaxCost(scopes))
	}
	return int(most)
}

// LimitSets returns the different sets of limits that the accounts have, the shared ones
// included: most often one. Equal limits of different editions are two. They must not be changed.
func (a *Accounts) LimitSets() []LimitSet { return a.sets }

// SetOf returns the index in LimitSets of the limits of the i-th account.
func (a *Accounts) SetOf(i int) int { return a.setOf[i] }

// SharedSetOf returns the index in LimitSets of the limits of the i-th shared account.
func (a *Accounts) SharedSetOf(i int) int { return a.sharedSet[i] }

// MeterSetOf returns the index in LimitSets of the limits of the i-th meter.
func (a *Accounts) MeterSetOf(i int) int { return a.meterSet[i] }

// MeterLimitSet returns the limits of the i-th meter, which must not be changed.
func (a *Accounts) MeterLimitSet(i int) *LimitSet { return &a.sets[a.meterSet[i]] }

// LimitSet returns the limits of the i-th account, which must not be changed.
func (a *Accounts) LimitSet(i int) *LimitSet { return &a.sets[a.setOf[i]] }

// SharedLimitSet returns the limits of the i-th shared account, which must not be changed.
func (a *Accounts) SharedLimitSet(i int) *LimitSet { return &a.sets[a.sharedSet[i]] }

// Algorithms returns the algorithms of the limits of all accounts, the shared ones included:
// a store need prepare for no other.
func (a *Accounts) Algorithms() limit.AlgorithmSet { return a.algorithms }

// Zones returns the time zones that the limits name, each once. They must not be changed.
func (a *Accounts) Zones() []string { return a.zones }

// RelevantScopes returns those of a request's scopes that any limit names, sorted and
// joined by commas, as [Covers] and [Accounts.Queue] take them: requests that differ in
// other scopes only are counted alike.
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

// Queue names the queue of a request with those relevant scopes and that Reserve:
// [QueueName] with the list's meters, of which each has the ID '*' and its unit, and its shared accounts.
func (a *Accounts) Queue(scopes string, reserve int) string {
	return QueueName(scopes, reserve, a.charged)
}

// QueueName names a queue of an account: the requests that leave in the order in which they
// book, since they have the same relevant scopes, Reserve and shared accounts. A request
// never waits for the slot of a later one of its queue; those of other queues may pass it.
// The queue of requests that have none of the three is "".
func QueueName(scopes string, reserve int, shared []Account) string {
	if scopes == "" && reserve == 0 && len(shared) == 0 {
		return ""
	}
	ids := make([]string, len(shared))
	for i, account := range shared {
		ids[i] = account.ID
	}
	return scopes + "~" + strconv.Itoa(reserve) + "~" + strings.Join(ids, ",")
}

// MaxLabel is how many bytes the label of an account or a meter may have.
const MaxLabel = 100

func validLabel(label string) bool {
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	return len(label) <= MaxLabel && utf8.ValidString(label) && !strings.ContainsFunc(label, unprintable)
}

// ValidAccountID reports whether an ID is 1 to 64 letters, digits, '-' and '_'.
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

// accountIDError says that an account's ID is not valid.
func accountIDError(id string) error {
	return fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_'", id)
}
