package presets

import (
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Discord returns the preset "discord": Discord's API.
func Discord() *provider.Provider {
	return &provider.Provider{
		Name: "discord", Limits: []limit.Limit{leaky(50, time.Second)}, Note: "each route also has a bucket of its own, which responses name: add a limit such as 5/5s:per=route",
		Source: "https://discord.com/developers/docs/topics/rate-limits", AsOf: "2026-08", Scope: provider.ScopeToken,
		Attach: authorization("Bot"),
		Keys: func(req *http.Request) map[string]string {
			return map[string]string{"route": endpoint.OfFirstObject(req)} // each channel, guild and webhook has its own
		},
		Windows: []provider.WindowHeaders{{
			NameHeader: "X-RateLimit-Bucket", Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining",
			Reset: "X-RateLimit-Reset", ResetAfter: "X-RateLimit-Reset-After", ResetForm: provider.ResetUnix, Scope: provider.ScopeBucket,
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
	}
}

// adjustDiscord sets the bucket that is empty or that refused.
func adjustDiscord(r *provider.Response, f *provider.Feedback) {
	bucket := header.Name(r.Header.Get("X-RateLimit-Bucket"))
	switch {
	case bucket == "" && f.Reason == provider.ReasonQuota && f.Scope == provider.ScopeToken+"+"+provider.ScopeBucket:
		f.Scope = provider.ScopeToken
	case bucket == "":
	case f.Reason == provider.ReasonQuota && f.Scope == "":
		f.Scope, f.Object = provider.ScopeToken+"+"+provider.ScopeBucket, bucket
	case f.Reason == "":
		f.Scope, f.Object = provider.ScopeBucket, bucket
	default:
		f.Object = bucket
	}
}
