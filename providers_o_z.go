package ration

import "time"

var presetsOToZ = []Provider{
	{
		Name: "okta", Note: "a minute's by group of endpoints, for the whole organisation; 75 at once, or 35 of the free plan",
		Source: "https://developer.okta.com/docs/reference/rl2-concurrency/", AsOf: "2026-08", Scope: ScopeOrg,
		Attach: authorization("SSWS"),
		Signs:  []Sign{{Status: []int{401}, Field: "errorCode", Is: "E0000011", Reason: ReasonDeadToken}},
		Adjust: adjustOkta,
	},
	{
		Name: "openai", Note: "requests and tokens a minute and a day, by organisation, project and model: read them from answers",
		Source: "https://developers.openai.com/api/docs/guides/rate-limits", AsOf: "2026-06", Scope: ScopeOrg,
		Windows: []WindowFields{
			openAIWindow("requests", "", "Requests", true), openAIWindow("tokens", "tokens", "Tokens", true),
			openAIProjectTokens,
		},
		Signs:  openAISigns,
		Adjust: adjustOpenAI,
	},
	{
		Name: "reddit", Limits: []Limit{fixed(1000, 10*time.Minute)}, Note: "100 a minute on average with OAuth; 10 a minute without",
		Source: "https://www.reddit.com/r/redditdev/comments/13wsiks/", AsOf: "2023-05", Scope: ScopeApp,
		InBody: true,
		Windows: []WindowFields{{
			Used: "X-RateLimit-Used", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset", Form: ResetSeconds,
			Window: 10 * time.Minute,
		}},
		Signs: []Sign{
			{Field: "json.errors[].[]", Is: "RATELIMIT", Reason: ReasonQuota, Scope: ScopeUser + "+" + ScopeEndpoint},
			{Status: []int{429}, Reason: ReasonQuota, AtMost: 10 * time.Minute},
		},
		DelayIn: []string{"json.ratelimit"},
	},
	{
		Name: "salesforce", Limits: []Limit{{Max: 100_000, Window: aDay, Algorithm: SubWindows, Resolution: time.Hour}},
		Note:   "and 1,000 or more for each licence; 15,000 in a developer's; 25 long requests at once",
		Source: "https://developer.salesforce.com/docs/platform/salesforce-app-limits-cheatsheet/guide/salesforce-app-limits-platform-api.html", AsOf: undatedCopy, Scope: ScopeOrg,
		Windows: []WindowFields{},
		Signs: []Sign{
			{Field: "[].errorCode|errorCode", Is: "REQUEST_LIMIT_EXCEEDED", Says: "concurrent", Reason: ReasonConcurrency, Scope: ScopeOrg},
			{Field: "[].errorCode|errorCode", Is: "REQUEST_LIMIT_EXCEEDED", Reason: ReasonQuota, Scope: ScopeOrg, AtMost: aDay},
			{Status: []int{503}, Field: "[].errorCode", Is: "SERVER_UNAVAILABLE", Reason: ReasonOverload},
			deadToken("[].errorCode"),
		},
		Adjust: adjustSalesforce,
	},
	{
		Name: "shopify", Limits: []Limit{leaky(40, 20*time.Second)},
		Note:   "by app and store, 2 a second, and 4 or 20 of other plans; the GraphQL API takes points instead, 100 a second",
		Source: "https://shopify.dev/docs/api/admin-rest/usage/rate-limits", AsOf: undatedCopy, Scope: ScopeToken,
		Attach: HeaderNamed("X-Shopify-Access-Token"),
		InBody: true, BodyWithin: 1 << 20, // what is left stands behind the data
		Windows: []WindowFields{{Ratio: "X-Shopify-Shop-Api-Call-Limit", Refills: true}},
		Signs: []Sign{
			{Field: "errors[].extensions.code|errors[].message", Is: "THROTTLED", Reason: ReasonQuota},
			{Field: "errors[].extensions.code", Is: "MAX_COST_EXCEEDED", Reason: ReasonTooLarge},
			{Status: []int{430}, Reason: ReasonBan, Scope: ScopeIP},
		},
		Adjust: adjustShopify,
	},
	{
		Name: "slack", Limits: []Limit{PerMinute(50)}, Note: "of tier 3; tiers 1, 2 and 4 have 1, 20 and 100, each method for itself",
		Source: "https://docs.slack.dev/apis/web-api/rate-limits", AsOf: undatedCopy, Scope: slackScope,
		InBody: true,
		Signs: []Sign{
			{Field: "error", Is: "ratelimited|rate_limited", Reason: ReasonQuota, Scope: slackScope, AtMost: time.Minute},
			{Status: []int{429}, Reason: ReasonQuota, Scope: slackScope, AtMost: time.Minute},
			deadToken("error"),
		},
	},
	{
		Name: "spotify", Note: "not told: within any 30 seconds, and a day's that answers showed beside it",
		Source: "https://developer.spotify.com/documentation/web-api/concepts/rate-limits", AsOf: undatedCopy, Scope: ScopeApp,
		Signs: []Sign{
			{Status: []int{429}, Reason: ReasonQuota, AtLeast: time.Second, AtMost: aDay},
		},
	},
	{
		Name: "stripe", Limits: []Limit{leaky(100, time.Second)}, Note: "25 in a sandbox and to an endpoint",
		Source: "https://docs.stripe.com/rate-limits", AsOf: undatedCopy, Scope: ScopeAccount,
		Signs: []Sign{
			{Status: []int{429}, Header: stripeReason, Is: "global-rate", Reason: ReasonQuota, Scope: ScopeAccount},
			{Status: []int{429}, Header: stripeReason, Is: "endpoint-rate", Reason: ReasonQuota, Scope: ScopeEndpoint},
			{Status: []int{429}, Header: stripeReason, Is: "global-concurrency", Reason: ReasonConcurrency, Scope: ScopeAccount},
			{Status: []int{429}, Header: stripeReason, Is: "endpoint-concurrency", Reason: ReasonConcurrency, Scope: ScopeEndpoint},
			{Status: []int{429}, Header: stripeReason, Is: "resource-specific", Reason: ReasonQuota, Scope: ScopeObject},
			{Status: []int{429}, Field: "error.code", Is: "lock_timeout", Reason: ReasonLock},
			deadToken("error.code"),
		},
	},
	{
		Name: "tiktok", Limits: []Limit{PerMinute(600)}, Note: "to each endpoint",
		Source: "https://developers.tiktok.com/docs/en/tiktok-api-v2-rate-limit", AsOf: "2026-08", Scope: ScopeApp + "+" + ScopeEndpoint,
		InBody: true,
		Signs: []Sign{
			{Field: "error.code", Is: "rate_limit_exceeded", Reason: ReasonQuota, Scope: ScopeApp + "+" + ScopeEndpoint, AtMost: time.Minute},
			{Field: "code", Is: "40100", Reason: ReasonQuota, AtMost: time.Minute},
			{Field: "code", Is: "40105", Reason: ReasonDeadToken},
			{Status: []int{429}, Reason: ReasonQuota, Scope: ScopeApp + "+" + ScopeEndpoint, AtMost: time.Minute},
			deadToken("error.code"),
		},
	},
	{
		Name: "twitch", Limits: []Limit{leaky(800, time.Minute)}, Note: "points; some endpoints have less beside it",
		Source: "https://dev.twitch.tv/docs/api/guide/#twitch-rate-limits", AsOf: undatedCopy, Scope: ScopeMember,
		Windows: []WindowFields{{
			Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset", Form: ResetUnix,
			Refills: true, Window: time.Minute,
		}},
		Signs: []Sign{{Status: []int{429}, Reason: ReasonQuota, AtMost: time.Minute}},
	},
	{
		Name: "x", Note: "10 to 10,000 in 15 minutes, by endpoint, for the user or the app; a day's or a second's beside some",
		Source: "https://docs.x.com/x-api/fundamentals/rate-limits", AsOf: "2026-08", Scope: ScopeUser + "+" + ScopeEndpoint,
		LatestReset: true,
		Windows: []WindowFields{
			{Name: "15min", Limit: "X-Rate-Limit-Limit", Remaining: "X-Rate-Limit-Remaining", Reset: "X-Rate-Limit-Reset", Window: 15 * time.Minute},
			{Name: "24hour", Limit: "X-User-Limit-24hour-Limit", Remaining: "X-User-Limit-24hour-Remaining", Reset: "X-User-Limit-24hour-Reset", Window: aDay},
			{Name: "app-24hour", Limit: "X-App-Limit-24hour-Limit", Remaining: "X-App-Limit-24hour-Remaining", Reset: "X-App-Limit-24hour-Reset", Window: aDay, Scope: ScopeApp},
		},
		Signs: []Sign{
			{Field: "title", Is: "UsageCapExceeded", Reason: ReasonBilling, Scope: ScopeApp},
			{Field: "type", Says: "problems/usage-capped", Reason: ReasonBilling, Scope: ScopeApp},
			{Field: "title", Is: "CreditsDepleted", Reason: ReasonBilling, Scope: ScopeApp},
			{Field: "title|connection_issue|errors[].title", Is: "TooManyConnections|ConnectionException", Reason: ReasonConcurrency},
			{Status: []int{420}, Reason: ReasonQuota, AtMost: 15 * time.Minute},
			{Field: "errors[].code", Is: "88", Reason: ReasonQuota, AtMost: 15 * time.Minute},
			{Status: []int{401, 403}, Field: "errors[].code", Is: "89", Reason: ReasonDeadToken},
			{Status: []int{429}, Reason: ReasonQuota, AtMost: aDay},
		},
	},
	{
		Name: "youtube", Limits: []Limit{{Max: 10_000, Window: aDay, Algorithm: FixedWindow, Zone: pacific}},
		Note:   "units, by project; a search and an upload have 100 calls a day each for themselves",
		Source: "https://developers.google.com/youtube/v3/determine_quota_cost", AsOf: undatedCopy, Scope: ScopeProject,
		Cost:  youtubeCost,
		Signs: youtubeSigns, DelayIn: googleDelays, Adjust: adjustGoogle,
	},
	{
		Name: "zendesk", Limits: []Limit{fixed(200, time.Minute)}, Note: "of plan Team; 400, 700 and 2,500 of others, and less to some endpoints",
		Source: "https://developer.zendesk.com/api-reference/introduction/rate-limits/", AsOf: undatedCopy, Scope: ScopeAccount,
		Windows: []WindowFields{
			{Name: "account", Limit: "X-Rate-Limit|RateLimit-Limit", Remaining: "X-Rate-Limit-Remaining|RateLimit-Remaining",
				Reset: "RateLimit-Reset", Form: ResetSeconds, Window: time.Minute, Scope: ScopeAccount},
		},
		Adjust: adjustZendesk,
	},
}

const (
	slackScope   = "method+workspace+" + ScopeApp
	stripeReason = "Stripe-Rate-Limited-Reason"
)
