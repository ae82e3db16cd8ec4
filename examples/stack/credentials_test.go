package stack_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v84/github"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/examples/stack"
)

func serve(t *testing.T, answer http.HandlerFunc) string {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func poolOf(tokens ...ration.Token) *ration.Pool {
	pool := newPool()
	pool.Add(tokens...)
	return pool
}

func fetch(t *testing.T, client *http.Client, url string) int {
	resp, err := client.Get(url)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// Each account's access token comes from its own source, and no other host gets one.
func TestOAuth2AttachesWhatTheSourceSays(t *testing.T) {
	elsewhere := newAPI(t, func(http.ResponseWriter, int) {})
	server := newAPI(t, func(w http.ResponseWriter, call int) {
		if call == 3 {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusFound)
		}
	})
	pool := poolOf(stack.OAuth2("ann", oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "ann's"})),
		stack.OAuth2("bob", oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "bob's"})))
	client := &http.Client{Transport: &ration.Transport{Pool: pool}}
	for range 3 {
		fetch(t, client, server.URL)
	}
	require.ElementsMatch(t, []string{"ann's", "bob's"}, server.tokens[:2])
	require.Equal(t, []string{""}, elsewhere.tokens)
}

// An oauth2.Transport above attaches a token whose quota is not booked.
func TestOAuth2AboveIsAnErrorThatSaysSo(t *testing.T) {
	server := newAPI(t, func(http.ResponseWriter, int) {})
	above := &oauth2.Transport{Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "theirs"}),
		Base: &ration.Transport{Pool: newPool("ours")}}
	_, err := (&http.Client{Transport: above}).Get(server.URL)
	require.ErrorContains(t, err, "oauth2.Transport")
	require.Empty(t, server.tokens)
}

// The server revokes what it has made, and gives another refresh token each time.
func TestAUsersAccessTokenIsRefreshed(t *testing.T) {
	made, revoked := 0, 0
	authority := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("refresh_token") != fmt.Sprint("refresh", made) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		made++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"access%d","refresh_token":"refresh%d","token_type":"Bearer","expires_in":3600}`, made, made)
	})
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != fmt.Sprint("Bearer access", made) || made == revoked {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	config := &oauth2.Config{Endpoint: oauth2.Endpoint{TokenURL: authority, AuthStyle: oauth2.AuthStyleInParams}}
	client := &http.Client{Transport: &ration.Transport{Pool: poolOf(stack.OAuth2User("ann", config, "refresh0"))}}
	require.Equal(t, http.StatusOK, fetch(t, client, api))
	for range 3 {
		revoked = made
		require.Equal(t, http.StatusOK, fetch(t, client, api))
	}
	require.Equal(t, 4, made)
}

// A machine has client credentials, and no user.
func TestClientCredentialsAreASource(t *testing.T) {
	authority := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"machine's","token_type":"Bearer","expires_in":3600}`)
	})
	server := newAPI(t, func(http.ResponseWriter, int) {})
	config := &clientcredentials.Config{TokenURL: authority, AuthStyle: oauth2.AuthStyleInParams}
	client := &http.Client{Transport: &ration.Transport{Pool: poolOf(stack.OAuth2("machine", config.TokenSource(t.Context())))}}
	require.Equal(t, http.StatusOK, fetch(t, client, server.URL))
	require.Equal(t, []string{"machine's"}, server.tokens)
}

// The app signs for its installation's token, which go-github then uses through ration.
func TestAGitHubAppsInstallation(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	calls := 0
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch r.URL.Path {
		case "/app/installations/42/access_tokens":
			signed, signature := secret[:strings.LastIndex(secret, ".")], secret[strings.LastIndex(secret, ".")+1:]
			plain, err := base64.RawURLEncoding.DecodeString(signature)
			digest := sha256.Sum256([]byte(signed))
			if err != nil || rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], plain) != nil {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			calls++
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprintf(w, `{"token":"ghs_one","expires_at":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		case "/users/golang":
			if secret != "ghs_one" {
				w.WriteHeader(http.StatusUnauthorized)
			}
			_, _ = io.WriteString(w, `{"login":"golang"}`)
		}
	})
	base, err := url.Parse(address + "/")
	require.NoError(t, err)
	maker := github.NewClient(nil)
	maker.BaseURL = base
	client := stack.GitHub(&ration.Transport{Pool: poolOf(stack.GitHubApp(maker, "app", key, 42))})
	client.BaseURL = base
	for range 3 {
		user, _, err := client.Users.Get(t.Context(), "golang")
		require.NoError(t, err)
		require.Equal(t, "golang", user.GetLogin())
	}
	require.Equal(t, 1, calls)
}
