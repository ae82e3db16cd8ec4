package ration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A store that speaks of an account that nobody asked for is an error, and no panic.
func TestLimitsThatDifferOfAnAccountThatWasNotAskedFor(t *testing.T) {
	accounts, err := NewAccounts(Account{ID: "a", Limits: []Limit{PerHour(1)}})
	require.NoError(t, err)
	theirs := Ruling{Revision: 3, Limits: []Limit{PerHour(2)}}
	var limits *LimitsError
	require.ErrorAs(t, differ(BookRequest{Accounts: accounts}, "b", theirs.spell()), &limits)
	require.Equal(t, "b", limits.Account)
	require.Equal(t, 3, limits.Revision)
	require.Empty(t, limits.Ours)
}
