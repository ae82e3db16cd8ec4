// Package stack puts a ration.Transport below the clients that programs already use.
// It is a module of its own, so that who imports ration gets none of them.
package stack

import (
	"net/http"

	"github.com/google/go-github/v84/github"
	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/oauth2"

	"github.com/ration-go/ration"
)

// GitHub turns off go-github's own check, which refuses every request once one token
// is spent.
func GitHub(transport *ration.Transport) *github.Client {
	client := github.NewClient(&http.Client{Transport: transport})
	client.DisableRateLimitCheck = true
	return client
}

// Retryable leaves the retries to ration, which books each one.
func Retryable(transport *ration.Transport) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient.Transport = transport
	client.RetryMax = 0
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return client
}

// OAuth2 attaches access tokens that expire: ration.NewToken("ann") in the pool names
// the source, which is asked when the slot has come.
func OAuth2(pool *ration.Pool, sources map[string]oauth2.TokenSource) *ration.Transport {
	return &ration.Transport{Pool: pool, Attach: func(req *http.Request, name string) {
		if token, err := sources[name].Token(); err == nil { // else the provider answers 401
			token.SetAuthHeader(req)
		}
	}}
}
