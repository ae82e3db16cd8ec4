package ration_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// The IDs name logs in stores that are in use: they must not change.
func TestIDsAreThoseOfVersion1(t *testing.T) {
	// printf 'ration/v1/token\0secret' | sha256sum
	require.Equal(t, "5c8e77fafc1402caeb9a5995d928b31e", ration.NewToken("secret").ID())
	// printf 'ration/v1/token\0secret' | openssl dgst -sha256 -hmac key
	require.Equal(t, "9f35ee68ff6c321af909866775659ed7", ration.NewKeyedToken([]byte("key"), "secret").ID())
	// printf 'ration/v1/account\0ann' | sha256sum
	ann := ration.NewToken("secret")
	ann.Account = "ann"
	require.Equal(t, "ca2982004fab92092f00948a02b71df7", ann.AccountID())
}

func TestTokenPrintsAsItsID(t *testing.T) {
	token := ration.NewToken("secret")
	token.Account = "ann"
	id := token.ID()
	require.Len(t, id, 32)
	require.Equal(t, id, token.String())
	for _, verb := range []string{"%v", "%+v", "%s", "%d", "%x", "%X", "%q", "%t", "%50s"} {
		require.Equal(t, id, fmt.Sprintf(verb, token), verb)
		require.Equal(t, id, fmt.Sprintf(verb, &token), verb)
	}
	require.Equal(t, "ration.Token("+id+")", fmt.Sprintf("%#v", token))
	require.Equal(t, "ration.Token("+id+")", token.GoString())
	text, err := json.Marshal(map[string]any{"token": token})
	require.NoError(t, err)
	require.JSONEq(t, `{"token":"`+id+`"}`, string(text))
	require.Equal(t, slog.StringValue(id), slog.AnyValue(token).Resolve())
}

func TestTokensOfOneSecretAreOneToken(t *testing.T) {
	a, again := ration.NewToken("a"), ration.NewToken("a")
	again.Limits = []ration.Limit{ration.PerHour(1)}
	require.Equal(t, a.ID(), again.ID())
	require.Equal(t, a.ID(), a.AccountID())
	require.Equal(t, a.ID(), ration.NewKeyedToken(nil, "a").ID())
	require.Equal(t, a.ID(), ration.NewKeyedToken([]byte{}, "a").ID())
}

func TestTokensOfDifferentSecretsKeysAndAccountsDiffer(t *testing.T) {
	seen := make(map[string]string)
	differs := func(id, what string) {
		require.Empty(t, seen[id], what)
		seen[id] = what
		require.Len(t, id, 32)
		require.Empty(t, strings.Trim(id, "0123456789abcdef"))
	}
	accounted := func(token ration.Token, account string) ration.Token {
		token.Account = account
		return token
	}
	differs(ration.NewToken("a").ID(), "a")
	differs(ration.NewToken("b").ID(), "b")
	differs(ration.NewToken("a ").ID(), "a and a space")
	differs(ration.NewKeyedToken([]byte("key"), "a").ID(), "a, keyed")
	differs(ration.NewKeyedToken([]byte("other"), "a").ID(), "a, keyed otherwise")
	differs(accounted(ration.NewToken("x"), "a").AccountID(), "an account of the same text as a token")
	differs(accounted(ration.NewKeyedToken([]byte("key"), "x"), "a").AccountID(), "that account, keyed")
}

func TestAccountIsOneWhateverTheToken(t *testing.T) {
	a, b := ration.NewToken("a"), ration.NewToken("b")
	a.Account, b.Account = "ann", "ann"
	require.Equal(t, a.AccountID(), b.AccountID())
	require.NotEqual(t, a.ID(), b.ID())
}

// A key that the caller wipes or reuses is still the token's.
func TestTokenKeepsItsKey(t *testing.T) {
	key := []byte("key")
	token := ration.NewKeyedToken(key, "a")
	token.Account = "ann"
	before := token.AccountID()
	clear(key)
	require.Equal(t, before, token.AccountID())
}

func TestZeroTokenHasNoID(t *testing.T) {
	var token ration.Token
	require.Empty(t, token.ID())
	require.Empty(t, token.AccountID())
	require.Empty(t, fmt.Sprint(token))
	token.Account = "ann"
	require.NotEmpty(t, token.AccountID())
}
