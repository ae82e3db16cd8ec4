package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// HubSpot returns the preset "hubspot": HubSpot's API.
func HubSpot() *provider.Provider {
	return &provider.Provider{
		Name:   "hubspot",
		Limits: []limit.Limit{{Max: 100, Window: 10 * time.Second}, {Max: 250_000, Window: aDay, Algorithm: limit.SubWindows}},
		Note:   "on the plans Free and Starter; 190 and 625,000 or more on others; the daily limit is by account and begins anew at midnight in its time zone, for which give it a Zone; searches 5 a second",
		Source: "https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines", AsOf: undatedCopy, Scope: provider.ScopeApp,
		Windows: []provider.WindowHeaders{
			{Name: "interval", Limit: "X-HubSpot-RateLimit-Max", Remaining: "X-HubSpot-RateLimit-Remaining",
				LengthHeader: "X-HubSpot-RateLimit-Interval-Milliseconds", LengthUnit: time.Millisecond, Scope: provider.ScopeApp},
			{Name: "daily", Limit: "X-HubSpot-RateLimit-Daily", Remaining: "X-HubSpot-RateLimit-Daily-Remaining",
				Length: aDay, Scope: provider.ScopeAccount},
		},
		Rules: []provider.MatchRule{
			{Field: "policyName", Equals: "DAILY", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount, MaxWait: aDay},
			{Field: "policyName", Equals: "TEN_SECONDLY_ROLLING", Reason: provider.ReasonQuota, Scope: provider.ScopeApp, MaxWait: 10 * time.Second},
			{Field: "policyName", Equals: "SECONDLY", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount, MaxWait: time.Second},
			{Field: "errorType", Equals: "RATE_LIMIT", Reason: provider.ReasonQuota},
			{Status: []int{423}, Reason: provider.ReasonLock},
		},
	}
}
