package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Reddit returns the preset "reddit": Reddit's API.
func Reddit() *provider.Provider {
	return &provider.Provider{
		Name: "reddit", Limits: []limit.Limit{fixed(1000, 10*time.Minute)}, Note: "100 a minute on average with OAuth; 10 a minute without",
		Source: "https://www.reddit.com/r/redditdev/comments/13wsiks/", AsOf: "2023-05", Scope: provider.ScopeApp,
		ReadSuccessBody: true,
		Windows: []provider.WindowHeaders{{
			Used: "X-RateLimit-Used", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset", ResetForm: provider.ResetSeconds,
			Length: 10 * time.Minute,
		}},
		Rules: []provider.MatchRule{
			{Field: "json.errors[].[]", Equals: "RATELIMIT", Reason: provider.ReasonQuota, Scope: provider.ScopeUser + "+" + provider.ScopeEndpoint},
			{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: 10 * time.Minute},
		},
		WaitFields: []string{"json.ratelimit"},
	}
}
