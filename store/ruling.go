package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ration-go/ration/limit"
)

// A LimitsError is the answer to a worker whose limits for an account are others
// than the fleet's, and of the same revision: which of the two rule is for people
// to say, by a higher [Budget.Revision] where the right ones are. Nothing was
// booked.
type LimitsError struct {
	// Budget is the budget's name.
	Budget string
	// Account is the account's ID.
	Account string
	// Revision is that of both.
	Revision int
	// Ours are this worker's limits, with the margins that it keeps.
	Ours []limit.Limit
	// Theirs are those that the account was booked with, likewise.
	Theirs []limit.Limit
}

func (e *LimitsError) Error() string {
	return fmt.Sprintf("ration: budget %q: account %s: this worker's limits are %s, the fleet's are %s, both of revision %d: "+
		"give all workers the same, or a higher Revision to those whose limits are to rule",
		e.Budget, e.Account, ListLimits(e.Ours), ListLimits(e.Theirs), e.Revision)
}

func ListLimits(limits []limit.Limit) string {
	all := make([]string, len(limits))
	for i, l := range limits {
		all[i] = l.String()
	}
	return strings.Join(all, " and ")
}

// spell writes a ruling as the scripts keep it, REVISION SET.
func (r EffectiveLimits) Encode() string {
	return strconv.Itoa(r.Revision) + " " + EncodeLimits(r.Limits)
}

func ParseEffectiveLimits(text string) (EffectiveLimits, error) {
	revision, set, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(revision)
	if err != nil {
		return EffectiveLimits{}, fmt.Errorf("%q is not a revision and limits", Clip(text))
	}
	limits, err := parseLimits(set)
	if err != nil {
		return EffectiveLimits{}, err
	}
	return EffectiveLimits{Revision: n, Limits: limits}, nil
}

// differ returns the error for limits that differ from those of an account.
func DifferentLimits(r BookRequest, account, theirs string) error {
	e := &LimitsError{Budget: r.Budget, Account: account, Revision: r.Revision}
	if ours := r.Accounts.Lookup(account); ours != nil {
		e.Ours = ours.Limits
	}
	ruling, err := ParseEffectiveLimits(theirs)
	if err != nil {
		return &StoreError{Op: "book", Permanent: true, Err: fmt.Errorf("the account's limits in the store: %w", err)}
	}
	e.Theirs, e.Revision = ruling.Limits, ruling.Revision
	return e
}
