package presets

import (
	"time"

	"github.com/ration-go/ration/provider"
)

// APIFootball returns the preset "api-football": API-Football, and its siblings for other sports.
func APIFootball() *provider.Provider {
	return &provider.Provider{
		Name: "api-football", Note: "by plan: a minute's and a day's, which ends at midnight in UTC; the free plan has 10 and 100. Refusals have status 200",
		Source: "https://www.api-football.com/news/post/how-ratelimit-works", AsOf: fromDigest, Scope: provider.ScopeAccount,
		Attach: provider.HeaderNamed("X-Apisports-Key"), ReadSuccessBody: true,
		Windows: []provider.WindowHeaders{
			{Name: "minute", Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Length: time.Minute},
			{Name: "day", Limit: "X-RateLimit-Requests-Limit", Remaining: "X-RateLimit-Requests-Remaining", Length: aDay},
		},
		Rules: []provider.MatchRule{
			{Field: "errors.rateLimit", Reason: provider.ReasonQuota, MaxWait: time.Minute},
			{Field: "errors.requests", Reason: provider.ReasonQuota, Midnight: "UTC"},
			{Field: "errors.token", Reason: provider.ReasonDeadToken},
			{Field: "errors.access", Reason: provider.ReasonDenied},
		},
	}
}
