// Package presets describes the limits and responses of many APIs.
package presets

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// presets are the providers that [ProviderNamed] has, in the order of their names.
// Each is data; what data cannot say is a function, in dialects.go or a file of its own.
var presets = slices.Concat(presetsAToG, presetsHToN, presetsOToZ)

const (
	undatedCopy = "undated" // compared with a copy of the page that does not tell its month
	fromDigest  = "digest"  // compared with no page of the provider's
	pacific     = "America/Los_Angeles"
	aDay        = 24 * time.Hour
	tokenGone   = "invalid_auth|token_revoked|token_expired|account_inactive|not_authed|access_token_invalid|INVALID_SESSION_ID|" +
		"authentication_error|invalid_api_key|api_key_expired|authError|UNAUTHENTICATED|E0000011|OAuthAccessTokenException"
)

// deadToken is the sign of a provider's code for a token that is expired, revoked or wrong.
func deadToken(field string) provider.MatchRule {
	return provider.MatchRule{Field: field, Equals: tokenGone, Reason: provider.ReasonDeadToken}
}

// authorization returns an Attach that sets "Authorization: SCHEME SECRET".
func authorization(scheme string) provider.Attach {
	return func(req *http.Request, secret string) { req.Header.Set("Authorization", scheme+" "+secret) }
}

// fixed returns a limit in windows that the provider's clock begins.
func fixed(n int, window time.Duration) limit.Limit {
	return limit.Limit{Max: n, Window: window, Algorithm: limit.FixedWindow}
}

// leaky returns a limit of so many at once, which fills in a window.
func leaky(n int, window time.Duration) limit.Limit {
	return limit.Limit{Max: n, Window: window, Algorithm: limit.GCRA, Burst: n}
}

// idsCost is how many objects a request names: Meta counts each as a call.
func idsCost(req *http.Request) int {
	ids := req.URL.Query().Get("ids")
	if ids == "" {
		return 1
	}
	return 1 + strings.Count(ids, ",")
}

// youtubeCost is what the Data API takes: a list 1 unit, a write 50, and captions
// more. An upload is not counted in these units, but takes 1 of its own.
func youtubeCost(req *http.Request) int {
	lists := req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == ""
	if strings.HasSuffix(req.URL.Path, "/captions") {
		switch req.Method {
		case http.MethodPost:
			return 400
		case http.MethodPut:
			return 450
		}
		return 50
	}
	if lists || req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/videos") {
		return 1
	}
	return 50
}
