package provider

import "github.com/ration-go/ration/internal/header"

// The codes and the words that many APIs use, and the fields in which these stand.
const (
	codeFields = "error.code|error.type|error.status|error.reason|error|code|status|title|errorCode|error_code|error_type|errorType|errcode|errno|err_code|" +
		"errors[].code|errors[].type|errors[].extensions.code|errors[].reason|errors.code|error.errors[].reason|[].errorCode|meta.error_type|meta.code|__type|" +
		"detail.status|detail.code|fault.code|fault.detail.errorcode|resultCode|result_code|statusCode|status_code|status.code|ret_code|retCode|ErrorStatus|" +
		"response.code|response.status|response.error.code|response.errorCode|header.code|exception.code|exceptionCode|reason|infocode|info"
	limitCodes = "throttl|throughputexceeded|toomanyrequest|too_many_request|too-many-request|ratelimit|rate_limit|rate-limit|quotaexceeded|quota_exceeded|quota-exceeded|" +
		"quotaviolation|quotalimit|quota_limit|over_query_limit|over_rate_limit|over_daily_limit|over_quota|request_limit|requestlimit|limit_exceeded|limitexceeded|" +
		"limit_reached|limitreached|exceeded_the_limit|slow_down|slowdown|calls_limit|api_limit|apilimit|usage_limit|usagecap|usage_cap|out_of_quota|requests_exceeds"
	tokenWords = "bad credentials|token has expired|token is expired|token expired|session has expired|revoked|invalid access token|invalid access_token|" +
		"access token is invalid|access_token provided is invalid|invalid token|invalid oauth token|token is invalid|invalid api key|incorrect api key|invalid_token|jwt expired|" +
		"api key provided is invalid|api key is invalid|api-key-invalid|api key invalid|invalid-api-key"
	moneyWords       = "credits|balance|top up|top-up|recharge|add funds|insufficient fund|unpaid|overdue|past due|invoice|payment method"
	noMoneyWords     = "insufficient funds|insufficient credit|insufficient balance|not enough credit|not have enough credit|out of credit|no credits left|negative balance"
	storageWords     = "storage quota|storage limit|disk quota|mailbox size|file size|too large|out of storage|storage space"
	concurrencyWords = "parallel request|concurren|simultaneous|in flight|in-flight"
)

var (
	clientErrors = []int{400, 401, 403}
	// throttlingStatus are those with which APIs refuse beside 429, and say so in a code: AWS with 400, Azure with 409,
	// Shopify with 430.
	throttlingStatus = []int{400, 401, 403, 406, 409, 412, 418, 422, 423, 425, 430, 500, 503}
	// refusingStatus are those with which APIs refuse in words.
	refusingStatus = []int{401, 403, 406, 412, 418, 423, 425, 430}
)

// usualRules hold for every provider, behind its own.
var usualRules = []MatchRule{
	// A token that is called wrong is wrong, whatever the status.
	{Status: []int{401}, Header: "WWW-Authenticate", Contains: `error="invalid_token"|error=invalid_token`, Reason: ReasonDeadToken},
	{Status: clientErrors, Field: codeFields, Equals: "invalid_token|token_expired|token_revoked|expired_token|invalid_api_key|account_deactivated|account_inactive",
		Reason: ReasonDeadToken},

	// No wait helps against these.
	{Field: codeFields, Equals: "insufficient_quota|billing_error|billing_hard_limit_reached|billing_not_active|credits_exhausted|payment_required", Reason: ReasonBilling},
	// A customer's card, or a limit of what is stored, is no quota of calls.
	{Status: []int{402}, Field: "error.type|error.code|error.decline_code|code|type|errors[].code", Contains: "card_|declin|insufficient_funds|payment_method|payment_intent",
		Reason: ReasonDenied},
	{Status: clientErrors, Field: codeFields, Contains: "storage_limit|storagelimit|storagequota|storage_quota|size_limit|length_limit|depth_limit|row_limit|field_limit|file_limit|record_limit|sizelimit", Reason: ReasonDenied},
	{Status: clientErrors, Field: allText, Contains: storageWords, Reason: ReasonDenied},
	{Field: codeFields, Equals: "MAX_COST_EXCEEDED|request_too_large|QUERY_TOO_COMPLEX", Reason: ReasonTooLarge},

	// The problem types of the IETF's drafts.
	{Field: "type", Contains: "problem-types#temporary-reduced-capacity", Reason: ReasonOverload},
	{Field: "type", Contains: "problem-types#quota-exceeded", Reason: ReasonQuota},
	{Field: "type", Contains: "problem-types#abnormal-usage-detected", Reason: ReasonSecondary},

	// Cloudflare, in front of an API, blocks an address.
	{Status: []int{403, 429}, Contains: "error code: 1015|error 1015", Reason: ReasonBan, Scope: ScopeIP},

	// The type of Riot's refusals says whose limit it is: of "service" it is nobody's.
	{Status: []int{429}, Header: "X-Rate-Limit-Type", Equals: "service", Reason: ReasonOverload, Scope: ScopeEndpoint},
	{Status: []int{429}, Header: "X-Rate-Limit-Type", Equals: "method", Reason: ReasonQuota, Scope: ScopeEndpoint},

	{Status: []int{429}, Field: codeFields, Equals: "lock_timeout", Reason: ReasonLock},
	// A wait that is told outranks words: who says how long speaks of a rate.
	{Status: []int{420, 429}, Header: header.RetryAfterNames + "|" + header.RetryAfterMillisecondsNames, Reason: ReasonQuota},
	{Status: []int{420, 429}, Contains: concurrencyWords, Reason: ReasonConcurrency},
	{Field: codeFields, Equals: "RATE_LIMITED|RATE_LIMIT|RATELIMITED|THROTTLED|THROTTLING|TOO_MANY_REQUESTS|TOOMANYREQUESTS|TooManyRequests|" +
		"rate_limit_exceeded|rateLimitExceeded|userRateLimitExceeded|RESOURCE_EXHAUSTED|rate_limit_error|REQUEST_LIMIT_EXCEEDED|" +
		"LIMIT_EXCEEDED|ThrottlingException|RequestLimitExceeded|OAuthRateLimitException|OVER_QUERY_LIMIT|OVER_RATE_LIMIT|QUOTA_EXCEEDED", Reason: ReasonQuota},
	{Status: throttlingStatus, Field: codeFields, Contains: limitCodes, Reason: ReasonQuota},
	// Some answer 200, with a body that says it is an error.
	{Status: []int{200}, says: failsForLimit, Reason: ReasonQuota},
	{Status: []int{200}, Field: "Note|Information", Contains: "api call frequency|rate limit|requests per", Reason: ReasonQuota}, // Alpha Vantage
	{Status: []int{529}, Reason: ReasonOverload},
	{Status: []int{500, 502, 503, 504}, Header: header.RetryAfterNames + "|" + header.RetryAfterMillisecondsNames, Reason: ReasonOverload},
	{Status: []int{420, 429}, Reason: ReasonQuota},
	{Header: "X-Envoy-RateLimited", Equals: "true", Reason: ReasonQuota},
	// A quota that is told with 402 comes back by itself; a balance does not.
	{Status: []int{402}, Field: allText, Contains: moneyWords, Reason: ReasonBilling},
	{Status: []int{402}, says: speaksOfLimit, Reason: ReasonQuota},
	{Status: []int{402}, Reason: ReasonBilling},
	{Status: []int{509}, Reason: ReasonQuota}, // of bandwidth
	{Status: []int{430}, says: speaksOfLimit, Reason: ReasonQuota},

	{Status: clientErrors, Field: allText, Contains: noMoneyWords, Reason: ReasonBilling},
	{Status: []int{401}, Field: allText, Contains: tokenWords, Reason: ReasonDeadToken},
	{Status: throttlingStatus[:len(throttlingStatus)-2], says: namesLimit, Reason: ReasonQuota},
	{Status: refusingStatus, says: speaksOfLimit, Reason: ReasonQuota},
	{Status: []int{503}, says: namesLimit, Reason: ReasonOverload},
	{Status: []int{400, 403}, Header: errorHeaders, Contains: "over_qps|over_rate|over rate|throttl|rate limit|ratelimit|too many requests|toomanyrequests", Reason: ReasonQuota},
	{Status: []int{403}, Header: "Retry-After", Reason: ReasonQuota},
	{Status: []int{403}, Field: allText, Contains: tokenWords, Reason: ReasonDeadToken},
	{Status: []int{409, 423}, says: asksForTime, Reason: ReasonLock},
	{Status: throttlingStatus[:len(throttlingStatus)-2], says: asksForTime, Reason: ReasonQuota},
	{Status: []int{413}, Header: header.RetryAfterNames + "|" + header.RetryAfterMillisecondsNames, Reason: ReasonOverload}, // RFC 9110, 15.5.14
	{Status: []int{413}, Reason: ReasonTooLarge},
	{Status: []int{401}, Reason: ReasonUnauthorized},
}
