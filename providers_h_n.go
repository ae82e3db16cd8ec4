package ration

import "time"

var presetsHToN = []Provider{
	{
		Name:   "hubspot",
		Limits: []Limit{{Max: 100, Window: 10 * time.Second}, PerDay(250_000)},
		Note:   "of Free and Starter; 190 and 625,000 or more of others; the day's by account, and it ends at midnight there; searches 5 a second",
		Source: "https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines", AsOf: undatedCopy, Scope: ScopeApp,
		Windows: []WindowFields{
			{Name: "interval", Limit: "X-HubSpot-RateLimit-Max", Remaining: "X-HubSpot-RateLimit-Remaining",
				LengthIn: "X-HubSpot-RateLimit-Interval-Milliseconds", LengthUnit: time.Millisecond, Scope: ScopeApp},
			{Name: "daily", Limit: "X-HubSpot-RateLimit-Daily", Remaining: "X-HubSpot-RateLimit-Daily-Remaining",
				Window: aDay, Scope: ScopeAccount},
		},
		Signs: []Sign{
			{Field: "policyName", Is: "DAILY", Reason: ReasonQuota, Scope: ScopeAccount, AtMost: aDay},
			{Field: "policyName", Is: "TEN_SECONDLY_ROLLING", Reason: ReasonQuota, Scope: ScopeApp, AtMost: 10 * time.Second},
			{Field: "policyName", Is: "SECONDLY", Reason: ReasonQuota, Scope: ScopeAccount, AtMost: time.Second},
			{Field: "errorType", Is: "RATE_LIMIT", Reason: ReasonQuota},
			{Status: []int{423}, Reason: ReasonLock},
		},
	},
	{
		Name: "instagram", Limits: []Limit{PerHour(5000)}, Note: "the API of 2020 and before; 500 in the sandbox, 60 posts to an endpoint",
		Source: "https://web.archive.org/web/2019/https://www.instagram.com/developer/limits/", AsOf: fromDigest, Scope: ScopeToken,
		Attach: QueryNamed("access_token"),
		Signs: []Sign{
			deadToken("meta.error_type"),
			{Field: "meta.error_type", Is: "OAuthRateLimitException", Reason: ReasonQuota, Scope: ScopeToken, AtMost: time.Hour},
			{Status: []int{429}, Reason: ReasonQuota, Scope: ScopeToken, AtMost: time.Hour},
			{Status: []int{400}, Field: "meta.error_type", Reason: ""},
		},
		Adjust: adjustInstagram,
	},
	{
		Name: "jira", Limits: []Limit{fixed(65_000, time.Hour)},
		Note:   "points of an app: an API token has only what is beside them, 100 a second to an endpoint, and writes to an issue",
		Source: "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/", AsOf: fromDigest, Scope: ScopeApp,
		Signs: []Sign{
			{Status: []int{429}, Header: "RateLimit-Reason", Is: "jira-burst-based", Reason: ReasonQuota, Scope: ScopeEndpoint + "+method"},
			{Status: []int{429}, Header: "RateLimit-Reason", Is: "jira-quota-global-based", Reason: ReasonQuota, Scope: ScopeApp, AtMost: time.Hour},
			{Status: []int{429}, Header: "RateLimit-Reason", Is: "jira-quota-tenant-based", Reason: ReasonQuota, Scope: ScopeTenant, AtMost: time.Hour},
			{Status: []int{429}, Header: "RateLimit-Reason", Is: "jira-per-issue-on-write", Reason: ReasonQuota, Scope: ScopeIssue},
		},
	},
	{
		Name: "linkedin", Note: "a day's by app and by member, from midnight UTC, which only the developer's page tells",
		Source: "https://learn.microsoft.com/linkedin/shared/api-guide/concepts/rate-limits", AsOf: undatedCopy, Scope: ScopeApp,
		InBody: true,
		Signs: []Sign{
			{Status: []int{429}, Says: "application day|application_day", Reason: ReasonQuota, Scope: ScopeApp, Midnight: "UTC"},
			{Status: []int{429}, Says: "member day|member_day|application and member", Reason: ReasonQuota, Scope: ScopeMember, Midnight: "UTC"},
			{Status: []int{429}, Says: " day ", Reason: ReasonQuota, Midnight: "UTC"},
			{Status: []int{429}, Reason: ReasonQuota, AtMost: aDay},
			{Status: []int{401}, Field: "serviceErrorCode", Is: "65600|65601|65602|65604", Reason: ReasonDeadToken},
		},
		Adjust: adjustLinkedIn,
	},
	{
		Name: "mediawiki", Note: "three at once, and a User-Agent that names you",
		Source: "https://www.mediawiki.org/wiki/Wikimedia_APIs/Rate_limits", AsOf: fromDigest, Scope: ScopeIP,
		InBody: true,
		Signs: []Sign{
			{Field: "error.code|errors[].code", Is: "maxlag", Reason: ReasonOverload, AtLeast: 5 * time.Second},
			{Field: "error.code|errors[].code", Is: "readonly", Reason: ReasonOverload},
			{Field: "error.code|errors[].code", Is: "ratelimited|actionthrottled", Reason: ReasonQuota},
			{Status: []int{503}, Reason: ReasonOverload, AtLeast: 5 * time.Second},
			{Status: []int{401, 403}, Field: "error.code", Is: "mwoauth-invalid-authorization", Reason: ReasonDeadToken},
		},
	},
	{
		Name: "meta", Note: "percents of a hidden budget: 200 calls an hour for each user of an app, and shares by object",
		Source: "https://developers.facebook.com/docs/graph-api/overview/rate-limiting/", AsOf: undatedCopy, Scope: ScopeApp,
		Cost: idsCost, Attach: QueryNamed("access_token"),
		InBody:  true,
		Windows: []WindowFields{},
		Signs:   metaSigns,
		Adjust:  adjustMeta,
	},
	{
		Name: "ncbi", Limits: []Limit{PerSecond(3)}, Note: "10 a second with a key",
		Source: "https://support.nlm.nih.gov/kbArticle/?pn=KA-05317", AsOf: undatedCopy, Scope: ScopeIP,
		Attach: QueryNamed("api_key"),
		InBody: true,
		Signs: []Sign{
			{Field: "error", Says: "rate limit exceeded", Reason: ReasonQuota, Scope: ScopeIP},
			{Status: []int{429}, Reason: ReasonQuota, Scope: ScopeIP},
			{Status: []int{400}, Field: "error", Is: "API key invalid", Reason: ReasonDeadToken},
		},
		Adjust: adjustNCBI,
	},
	{
		Name: "notion", Limits: []Limit{PerSecond(3)},
		Note:   "on average, in the older of two copies; in the newer a minute's budget by plan, and a workspace's beside it",
		Source: "https://developers.notion.com/reference/request-limits", AsOf: undatedCopy, Scope: "connection",
		Signs: []Sign{
			{Status: []int{529}, Reason: ReasonOverload},
			{Field: "code", Is: "service_overload", Reason: ReasonOverload},
			{Field: "code", Is: "rate_limited", Reason: ReasonQuota},
			{Status: []int{401}, Field: "code", Is: "unauthorized", Reason: ReasonDeadToken},
		},
	},
}
