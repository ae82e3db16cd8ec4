package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
)

// A store that speaks of an account that nobody asked for is an error, and no panic.
func TestLimitsThatDifferOfAnAccountThatWasNotAskedFor(t *testing.T) {
	accounts, err := NewAccounts(Account{ID: "a", Limits: []limit.Limit{limit.PerHour(1)}})
	require.NoError(t, err)
	theirs := EffectiveLimits{Revision: 3, Limits: []limit.Limit{limit.PerHour(2)}}
	var limits *LimitsError
	require.ErrorAs(t, DifferentLimits(BookRequest{Accounts: accounts}, "b", theirs.Encode()), &limits)
	require.Equal(t, "b", limits.Account)
	require.Equal(t, 3, limits.Revision)
	require.Empty(t, limits.Ours)
}
