package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A store that speaks of an account that nobody asked for is an error, and no panic.
func TestLimitsThatDifferOfAnAccountThatWasNotAskedFor(t *testing.T) {
	accounts, err := store.NewAccounts(store.Account{ID: "a", Limits: []limit.Limit{limit.PerHour(1)}})
	require.NoError(t, err)
	theirs := store.Card{Edition: store.Edition{Revision: 3}, Limits: []limit.Limit{limit.PerHour(2)}}
	var limits *store.LimitsError
	require.ErrorAs(t, store.NewLimitsError(store.BookRequest{Accounts: accounts}, "b", theirs), &limits)
	require.Equal(t, "b", limits.Account)
	require.Equal(t, 3, limits.Revision)
	require.Empty(t, limits.Ours)
}
