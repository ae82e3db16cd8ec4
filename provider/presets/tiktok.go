package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// TikTok returns the preset "tiktok": TikTok's API.
func TikTok() *provider.Provider {
	return &provider.Provider{
		Name: "tiktok", Limits: []limit.Limit{limit.PerMinute(600)}, Note: "by endpoint",
		Source: "https://developers.tiktok.com/docs/en/tiktok-api-v2-rate-limit", AsOf: "2026-08", Scope: provider.ScopeApp + "+" + provider.ScopeEndpoint,
		ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Field: "error.code", Equals: "rate_limit_exceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeApp + "+" + provider.ScopeEndpoint, MaxWait: time.Minute},
			{Field: "code", Equals: "40100", Reason: provider.ReasonQuota, MaxWait: time.Minute},
			{Field: "code", Equals: "40105", Reason: provider.ReasonDeadToken},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeApp + "+" + provider.ScopeEndpoint, MaxWait: time.Minute},
			deadToken("error.code"),
		},
	}
}
