package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Slack returns the preset "slack": Slack's Web API.
func Slack() *provider.Provider {
	return &provider.Provider{
		Name: "slack", Limits: []limit.Limit{limit.PerMinute(50)}, Note: "on tier 3, by method; tiers 1, 2 and 4 have 1, 20 and 100",
		Source: "https://docs.slack.dev/apis/web-api/rate-limits", AsOf: undatedCopy, Scope: slackScope,
		ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Field: "error", Equals: "ratelimited|rate_limited", Reason: provider.ReasonQuota, Scope: slackScope, MaxWait: time.Minute},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: slackScope, MaxWait: time.Minute},
			deadToken("error"),
		},
	}
}

const slackScope = "method+workspace+" + provider.ScopeApp
