package presets

import (
	"time"

	"github.com/ration-go/ration/provider"
)

// Spotify returns the preset "spotify": Spotify's Web API.
func Spotify() *provider.Provider {
	return &provider.Provider{
		Name: "spotify", Note: "unpublished: counted over any 30 seconds; responses have also shown a daily limit",
		Source: "https://developer.spotify.com/documentation/web-api/concepts/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeApp,
		Rules: []provider.MatchRule{
			{Status: []int{429}, Reason: provider.ReasonQuota, MinWait: time.Second, MaxWait: aDay},
		},
	}
}
