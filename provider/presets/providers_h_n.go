package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

var presetsHToN = []provider.Provider{
	{
		Name:   "hubspot",
		Limits: []limit.Limit{{Max: 100, Window: 10 * time.Second}, limit.PerDay(250_000)},
		Note:   "of Free and Starter; 190 and 625,000 or more of others; the day's by account, and it ends at midnight there; searches 5 a second",
		Source: "https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines", AsOf: undatedCopy, Scope: provider.ScopeApp,
		Windows: []provider.WindowHeaders{
			{Name: "interval", Limit: "X-HubSpot-RateLimit-Max", Remaining: "X-HubSpot-RateLimit-Remaining",
				LengthIn: "X-HubSpot-RateLimit-Interval-Milliseconds", LengthUnit: time.Millisecond, Scope: provider.ScopeApp},
			{Name: "daily", Limit: "X-HubSpot-RateLimit-Daily", Remaining: "X-HubSpot-RateLimit-Daily-Remaining",
				Window: aDay, Scope: provider.ScopeAccount},
		},
		Rules: []provider.MatchRule{
			{Field: "policyName", Equals: "DAILY", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount, MaxWait: aDay},
			{Field: "policyName", Equals: "TEN_SECONDLY_ROLLING", Reason: provider.ReasonQuota, Scope: provider.ScopeApp, MaxWait: 10 * time.Second},
			{Field: "policyName", Equals: "SECONDLY", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount, MaxWait: time.Second},
			{Field: "errorType", Equals: "RATE_LIMIT", Reason: provider.ReasonQuota},
			{Status: []int{423}, Reason: provider.ReasonLock},
		},
	},
	{
		Name: "instagram", Limits: []limit.Limit{limit.PerHour(5000)}, Note: "the API of 2020 and before; 500 in the sandbox, 60 posts to an endpoint",
		Source: "https://web.archive.org/web/2019/https://www.instagram.com/developer/limits/", AsOf: fromDigest, Scope: provider.ScopeToken,
		Attach: provider.QueryNamed("access_token"),
		Rules: []provider.MatchRule{
			deadToken("meta.error_type"),
			{Field: "meta.error_type", Equals: "OAuthRateLimitException", Reason: provider.ReasonQuota, Scope: provider.ScopeToken, MaxWait: time.Hour},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeToken, MaxWait: time.Hour},
			{Status: []int{400}, Field: "meta.error_type", Reason: ""},
		},
		Adjust: adjustInstagram,
	},
	{
		Name: "jira", Limits: []limit.Limit{fixed(65_000, time.Hour)},
		Note:   "points of an app: an API token has only what is beside them, 100 a second to an endpoint, and writes to an issue",
		Source: "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/", AsOf: fromDigest, Scope: provider.ScopeApp,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Header: "RateLimit-Reason", Equals: "jira-burst-based", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint + "+method"},
			{Status: []int{429}, Header: "RateLimit-Reason", Equals: "jira-quota-global-based", Reason: provider.ReasonQuota, Scope: provider.ScopeApp, MaxWait: time.Hour},
			{Status: []int{429}, Header: "RateLimit-Reason", Equals: "jira-quota-tenant-based", Reason: provider.ReasonQuota, Scope: provider.ScopeTenant, MaxWait: time.Hour},
			{Status: []int{429}, Header: "RateLimit-Reason", Equals: "jira-per-issue-on-write", Reason: provider.ReasonQuota, Scope: provider.ScopeIssue},
		},
	},
	{
		Name: "linkedin", Note: "a day's by app and by member, from midnight UTC, which only the developer's page tells",
		Source: "https://learn.microsoft.com/linkedin/shared/api-guide/concepts/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeApp,
		ReadBody: true,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Contains: "application day|application_day", Reason: provider.ReasonQuota, Scope: provider.ScopeApp, Midnight: "UTC"},
			{Status: []int{429}, Contains: "member day|member_day|application and member", Reason: provider.ReasonQuota, Scope: provider.ScopeMember, Midnight: "UTC"},
			{Status: []int{429}, Contains: " day ", Reason: provider.ReasonQuota, Midnight: "UTC"},
			{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: aDay},
			{Status: []int{401}, Field: "serviceErrorCode", Equals: "65600|65601|65602|65604", Reason: provider.ReasonDeadToken},
		},
		Adjust: adjustLinkedIn,
	},
	{
		Name: "mediawiki", Note: "three at once, and a User-Agent that names you",
		Source: "https://www.mediawiki.org/wiki/Wikimedia_APIs/Rate_limits", AsOf: fromDigest, Scope: provider.ScopeIP,
		ReadBody: true,
		Rules: []provider.MatchRule{
			{Field: "error.code|errors[].code", Equals: "maxlag", Reason: provider.ReasonOverload, MinWait: 5 * time.Second},
			{Field: "error.code|errors[].code", Equals: "readonly", Reason: provider.ReasonOverload},
			{Field: "error.code|errors[].code", Equals: "ratelimited|actionthrottled", Reason: provider.ReasonQuota},
			{Status: []int{503}, Reason: provider.ReasonOverload, MinWait: 5 * time.Second},
			{Status: []int{401, 403}, Field: "error.code", Equals: "mwoauth-invalid-authorization", Reason: provider.ReasonDeadToken},
		},
	},
	{
		Name: "meta", Note: "percents of a hidden budget: 200 calls an hour for each user of an app, and shares by object",
		Source: "https://developers.facebook.com/docs/graph-api/overview/rate-limiting/", AsOf: undatedCopy, Scope: provider.ScopeApp,
		Cost: idsCost, Attach: provider.QueryNamed("access_token"),
		ReadBody: true,
		Windows:  []provider.WindowHeaders{},
		Rules:    metaSigns,
		Adjust:   adjustMeta,
	},
	{
		Name: "ncbi", Limits: []limit.Limit{limit.PerSecond(3)}, Note: "10 a second with a key",
		Source: "https://support.nlm.nih.gov/kbArticle/?pn=KA-05317", AsOf: undatedCopy, Scope: provider.ScopeIP,
		Attach:   provider.QueryNamed("api_key"),
		ReadBody: true,
		Rules: []provider.MatchRule{
			{Field: "error", Contains: "rate limit exceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
			{Status: []int{400}, Field: "error", Equals: "API key invalid", Reason: provider.ReasonDeadToken},
		},
		Adjust: adjustNCBI,
	},
	{
		Name: "notion", Limits: []limit.Limit{limit.PerSecond(3)},
		Note:   "on average, in the older of two copies; in the newer a minute's budget by plan, and a workspace's beside it",
		Source: "https://developers.notion.com/reference/request-limits", AsOf: undatedCopy, Scope: "connection",
		Rules: []provider.MatchRule{
			{Status: []int{529}, Reason: provider.ReasonOverload},
			{Field: "code", Equals: "service_overload", Reason: provider.ReasonOverload},
			{Field: "code", Equals: "rate_limited", Reason: provider.ReasonQuota},
			{Status: []int{401}, Field: "code", Equals: "unauthorized", Reason: provider.ReasonDeadToken},
		},
	},
}
