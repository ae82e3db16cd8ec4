package provider

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ration-go/ration/internal/header"
)

// A Scope is whom a limit is about: one of the constants, or several with "+" between.
// "app+endpoint" is one endpoint, for all tokens of an app. Parts that are none of the
// constants are the provider's own names, such as "core" in "user+core".
type Scope string

// What limits are about.
const (
	ScopeToken    Scope = "token"
	ScopeUser     Scope = "user"     // all tokens of a user
	ScopeMember   Scope = "member"   // a user within an app
	ScopeAccount  Scope = "account"  // all tokens of a customer
	ScopeOrg      Scope = "org"      // all tokens of an organisation
	ScopeTenant   Scope = "tenant"   // an installation of the provider's product
	ScopeApp      Scope = "app"      // all tokens that an app was given
	ScopeProject  Scope = "project"  // the same, at Google
	ScopeIP       Scope = "ip"       // all requests from an address
	ScopeEndpoint Scope = "endpoint" // one endpoint
	ScopeObject   Scope = "object"   // the object that is requested, whoever requests it
	ScopeResource Scope = "resource" // the same, shared with other apps
	ScopeIssue    Scope = "issue"    // one issue, at Jira
	ScopePage     Scope = "page"     // one page, at Meta
	ScopeBucket   Scope = "bucket"   // a group of endpoints, which the response names
)

// Has reports whether part is one of the scope's parts.
func (s Scope) Has(part Scope) bool { return s.hasAny(part) }

func (s Scope) hasAny(parts ...Scope) bool {
	for part := range strings.SplitSeq(string(s), "+") {
		if slices.Contains(parts, Scope(part)) {
			return true
		}
	}
	return false
}

// With returns the scope with one more part, which the provider names. It returns s if
// part is empty or no name: a name has up to 64 visible ASCII characters, and no '+'.
func (s Scope) With(part string) Scope {
	if part = header.Name(part); part == "" {
		return s
	}
	if s == "" {
		return Scope(part)
	}
	return s + "+" + Scope(part)
}

// OtherTokenHelps reports whether a token of another account may do what was refused: the
// scope names the holder of the token, and nothing that the other token shares with it. Of an
// empty scope that is not known, and the result is false.
func (s Scope) OtherTokenHelps() bool { return s.HasHolder() && !s.HasShared() && !s.HasObject() }

// HasHolder reports whether a part names the holder of a token: a token, a user, an account
// and their like.
func (s Scope) HasHolder() bool {
	return s.hasAny(ScopeToken, ScopeUser, ScopeMember, ScopeAccount, ScopeOrg, ScopeTenant, "connection", "installation", "workspace")
}

// HasShared reports whether a part names what the tokens of different holders have in
// common: an app, a project or an address.
func (s Scope) HasShared() bool { return s.hasAny(ScopeApp, ScopeProject, ScopeIP) }

// HasObject reports whether a part names what a request is about, whoever sends it.
func (s Scope) HasObject() bool { return s.hasAny(ScopeObject, ScopeResource, ScopeIssue, ScopePage) }

// IsWholeAPI reports whether the scope is empty, or a name by which providers mean all that
// they offer, such as GitHub's "core".
func (s Scope) IsWholeAPI() bool { return s == "" || s == "core" || s == "default" || s == "requests" }

// scopeWords are words of refusals that say whose the limit is. The first that is found counts.
var scopeWords = []struct {
	scope Scope
	words *regexp.Regexp
}{
	{ScopeEndpoint, regexp.MustCompile(`\b(?:this|per|per-) ?(?:endpoint|route|method|operation|resource)\b|\bmethod is blocked\b|\bto the [\w.]+ operation\b`)},
	{ScopeUser, regexp.MustCompile(`\bper[ -]user\b|\b(?:this|single unique|for) user\b|\buser[- ]rate|\buser flow|este usuario`)},
	{ScopeIP, regexp.MustCompile(`\b(?:per|your|this|from) ip\b|\bip address\b|\bper client ip\b`)},
	{ScopeProject, regexp.MustCompile(`\bper project\b|\bproject id\b|\bfor a project\b`)},
	{ScopeOrg, regexp.MustCompile(`\b(?:per|your|this|for|in) organi[sz]ation\b`)},
	{ScopeAccount, regexp.MustCompile(`\b(?:per|your|this|for this) (?:account|seller|subscription|customer)\b|\baccount over\b`)},
	{ScopeApp, regexp.MustCompile(`\b(?:per|this) application\b|\bapplication is over\b|\bper app\b`)},
}

// scopeHeaders say whose a limit is, and namedScopes what their values mean.
const scopeHeaders = "X-RateLimit-Scope|X-Rate-Limit-Scope|RateLimit-Scope"

var namedScopes = map[string]Scope{"user": ScopeUser, "ip": ScopeIP, "ip-address": ScopeIP, "ip_address": ScopeIP, "token": ScopeToken, "key": ScopeToken, "app": ScopeApp,
	"application": ScopeApp, "account": ScopeAccount, "org": ScopeOrg, "organization": ScopeOrg, "project": ScopeProject, "endpoint": ScopeEndpoint, "route": ScopeEndpoint,
	"developer": ScopeApp, "tenant": ScopeTenant, "customer": ScopeAccount}

// scopeSaid returns whose a refusal says the limit is.
func scopeSaid(r *Response) Scope {
	if value, _ := r.single(scopeHeaders); value != "" {
		if scope := namedScopes[strings.ToLower(value)]; scope != "" {
			return scope
		}
	}
	for _, value := range r.Fields("rateScope|error.rateScope|error.details[].errors[].details.quotaErrorDetails.rateScope") {
		if scope := namedScopes[strings.ToLower(value)]; scope != "" {
			return scope
		}
	}
	if text := r.prose(); text != "" {
		for _, one := range scopeWords {
			if one.words.MatchString(text) {
				return one.scope
			}
		}
	}
	return ""
}
