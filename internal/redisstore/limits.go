package redisstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ration-go/ration/store"
)

// memberOf names the i-th account in an index: its set of limits, from 1, and its ID.
func memberOf(a *store.Accounts, i int) string {
	return strconv.Itoa(a.SetOf(i)+1) + ":" + a.At(i).ID
}

// parseEffectiveLimits reads limits as the scripts keep them: REVISION, a space, and the
// limits as store.EncodeLimits writes them.
func parseEffectiveLimits(text string) (store.EffectiveLimits, error) {
	revision, set, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(revision)
	if err != nil {
		return store.EffectiveLimits{}, fmt.Errorf("%q is not a revision and limits", clip(text))
	}
	limits, err := store.ParseLimits(set)
	return store.EffectiveLimits{Revision: n, Limits: limits}, err
}

// limitsError returns the error for an account that was booked with other limits.
func limitsError(r store.BookRequest, account, theirs string) error {
	effective, err := parseEffectiveLimits(theirs)
	if err != nil {
		return &store.StoreError{Op: "book", Permanent: true, Err: fmt.Errorf("the account's limits in the store: %w", err)}
	}
	return store.NewLimitsError(r, account, effective)
}

// clip shortens what an error quotes.
func clip(s string) string { return s[:min(len(s), 40)] }
