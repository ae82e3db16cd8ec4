package presets

import (
	"net/http"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

var presetsAToG = []provider.Provider{
	{
		Name: "anthropic", Note: "requests and tokens a minute, by organisation and model: read them from answers",
		Source: "https://platform.claude.com/docs/en/api/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeOrg,
		Attach: provider.HeaderNamed("x-api-key"),
		Windows: []provider.WindowHeaders{
			anthropicWindow("requests", "Requests"), anthropicWindow("tokens", "Tokens"),
			anthropicWindow("input-tokens", "Input-Tokens"), anthropicWindow("output-tokens", "Output-Tokens"),
		},
		Rules: []provider.MatchRule{
			{Field: "error.type", Equals: "overloaded_error", Reason: provider.ReasonOverload},
			{Field: "error.type", Equals: "billing_error", Reason: provider.ReasonBilling},
			{Field: "error.type", Equals: "rate_limit_error", Reason: provider.ReasonQuota},
			{Field: "error.type", Equals: "permission_error", Reason: provider.ReasonDenied},
			deadToken("error.type"),
		},
		Adjust: adjustAnthropic,
	},
	{
		Name: "arxiv", Limits: []limit.Limit{{Max: 1, Window: 3 * time.Second}},
		Note:   "one connection at a time, of all your machines together",
		Source: "https://info.arxiv.org/help/api/tou.html", AsOf: "2026-07", Scope: provider.ScopeIP,
		ReadBody: true,
		Rules: []provider.MatchRule{
			{Status: []int{200, 403, 429, 503}, Contains: "rate exceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeIP, MinWait: 3 * time.Second},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeIP, MinWait: 3 * time.Second},
			{Status: []int{503}, Reason: provider.ReasonOverload, Scope: provider.ScopeIP, MinWait: 3 * time.Second},
		},
	},
	{
		Name: "azure-openai", Note: "tokens and requests a minute, by deployment, of what a subscription has in a region: read them from answers",
		Source: "https://learn.microsoft.com/azure/foundry-classic/openai/how-to/quota", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Attach: provider.HeaderNamed("api-key"),
		Windows: []provider.WindowHeaders{
			openAIWindow("requests", "", "Requests", false), openAIWindow("tokens", "tokens", "Tokens", false),
		},
		Rules:  openAISigns,
		Adjust: adjustAzure,
	},
	{
		Name: "binance", Limits: []limit.Limit{fixed(6000, time.Minute)},
		Note:   "units of weight, which answers tell; beside them 61,000 requests in 5 minutes; orders are counted by account",
		Source: "https://github.com/binance/binance-spot-api-docs/blob/master/enums.md", AsOf: "2026-07", Scope: provider.ScopeIP,
		Attach:  provider.HeaderNamed("X-MBX-APIKEY"),
		Windows: []provider.WindowHeaders{}, // the names have the windows in them
		Rules: []provider.MatchRule{
			{Status: []int{418}, Reason: provider.ReasonBan, Scope: provider.ScopeIP, MinWait: 2 * time.Minute, MaxWait: 3 * aDay},
			{Status: []int{400, 429}, Field: "code", Equals: "-1015", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeIP, MaxWait: time.Minute},
			{Field: "code", Equals: "-1003", Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
			{Status: []int{400, 401, 403}, Field: "code", Equals: "-2014|-2015", Reason: provider.ReasonDeadToken},
			{Status: []int{403}, Reason: provider.ReasonBan, Scope: provider.ScopeIP, MinWait: time.Minute},
		},
		Adjust: adjustBinance,
	},
	{
		Name: "cloudflare", Limits: []limit.Limit{{Max: 1200, Window: 5 * time.Minute}},
		Note:   "a breach blocks all calls for 5 minutes; 200 a second from one address",
		Source: "https://developers.cloudflare.com/fundamentals/api/reference/limits/", AsOf: undatedCopy, Scope: provider.ScopeUser,
		Rules: []provider.MatchRule{{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: 5 * time.Minute}},
	},
	{
		Name: "crossref", Limits: []limit.Limit{limit.PerSecond(5)}, Note: "10 a second with a mailto; 1 and 3 at once",
		Source: "https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/", AsOf: fromDigest, Scope: provider.ScopeIP,
		Attach: func(req *http.Request, secret string) {
			req.Header.Set("Crossref-Plus-API-Token", provider.BearerPrefix+secret)
		},
		Windows: []provider.WindowHeaders{
			{Limit: "X-Rate-Limit-Limit", LengthIn: "X-Rate-Limit-Interval"},
			{Name: "concurrency", Unit: provider.ConcurrentUnit, Limit: "X-Concurrency-Limit"},
		},
		Rules: []provider.MatchRule{{Status: []int{503}, Reason: provider.ReasonOverload}},
	},
	{
		Name: "discord", Limits: []limit.Limit{leaky(50, time.Second)}, Note: "each route has a bucket beside it, which answers name",
		Source: "https://discord.com/developers/docs/topics/rate-limits", AsOf: "2026-08", Scope: provider.ScopeToken,
		Attach: authorization("Bot"),
		Windows: []provider.WindowHeaders{{
			NameIn: "X-RateLimit-Bucket", Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining",
			Reset: "X-RateLimit-Reset", ResetIn: "X-RateLimit-Reset-After", Form: provider.ResetUnix, Scope: provider.ScopeBucket,
		}},
		Rules: []provider.MatchRule{
			{Status: []int{403, 429}, Header: "Content-Type", Contains: "text/html", Reason: provider.ReasonBan, Scope: provider.ScopeIP},
			{Status: []int{403, 429}, Contains: "<html|<!doctype|being blocked from accessing our api|error code: 10", Reason: provider.ReasonBan, Scope: provider.ScopeIP},
			{Status: []int{429}, Header: "X-RateLimit-Scope", Equals: "shared", Reason: provider.ReasonQuota, Scope: provider.ScopeResource},
			{Status: []int{429}, Header: "X-RateLimit-Scope", Equals: "global", Reason: provider.ReasonQuota, Scope: provider.ScopeToken},
			{Status: []int{429}, Header: "X-RateLimit-Global", Equals: "true", Reason: provider.ReasonQuota, Scope: provider.ScopeToken},
			{Status: []int{429}, Field: "global", Equals: "true", Reason: provider.ReasonQuota, Scope: provider.ScopeToken},
			{Status: []int{429}, Header: "X-RateLimit-Scope", Equals: "user", Reason: provider.ReasonQuota, Scope: provider.ScopeToken + "+" + provider.ScopeBucket},
			{Status: []int{401}, Reason: provider.ReasonDeadToken},
		},
		WaitFields: []string{"retry_after"},
		Adjust:     adjustDiscord,
	},
	{
		Name: "dockerhub", Limits: []limit.Limit{{Max: 100, Window: 6 * time.Hour}}, Note: "pulls; 200 with a personal account, and a HEAD is free",
		Source: "https://docs.docker.com/docker-hub/usage/pulls/", AsOf: undatedCopy,
		Windows: []provider.WindowHeaders{{Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset"}},
		Adjust:  adjustDockerHub,
	},
	{
		Name: "generic", Note: "an API of which nothing is known: the usual headers, statuses and codes",
		Source: "RFC 9110, RFC 6585, draft-ietf-httpapi-ratelimit-headers-01 to -10", AsOf: fromDigest,
	},
	{
		Name:   "github",
		Limits: []limit.Limit{{Max: 5000, Window: time.Hour, Algorithm: limit.FixedWindow, FirstUse: true}},
		Note:   "by user, and each resource for itself; 60 an hour from an address without a token; secondary limits of 900 points a minute and 100 at once",
		Source: "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", AsOf: undatedCopy, Scope: provider.ScopeUser,
		ReadBody: true,
		Rules: []provider.MatchRule{
			{Status: []int{200, 403, 429}, Field: "message|errors[].message", Contains: "secondary rate limit|abuse detection|submitted too quickly", Reason: provider.ReasonSecondary, MinWait: time.Minute},
			{Status: []int{403, 429}, Field: "message", Contains: "api rate limit exceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeUser},
			{Status: []int{200, 403, 429}, Field: "errors[].type", Equals: "RATE_LIMITED|RATE_LIMIT", Reason: provider.ReasonQuota, Scope: provider.ScopeUser},
			{Status: []int{403, 429}, Header: "Retry-After", Reason: provider.ReasonSecondary, MinWait: time.Minute},
		},
		Adjust: adjustGitHub,
	},
	{
		Name: "gitlab", Limits: []limit.Limit{fixed(2000, time.Minute)},
		Note:   "of GitLab.com; 500 from one address without a token; some endpoints less; proposed by plan: from 100 a minute and 5,000 an hour",
		Source: "https://docs.gitlab.com/user/gitlab_com/rate_limits/", AsOf: undatedCopy, Scope: provider.ScopeUser,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Field: "message|message.error|error", Contains: "this endpoint", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint},
		},
	},
	{
		Name: "google", Note: "a minute's and a day's by project, and by user of it",
		Source: "https://docs.cloud.google.com/docs/quotas/overview", AsOf: undatedCopy, Scope: provider.ScopeProject,
		Rules: googleSigns, WaitFields: googleDelays, Adjust: adjustGoogle,
	},
	{
		Name: "groq", Note: "requests and tokens a minute and a day, by organisation and model: read them from answers",
		Source: "https://console.groq.com/docs/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeOrg,
		Windows: []provider.WindowHeaders{
			openAIWindow("requests", "", "Requests", true), openAIWindow("tokens", "tokens", "Tokens", true),
		},
		Rules:  openAISigns,
		Adjust: adjustOpenAI,
	},
}
