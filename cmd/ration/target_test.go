package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// An account is found by its label, its ID, or the beginning of that; its meters by their own IDs.
func TestFindAccount(t *testing.T) {
	d := &store.Description{Budget: "llm"}
	for _, one := range [][2]string{{"abcdef01", "ann"}, {"abcdef01_tokens", "ann"}, {"abcdef77", "bob"}, {"0123456789", ""}} {
		var a store.DescribedAccount
		a.Account, a.Label = one[0], one[1]
		d.Accounts = append(d.Accounts, a)
	}
	for name, want := range map[string]string{
		"ann": "abcdef01", "abcdef01": "abcdef01", "abcdef0": "abcdef01", "abcdef01_tokens": "abcdef01_tokens", "bob": "abcdef77", "012345": "0123456789",
	} {
		id, err := findAccount(d, name)
		require.NoError(t, err, name)
		require.Equal(t, want, id, name)
	}
	for name, want := range map[string]string{
		"abcdef": "2 accounts", "abc": `"abc" is too short: give 6 characters of the account's ID, or its label`, "carl": `has no account "carl"`,
	} {
		_, err := findAccount(d, name)
		require.ErrorContains(t, err, want, name)
	}
}
