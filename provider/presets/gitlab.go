package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// GitLab returns the preset "gitlab": GitLab.com's API.
func GitLab() *provider.Provider {
	return &provider.Provider{
		Name: "gitlab", Limits: []limit.Limit{fixed(2000, time.Minute)},
		Note:   "on GitLab.com; 500 from one address without a token; some endpoints less; proposed: limits by plan, from 100 a minute and 5,000 an hour",
		Source: "https://docs.gitlab.com/user/gitlab_com/rate_limits/", AsOf: undatedCopy, Scope: provider.ScopeUser,
		Windows: []provider.WindowHeaders{{
			Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Used: "RateLimit-Observed",
			Reset: "RateLimit-Reset|RateLimit-ResetTime", NameHeader: "RateLimit-Name", Length: time.Minute,
		}},
		Rules: []provider.MatchRule{
			{Status: []int{429}, Field: "message|message.error|error", Contains: "this endpoint", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint},
		},
	}
}
