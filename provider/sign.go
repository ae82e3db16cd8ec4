package provider

import (
	"slices"
	"strings"
	"time"
)

// A MatchRule is something in an answer that has a meaning with a provider: a status, a
// header, a code in the body, words. Of a provider's signs the first that is found
// counts; all that it names must be there.
type MatchRule struct {
	// Status are those of which it is a sign. Nil: any.
	Status []int
	// Header is one that must be there, or several with "|" between, one of which
	// must be. Empty: none.
	Header string
	// Field is a path in the body's JSON, as [Response.Field] has it, or several with
	// "|" between, one of which must be there. Empty: none.
	Field string
	// Is is the whole value of the field, or of the header if no field is named,
	// whatever its case; several have "|" between. Empty: any.
	Equals string
	// Says are words, or several with "|" between, one of which must be found,
	// whatever its case: in that value, or in the first 8 KiB of the body where Is
	// is set too, or neither a field nor a header. Empty: any.
	Contains string

	// Reason is what it means. Empty: nothing, whatever else there is in the answer.
	Reason Reason
	// Scope is whom it is about. Empty: that is not known from it.
	Scope Scope
	// MinWait and MaxWait bound the wait, where the answer does not tell it.
	MinWait, MaxWait time.Duration
	// Midnight is the IANA time zone at whose next midnight the wait ends, where
	// the answer does not tell it. Empty: there is none.
	Midnight string
}

// found returns what in the answer is the sign, and empty if it is not there.
func (s *MatchRule) Match(a *Response) (by string) {
	if s.Status != nil {
		if !slices.Contains(s.Status, a.Status) {
			return ""
		}
		by = statusName(a.Status)
	}
	if s.Header != "" {
		if by = s.header(a); by == "" {
			return ""
		}
	}
	if s.Field != "" {
		values := a.All(s.Field)
		at := slices.IndexFunc(values, s.fits)
		if at < 0 {
			return ""
		}
		if by = "the body's words"; s.Equals != "" {
			by = strings.TrimSpace(values[at]) + " in the body"
		}
	}
	if s.Contains != "" && (s.Equals != "" || s.Header == "" && s.Field == "") {
		if !containsAny(a.Text(), s.Contains) {
			return ""
		}
		if s.Equals == "" {
			by = "the body's words"
		}
	}
	return by
}

// header returns the name of the header that is there as it must be.
func (s *MatchRule) header(a *Response) string {
	for name := range strings.SplitSeq(s.Header, "|") {
		for _, value := range a.Header.Values(name) {
			if strings.TrimSpace(value) != "" && (s.Field != "" || s.fits(value)) {
				return name
			}
		}
	}
	return ""
}

// fits reports whether a value is what the sign says of it.
func (s *MatchRule) fits(value string) bool {
	if s.Equals != "" {
		return among(strings.TrimSpace(value), s.Equals)
	}
	return s.Contains == "" || containsAny(strings.ToLower(value), s.Contains)
}

const (
	codeFields = "error.code|error.type|error.status|error|code|errorCode|error_code|errors[].code|errors[].type|" +
		"errors[].extensions.code|errors[].reason|[].errorCode|meta.error_type|title"
	wordFields = "error.message|message|message.error|error|errors|errors[].message|error_description|detail|title|msg|" +
		"error_message|meta.error_message|[].message"
	limitWords = "rate limit|rate-limit|ratelimit|too many requests|throttl|request limit reached|limit exceeded|quota exceeded|" +
		"exceeded your quota|calls per second"
	tokenWords = "bad credentials|token has expired|token is expired|token expired|session has expired|revoked|invalid access token|" +
		"access token is invalid|access_token provided is invalid|invalid token|invalid oauth token|token is invalid|invalid api key|incorrect api key|invalid_token|jwt expired"
	crowdWords = "parallel request|concurren|simultaneous|in flight|in-flight"
)

var clientErrors = []int{400, 401, 403}

// usualSigns are those of any provider, behind its own.
var usualSigns = []MatchRule{
	// A token that is named wrong is wrong, whatever it was refused with.
	{Status: []int{401}, Header: "WWW-Authenticate", Contains: `error="invalid_token"|error=invalid_token`, Reason: ReasonDeadToken},
	{Status: clientErrors, Field: codeFields, Equals: "invalid_token|token_expired|token_revoked|expired_token|invalid_api_key|account_deactivated|account_inactive",
		Reason: ReasonDeadToken},

	// What no wait helps against.
	{Field: codeFields, Equals: "insufficient_quota|billing_error|billing_hard_limit_reached|billing_not_active|credits_exhausted|payment_required", Reason: ReasonBilling},
	{Field: codeFields, Equals: "MAX_COST_EXCEEDED|request_too_large|QUERY_TOO_COMPLEX", Reason: ReasonTooLarge},

	// The problem types of the IETF's drafts.
	{Field: "type", Contains: "problem-types#temporary-reduced-capacity", Reason: ReasonOverload},
	{Field: "type", Contains: "problem-types#quota-exceeded", Reason: ReasonQuota},
	{Field: "type", Contains: "problem-types#abnormal-usage-detected", Reason: ReasonSecondary},

	// Cloudflare's page in front of an API keeps an address out.
	{Status: []int{403, 429}, Contains: "error code: 1015|error 1015", Reason: ReasonBan, Scope: ScopeIP},

	{Status: []int{420, 429}, Contains: crowdWords, Reason: ReasonConcurrency},
	{Status: []int{429}, Field: codeFields, Equals: "lock_timeout", Reason: ReasonLock},
	{Field: codeFields, Equals: "RATE_LIMITED|RATE_LIMIT|RATELIMITED|THROTTLED|THROTTLING|TOO_MANY_REQUESTS|TOOMANYREQUESTS|TooManyRequests|" +
		"rate_limit_exceeded|rateLimitExceeded|userRateLimitExceeded|RESOURCE_EXHAUSTED|rate_limit_error|REQUEST_LIMIT_EXCEEDED|" +
		"LIMIT_EXCEEDED|ThrottlingException|RequestLimitExceeded|OAuthRateLimitException", Reason: ReasonQuota},
	{Status: []int{529}, Reason: ReasonOverload},
	{Status: []int{500, 502, 503, 504}, Header: retryHeaders + "|" + retryMilliseconds, Reason: ReasonOverload},
	{Status: []int{420, 429}, Reason: ReasonQuota},
	{Header: "X-Envoy-RateLimited", Equals: "true", Reason: ReasonQuota},
	{Status: []int{402}, Reason: ReasonBilling},

	{Status: clientErrors, Field: wordFields, Contains: limitWords, Reason: ReasonQuota},
	{Status: clientErrors, Contains: "rate limit exceeded|too many requests|rate exceeded", Reason: ReasonQuota},
	{Status: []int{503}, Field: wordFields, Contains: limitWords, Reason: ReasonOverload},
	{Status: []int{403}, Header: "Retry-After", Reason: ReasonQuota},
	{Status: []int{401, 403}, Field: wordFields, Contains: tokenWords, Reason: ReasonDeadToken},
	{Status: []int{413}, Reason: ReasonTooLarge},
	{Status: []int{401}, Reason: ReasonUnauthorized},
}

// meaning returns the sign that an answer bears and what it is, or nil.
func (p *Provider) meaning(a *Response) (sign *MatchRule, by string) {
	for _, signs := range [...][]MatchRule{p.Rules, usualSigns} {
		for i := range signs {
			one := &signs[i]
			if one.Status != nil && !slices.Contains(one.Status, a.Status) || one.Field != "" && len(a.Body) == 0 {
				continue // most rules, of any response
			}
			if by := one.Match(a); by != "" {
				return one, by
			}
		}
	}
	return nil, ""
}
