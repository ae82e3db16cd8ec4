package stack

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/go-github/v84/github"
	"golang.org/x/oauth2"

	"github.com/ration-go/ration"
)

// OAuth2 returns a token whose access tokens come from a source. ration keeps the access token,
// so the source need not: oauth2.ReuseTokenSource would answer a 401 with the token that got
// it. No oauth2.Transport goes above ration's: that would attach a token of its own.
func OAuth2(id string, source oauth2.TokenSource) ration.Token {
	return ration.TokenFrom(id, func(context.Context) (string, time.Time, error) { return accessToken(source.Token()) })
}

func accessToken(token *oauth2.Token, err error) (string, time.Time, error) {
	if err != nil {
		return "", time.Time{}, err
	}
	return token.AccessToken, token.Expiry, nil
}

// OAuth2User returns the token of a user who has granted a refresh token. Some servers replace
// it at each use. ration runs a source once at a time, so the variable needs no lock.
func OAuth2User(id string, config *oauth2.Config, refresh string) ration.Token {
	return ration.TokenFrom(id, func(ctx context.Context) (string, time.Time, error) {
		token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
		if err == nil {
			refresh = token.RefreshToken
		}
		return accessToken(token, err)
	})
}

// GitHubApp returns the token of a GitHub App's installation, whose secrets GitHub makes for an
// hour. The client must not be one that goes through ration: it makes the tokens.
func GitHubApp(client *github.Client, app string, key *rsa.PrivateKey, installation int64) ration.Token {
	return ration.TokenFrom("installation "+strconv.FormatInt(installation, 10), func(ctx context.Context) (string, time.Time, error) {
		assertion, err := assertApp(app, key, time.Now())
		if err != nil {
			return "", time.Time{}, err
		}
		made, _, err := client.WithAuthToken(assertion).Apps.CreateInstallationToken(ctx, installation, nil)
		return made.GetToken(), made.GetExpiresAt().Time, err
	})
}

// assertApp returns the JSON Web Token by which an app shows who it is. GitHub accepts ten
// minutes at most, and clocks differ.
func assertApp(app string, key *rsa.PrivateKey, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"iss": app, "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	return signed + "." + encode(signature), err
}
