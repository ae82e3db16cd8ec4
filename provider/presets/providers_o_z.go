package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

var presetsOToZ = []provider.Provider{
	{
		Name: "okta", Note: "a minute's by group of endpoints, for the whole organisation; 75 at once, or 35 of the free plan",
		Source: "https://developer.okta.com/docs/reference/rl2-concurrency/", AsOf: "2026-08", Scope: provider.ScopeOrg,
		Attach: authorization("SSWS"),
		Rules:  []provider.MatchRule{{Status: []int{401}, Field: "errorCode", Equals: "E0000011", Reason: provider.ReasonDeadToken}},
		Adjust: adjustOkta,
	},
	{
		Name: "openai", Note: "requests and tokens a minute and a day, by organisation, project and model: read them from answers",
		Source: "https://developers.openai.com/api/docs/guides/rate-limits", AsOf: "2026-06", Scope: provider.ScopeOrg,
		Windows: []provider.WindowHeaders{
			openAIWindow("requests", "", "Requests", true), openAIWindow("tokens", "tokens", "Tokens", true),
			openAIProjectTokens,
		},
		Rules:  openAISigns,
		Adjust: adjustOpenAI,
	},
	{
		Name: "reddit", Limits: []limit.Limit{fixed(1000, 10*time.Minute)}, Note: "100 a minute on average with OAuth; 10 a minute without",
		Source: "https://www.reddit.com/r/redditdev/comments/13wsiks/", AsOf: "2023-05", Scope: provider.ScopeApp,
		ReadBody: true,
		Windows: []provider.WindowHeaders{{
			Used: "X-RateLimit-Used", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset", Form: provider.ResetSeconds,
			Window: 10 * time.Minute,
		}},
		Rules: []provider.MatchRule{
			{Field: "json.errors[].[]", Equals: "RATELIMIT", Reason: provider.ReasonQuota, Scope: provider.ScopeUser + "+" + provider.ScopeEndpoint},
			{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: 10 * time.Minute},
		},
		WaitFields: []string{"json.ratelimit"},
	},
	{
		Name: "salesforce", Limits: []limit.Limit{{Max: 100_000, Window: aDay, Algorithm: limit.SubWindows, Resolution: time.Hour}},
		Note:   "and 1,000 or more for each licence; 15,000 in a developer's; 25 long requests at once",
		Source: "https://developer.salesforce.com/docs/platform/salesforce-app-limits-cheatsheet/guide/salesforce-app-limits-platform-api.html", AsOf: undatedCopy, Scope: provider.ScopeOrg,
		Windows: []provider.WindowHeaders{},
		Rules: []provider.MatchRule{
			{Field: "[].errorCode|errorCode", Equals: "REQUEST_LIMIT_EXCEEDED", Contains: "concurrent", Reason: provider.ReasonConcurrency, Scope: provider.ScopeOrg},
			{Field: "[].errorCode|errorCode", Equals: "REQUEST_LIMIT_EXCEEDED", Reason: provider.ReasonQuota, Scope: provider.ScopeOrg, MaxWait: aDay},
			{Status: []int{503}, Field: "[].errorCode", Equals: "SERVER_UNAVAILABLE", Reason: provider.ReasonOverload},
			deadToken("[].errorCode"),
		},
		Adjust: adjustSalesforce,
	},
	{
		Name: "shopify", Limits: []limit.Limit{leaky(40, 20*time.Second)},
		Note:   "by app and store, 2 a second, and 4 or 20 of other plans; the GraphQL API takes points instead, 100 a second",
		Source: "https://shopify.dev/docs/api/admin-rest/usage/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeToken,
		Attach:   provider.HeaderNamed("X-Shopify-Access-Token"),
		ReadBody: true, MaxBody: 1 << 20, // what is left stands behind the data
		Windows: []provider.WindowHeaders{{Ratio: "X-Shopify-Shop-Api-Call-Limit", Refills: true}},
		Rules: []provider.MatchRule{
			{Field: "errors[].extensions.code|errors[].message", Equals: "THROTTLED", Reason: provider.ReasonQuota},
			{Field: "errors[].extensions.code", Equals: "MAX_COST_EXCEEDED", Reason: provider.ReasonTooLarge},
			{Status: []int{430}, Reason: provider.ReasonBan, Scope: provider.ScopeIP},
		},
		Adjust: adjustShopify,
	},
	{
		Name: "slack", Limits: []limit.Limit{limit.PerMinute(50)}, Note: "of tier 3; tiers 1, 2 and 4 have 1, 20 and 100, each method for itself",
		Source: "https://docs.slack.dev/apis/web-api/rate-limits", AsOf: undatedCopy, Scope: slackScope,
		ReadBody: true,
		Rules: []provider.MatchRule{
			{Field: "error", Equals: "ratelimited|rate_limited", Reason: provider.ReasonQuota, Scope: slackScope, MaxWait: time.Minute},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: slackScope, MaxWait: time.Minute},
			deadToken("error"),
		},
	},
	{
		Name: "spotify", Note: "not told: within any 30 seconds, and a day's that answers showed beside it",
		Source: "https://developer.spotify.com/documentation/web-api/concepts/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeApp,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Reason: provider.ReasonQuota, MinWait: time.Second, MaxWait: aDay},
		},
	},
	{
		Name: "stripe", Limits: []limit.Limit{leaky(100, time.Second)}, Note: "25 in a sandbox and to an endpoint",
		Source: "https://docs.stripe.com/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Header: stripeReason, Equals: "global-rate", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount},
			{Status: []int{429}, Header: stripeReason, Equals: "endpoint-rate", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint},
			{Status: []int{429}, Header: stripeReason, Equals: "global-concurrency", Reason: provider.ReasonConcurrency, Scope: provider.ScopeAccount},
			{Status: []int{429}, Header: stripeReason, Equals: "endpoint-concurrency", Reason: provider.ReasonConcurrency, Scope: provider.ScopeEndpoint},
			{Status: []int{429}, Header: stripeReason, Equals: "resource-specific", Reason: provider.ReasonQuota, Scope: provider.ScopeObject},
			{Status: []int{429}, Field: "error.code", Equals: "lock_timeout", Reason: provider.ReasonLock},
			deadToken("error.code"),
		},
	},
	{
		Name: "tiktok", Limits: []limit.Limit{limit.PerMinute(600)}, Note: "to each endpoint",
		Source: "https://developers.tiktok.com/docs/en/tiktok-api-v2-rate-limit", AsOf: "2026-08", Scope: provider.ScopeApp + "+" + provider.ScopeEndpoint,
		ReadBody: true,
		Rules: []provider.MatchRule{
			{Field: "error.code", Equals: "rate_limit_exceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeApp + "+" + provider.ScopeEndpoint, MaxWait: time.Minute},
			{Field: "code", Equals: "40100", Reason: provider.ReasonQuota, MaxWait: time.Minute},
			{Field: "code", Equals: "40105", Reason: provider.ReasonDeadToken},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeApp + "+" + provider.ScopeEndpoint, MaxWait: time.Minute},
			deadToken("error.code"),
		},
	},
	{
		Name: "twitch", Limits: []limit.Limit{leaky(800, time.Minute)}, Note: "points; some endpoints have less beside it",
		Source: "https://dev.twitch.tv/docs/api/guide/#twitch-rate-limits", AsOf: undatedCopy, Scope: provider.ScopeMember,
		Windows: []provider.WindowHeaders{{
			Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset", Form: provider.ResetUnix,
			Refills: true, Window: time.Minute,
		}},
		Rules: []provider.MatchRule{{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: time.Minute}},
	},
	{
		Name: "x", Note: "10 to 10,000 in 15 minutes, by endpoint, for the user or the app; a day's or a second's beside some",
		Source: "https://docs.x.com/x-api/fundamentals/rate-limits", AsOf: "2026-08", Scope: provider.ScopeUser + "+" + provider.ScopeEndpoint,
		LatestReset: true,
		Windows: []provider.WindowHeaders{
			{Name: "15min", Limit: "X-Rate-Limit-Limit", Remaining: "X-Rate-Limit-Remaining", Reset: "X-Rate-Limit-Reset", Window: 15 * time.Minute},
			{Name: "24hour", Limit: "X-User-Limit-24hour-Limit", Remaining: "X-User-Limit-24hour-Remaining", Reset: "X-User-Limit-24hour-Reset", Window: aDay},
			{Name: "app-24hour", Limit: "X-App-Limit-24hour-Limit", Remaining: "X-App-Limit-24hour-Remaining", Reset: "X-App-Limit-24hour-Reset", Window: aDay, Scope: provider.ScopeApp},
		},
		Rules: []provider.MatchRule{
			{Field: "title", Equals: "UsageCapExceeded", Reason: provider.ReasonBilling, Scope: provider.ScopeApp},
			{Field: "type", Contains: "problems/usage-capped", Reason: provider.ReasonBilling, Scope: provider.ScopeApp},
			{Field: "title", Equals: "CreditsDepleted", Reason: provider.ReasonBilling, Scope: provider.ScopeApp},
			{Field: "title|connection_issue|errors[].title", Equals: "TooManyConnections|ConnectionException", Reason: provider.ReasonConcurrency},
			{Status: []int{420}, Reason: provider.ReasonQuota, MaxWait: 15 * time.Minute},
			{Field: "errors[].code", Equals: "88", Reason: provider.ReasonQuota, MaxWait: 15 * time.Minute},
			{Status: []int{401, 403}, Field: "errors[].code", Equals: "89", Reason: provider.ReasonDeadToken},
			{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: aDay},
		},
	},
	{
		Name: "youtube", Limits: []limit.Limit{{Max: 10_000, Window: aDay, Algorithm: limit.FixedWindow, Zone: pacific}},
		Note:   "units, by project; a search and an upload have 100 calls a day each for themselves",
		Source: "https://developers.google.com/youtube/v3/determine_quota_cost", AsOf: undatedCopy, Scope: provider.ScopeProject,
		Cost:  youtubeCost,
		Rules: youtubeSigns, WaitFields: googleDelays, Adjust: adjustGoogle,
	},
	{
		Name: "zendesk", Limits: []limit.Limit{fixed(200, time.Minute)}, Note: "of plan Team; 400, 700 and 2,500 of others, and less to some endpoints",
		Source: "https://developer.zendesk.com/api-reference/introduction/rate-limits/", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Windows: []provider.WindowHeaders{
			{Name: "account", Limit: "X-Rate-Limit|RateLimit-Limit", Remaining: "X-Rate-Limit-Remaining|RateLimit-Remaining",
				Reset: "RateLimit-Reset", Form: provider.ResetSeconds, Window: time.Minute, Scope: provider.ScopeAccount},
		},
		Adjust: adjustZendesk,
	},
}

const (
	slackScope   = "method+workspace+" + provider.ScopeApp
	stripeReason = "Stripe-Rate-Limited-Reason"
)
