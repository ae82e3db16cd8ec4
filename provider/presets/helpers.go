package presets

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// What AsOf says if the figures were not compared with a dated page of the provider's.
const (
	undatedCopy = "undated" // compared with a copy of the page that does not tell its month
	fromDigest  = "digest"  // compared with a digest of the documentation only
)

const inWords = "the body's words" // where figures were read that stand in a sentence

const (
	pacific = "America/Los_Angeles"
	aDay    = 24 * time.Hour
)

// deadToken returns the rule for a body whose field has one of the usual codes for a token
// that is expired, revoked or wrong.
func deadToken(field string) provider.MatchRule {
	return provider.MatchRule{
		Field: field,
		Equals: "invalid_auth|token_revoked|token_expired|account_inactive|not_authed|access_token_invalid|INVALID_SESSION_ID|" +
			"authentication_error|invalid_api_key|api_key_expired|authError|UNAUTHENTICATED|E0000011|OAuthAccessTokenException",
		Reason: provider.ReasonDeadToken,
	}
}

// authorization returns an Attach that sets "Authorization: SCHEME SECRET".
func authorization(scheme string) provider.Attach {
	return func(req *http.Request, secret string) error {
		req.Header.Set("Authorization", scheme+" "+secret)
		return nil
	}
}

// authorizationWith returns an Attach that sets "Authorization: PREFIXSECRET".
func authorizationWith(prefix string) provider.Attach {
	return func(req *http.Request, secret string) error {
		req.Header.Set("Authorization", prefix+secret)
		return nil
	}
}

// headerNames returns the names of the headers that begin with a prefix, in any case, sorted.
func headerNames(r *provider.Response, prefix string) []string {
	names := slices.Sorted(maps.Keys(r.Header))
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix)) || header.Name(name) == ""
	})
}

// fixed returns a limit of n units in each window of the provider's clock.
func fixed(n int, window time.Duration) limit.Limit {
	return limit.Limit{Max: n, Window: window, Algorithm: limit.FixedWindow}
}

// leaky returns the limit of a bucket that holds n units and refills in a window.
func leaky(n int, window time.Duration) limit.Limit {
	return limit.Limit{Max: n, Window: window, Algorithm: limit.GCRA, Burst: n}
}

// A pattern is a regular expression that is compiled when it is used first, so that a
// program does not compile those of presets that it does not use.
type pattern struct {
	text string
	once sync.Once
	expr *regexp.Regexp
}

// find returns the first match and its groups, or nil.
func (p *pattern) find(in string) []string {
	p.once.Do(func() { p.expr = regexp.MustCompile(p.text) })
	return p.expr.FindStringSubmatch(in)
}
