package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Cloudflare returns the preset "cloudflare": Cloudflare's API.
func Cloudflare() *provider.Provider {
	return &provider.Provider{
		Name: "cloudflare", Limits: []limit.Limit{{Max: 1200, Window: 5 * time.Minute, Algorithm: limit.FixedWindow, FirstUse: true}},
		Note:   "a breach blocks all calls for 5 minutes; 200 a second from one address",
		Source: "https://developers.cloudflare.com/fundamentals/api/reference/limits/", AsOf: undatedCopy, Scope: provider.ScopeUser,
		Rules: []provider.MatchRule{{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: 5 * time.Minute}},
	}
}
