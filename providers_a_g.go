package ration

import (
	"net/http"
	"time"
)

var presetsAToG = []Provider{
	{
		Name: "anthropic", Note: "requests and tokens a minute, by organisation and model: read them from answers",
		Source: "https://platform.claude.com/docs/en/api/rate-limits", AsOf: undatedCopy, Scope: ScopeOrg,
		Attach: HeaderNamed("x-api-key"),
		Windows: []WindowFields{
			anthropicWindow("requests", "Requests"), anthropicWindow("tokens", "Tokens"),
			anthropicWindow("input-tokens", "Input-Tokens"), anthropicWindow("output-tokens", "Output-Tokens"),
		},
		Signs: []Sign{
			{Field: "error.type", Is: "overloaded_error", Reason: ReasonOverload},
			{Field: "error.type", Is: "billing_error", Reason: ReasonBilling},
			{Field: "error.type", Is: "rate_limit_error", Reason: ReasonQuota},
			{Field: "error.type", Is: "permission_error", Reason: ReasonDenied},
			deadToken("error.type"),
		},
		Adjust: adjustAnthropic,
	},
	{
		Name: "arxiv", Limits: []Limit{{Max: 1, Window: 3 * time.Second}},
		Note:   "one connection at a time, of all your machines together",
		Source: "https://info.arxiv.org/help/api/tou.html", AsOf: "2026-07", Scope: ScopeIP,
		InBody: true,
		Signs: []Sign{
			{Status: []int{200, 403, 429, 503}, Says: "rate exceeded", Reason: ReasonQuota, Scope: ScopeIP, AtLeast: 3 * time.Second},
			{Status: []int{429}, Reason: ReasonQuota, Scope: ScopeIP, AtLeast: 3 * time.Second},
			{Status: []int{503}, Reason: ReasonOverload, Scope: ScopeIP, AtLeast: 3 * time.Second},
		},
	},
	{
		Name: "azure-openai", Note: "tokens and requests a minute, by deployment, of what a subscription has in a region: read them from answers",
		Source: "https://learn.microsoft.com/azure/foundry-classic/openai/how-to/quota", AsOf: undatedCopy, Scope: ScopeAccount,
		Attach: HeaderNamed("api-key"),
		Windows: []WindowFields{
			openAIWindow("requests", "", "Requests", false), openAIWindow("tokens", "tokens", "Tokens", false),
		},
		Signs:  openAISigns,
		Adjust: adjustAzure,
	},
	{
		Name: "binance", Limits: []Limit{fixed(6000, time.Minute)},
		Note:   "units of weight, which answers tell; beside them 61,000 requests in 5 minutes; orders are counted by account",
		Source: "https://github.com/binance/binance-spot-api-docs/blob/master/enums.md", AsOf: "2026-07", Scope: ScopeIP,
		Attach:  HeaderNamed("X-MBX-APIKEY"),
		Windows: []WindowFields{}, // the names have the windows in them
		Signs: []Sign{
			{Status: []int{418}, Reason: ReasonBan, Scope: ScopeIP, AtLeast: 2 * time.Minute, AtMost: 3 * aDay},
			{Status: []int{400, 429}, Field: "code", Is: "-1015", Reason: ReasonQuota, Scope: ScopeAccount},
			{Status: []int{429}, Reason: ReasonQuota, Scope: ScopeIP, AtMost: time.Minute},
			{Field: "code", Is: "-1003", Reason: ReasonQuota, Scope: ScopeIP},
			{Status: []int{400, 401, 403}, Field: "code", Is: "-2014|-2015", Reason: ReasonDeadToken},
			{Status: []int{403}, Reason: ReasonBan, Scope: ScopeIP, AtLeast: time.Minute},
		},
		Adjust: adjustBinance,
	},
	{
		Name: "cloudflare", Limits: []Limit{{Max: 1200, Window: 5 * time.Minute}},
		Note:   "a breach blocks all calls for 5 minutes; 200 a second from one address",
		Source: "https://developers.cloudflare.com/fundamentals/api/reference/limits/", AsOf: undatedCopy, Scope: ScopeUser,
		Signs: []Sign{{Status: []int{429}, Reason: ReasonQuota, AtMost: 5 * time.Minute}},
	},
	{
		Name: "crossref", Limits: []Limit{PerSecond(5)}, Note: "10 a second with a mailto; 1 and 3 at once",
		Source: "https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/", AsOf: fromDigest, Scope: ScopeIP,
		Attach: func(req *http.Request, secret string) {
			req.Header.Set("Crossref-Plus-API-Token", bearerPrefix+secret)
		},
		Windows: []WindowFields{
			{Limit: "X-Rate-Limit-Limit", LengthIn: "X-Rate-Limit-Interval"},
			{Name: "concurrency", Unit: concurrentUnit, Limit: "X-Concurrency-Limit"},
		},
		Signs: []Sign{{Status: []int{503}, Reason: ReasonOverload}},
	},
	{
		Name: "discord", Limits: []Limit{leaky(50, time.Second)}, Note: "each route has a bucket beside it, which answers name",
		Source: "https://discord.com/developers/docs/topics/rate-limits", AsOf: "2026-08", Scope: ScopeToken,
		Attach: authorization("Bot"),
		Windows: []WindowFields{{
			NameIn: "X-RateLimit-Bucket", Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining",
			Reset: "X-RateLimit-Reset", ResetIn: "X-RateLimit-Reset-After", Form: ResetUnix, Scope: ScopeBucket,
		}},
		Signs: []Sign{
			{Status: []int{403, 429}, Header: "Content-Type", Says: "text/html", Reason: ReasonBan, Scope: ScopeIP},
			{Status: []int{403, 429}, Says: "<html|<!doctype|being blocked from accessing our api|error code: 10", Reason: ReasonBan, Scope: ScopeIP},
			{Status: []int{429}, Header: "X-RateLimit-Scope", Is: "shared", Reason: ReasonQuota, Scope: ScopeResource},
			{Status: []int{429}, Header: "X-RateLimit-Scope", Is: "global", Reason: ReasonQuota, Scope: ScopeToken},
			{Status: []int{429}, Header: "X-RateLimit-Global", Is: "true", Reason: ReasonQuota, Scope: ScopeToken},
			{Status: []int{429}, Field: "global", Is: "true", Reason: ReasonQuota, Scope: ScopeToken},
			{Status: []int{429}, Header: "X-RateLimit-Scope", Is: "user", Reason: ReasonQuota, Scope: ScopeToken + "+" + ScopeBucket},
			{Status: []int{401}, Reason: ReasonDeadToken},
		},
		DelayIn: []string{"retry_after"},
		Adjust:  adjustDiscord,
	},
	{
		Name: "dockerhub", Limits: []Limit{{Max: 100, Window: 6 * time.Hour}}, Note: "pulls; 200 with a personal account, and a HEAD is free",
		Source: "https://docs.docker.com/docker-hub/usage/pulls/", AsOf: undatedCopy,
		Windows: []WindowFields{{Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset"}},
		Adjust:  adjustDockerHub,
	},
	{
		Name: "generic", Note: "an API of which nothing is known: the usual headers, statuses and codes",
		Source: "RFC 9110, RFC 6585, draft-ietf-httpapi-ratelimit-headers-01 to -10", AsOf: fromDigest,
	},
	{
		Name:   "github",
		Limits: []Limit{{Max: 5000, Window: time.Hour, Algorithm: FixedWindow, FirstUse: true}},
		Note:   "by user, and each resource for itself; 60 an hour from an address without a token; secondary limits of 900 points a minute and 100 at once",
		Source: "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", AsOf: undatedCopy, Scope: ScopeUser,
		InBody: true,
		Signs: []Sign{
			{Status: []int{200, 403, 429}, Field: "message|errors[].message", Says: "secondary rate limit|abuse detection|submitted too quickly", Reason: ReasonSecondary, AtLeast: time.Minute},
			{Status: []int{403, 429}, Field: "message", Says: "api rate limit exceeded", Reason: ReasonQuota, Scope: ScopeUser},
			{Status: []int{200, 403, 429}, Field: "errors[].type", Is: "RATE_LIMITED|RATE_LIMIT", Reason: ReasonQuota, Scope: ScopeUser},
			{Status: []int{403, 429}, Header: "Retry-After", Reason: ReasonSecondary, AtLeast: time.Minute},
		},
		Adjust: adjustGitHub,
	},
	{
		Name: "gitlab", Limits: []Limit{fixed(2000, time.Minute)},
		Note:   "of GitLab.com; 500 from one address without a token; some endpoints less; proposed by plan: from 100 a minute and 5,000 an hour",
		Source: "https://docs.gitlab.com/user/gitlab_com/rate_limits/", AsOf: undatedCopy, Scope: ScopeUser,
		Signs: []Sign{
			{Status: []int{429}, Field: "message|message.error|error", Says: "this endpoint", Reason: ReasonQuota, Scope: ScopeEndpoint},
		},
	},
	{
		Name: "google", Note: "a minute's and a day's by project, and by user of it",
		Source: "https://docs.cloud.google.com/docs/quotas/overview", AsOf: undatedCopy, Scope: ScopeProject,
		Signs: googleSigns, DelayIn: googleDelays, Adjust: adjustGoogle,
	},
	{
		Name: "groq", Note: "requests and tokens a minute and a day, by organisation and model: read them from answers",
		Source: "https://console.groq.com/docs/rate-limits", AsOf: undatedCopy, Scope: ScopeOrg,
		Windows: []WindowFields{
			openAIWindow("requests", "", "Requests", true), openAIWindow("tokens", "tokens", "Tokens", true),
		},
		Signs:  openAISigns,
		Adjust: adjustOpenAI,
	},
}
