package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Jira returns the preset "jira": Jira Cloud's API.
func Jira() *provider.Provider {
	return &provider.Provider{
		Name: "jira", Limits: []limit.Limit{fixed(65_000, time.Hour)},
		Note:   "points of an app; an API token has only the other limits: 100 a second to an endpoint, and writes to an issue",
		Source: "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/", AsOf: fromDigest, Scope: provider.ScopeApp,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Header: "RateLimit-Reason", Equals: "jira-burst-based", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint + "+method"},
			{Status: []int{429}, Header: "RateLimit-Reason", Equals: "jira-quota-global-based", Reason: provider.ReasonQuota, Scope: provider.ScopeApp, MaxWait: time.Hour},
			{Status: []int{429}, Header: "RateLimit-Reason", Equals: "jira-quota-tenant-based", Reason: provider.ReasonQuota, Scope: provider.ScopeTenant, MaxWait: time.Hour},
			{Status: []int{429}, Header: "RateLimit-Reason", Equals: "jira-per-issue-on-write", Reason: provider.ReasonQuota, Scope: provider.ScopeIssue},
		},
	}
}
