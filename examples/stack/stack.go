// Package stack puts a ration.Transport below the clients that programs already use.
// It is a module of its own, so that who imports ration gets none of them.
package stack

import (
	"net/http"

	"github.com/google/go-github/v84/github"
	"github.com/hashicorp/go-retryablehttp"

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
