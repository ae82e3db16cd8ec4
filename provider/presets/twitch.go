package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Twitch returns the preset "twitch": Twitch's Helix API.
func Twitch() *provider.Provider {
	return &provider.Provider{
		Name: "twitch", Limits: []limit.Limit{leaky(800, time.Minute)}, Note: "points; some endpoints have lower limits as well",
		Source: "https://dev.twitch.tv/docs/api/guide/#twitch-rate-limits", AsOf: undatedCopy, Scope: provider.ScopeMember,
		Windows: []provider.WindowHeaders{{
			Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset", ResetForm: provider.ResetUnix,
			Refills: true, Length: time.Minute,
		}},
		Rules: []provider.MatchRule{{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: time.Minute}},
	}
}
