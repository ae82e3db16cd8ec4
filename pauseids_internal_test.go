package ration

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

func TestPauseIDsAreReadAsWritten(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://api.test/users", nil)
	require.NoError(t, err)
	m := cooldown.EndpointKey(req)
	for _, account := range []string{"", "138d7fba03fe67dca26701f26e68b894", "with-a-dash"} {
		id := m.PauseID(account)
		require.True(t, store.ValidAccountID(id), "%q is kept as an account's", id)
		got, of, ok := cooldown.ParsePauseID(id)
		require.True(t, ok)
		require.Equal(t, m, got)
		require.Equal(t, account, of)
	}
	for _, id := range []string{"", "at-", "at-0123", "138d7fba03fe67dca26701f26e68b894", "at-0123456789abcdefx", "aside-quota-0123456789abcdef"} {
		_, _, ok := cooldown.ParsePauseID(id)
		require.False(t, ok, "%q", id)
	}
	for _, reason := range []provider.Reason{provider.ReasonDeadToken, provider.ReasonUnauthorized, provider.ReasonBilling} {
		id := quarantineID(reason, NewToken("a").ID())
		require.True(t, store.ValidAccountID(id), "%q is kept as an account's", id)
		why, token, ok := parseQuarantineID(id)
		require.True(t, ok)
		require.Equal(t, reason, why)
		require.Equal(t, NewToken("a").ID(), token)
	}
	for _, id := range []string{"", "aside-", "aside-quota", "138d7fba03fe67dca26701f26e68b894", m.PauseID("a")} {
		_, _, ok := parseQuarantineID(id)
		require.False(t, ok, "%q", id)
	}
}
