package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Riot returns the preset "riot": Riot Games' APIs.
func Riot() *provider.Provider {
	const kind = "X-Rate-Limit-Type"
	return &provider.Provider{
		Name: "riot", Limits: []limit.Limit{limit.PerSecond(20), {Max: 100, Window: 2 * time.Minute}},
		Note:   "of a development key, in each region: a budget for each; production keys have 500 in 10 seconds and more; methods have limits of their own, which responses list",
		Source: "https://developer.riotgames.com/docs/portal", AsOf: fromDigest, Scope: provider.ScopeToken,
		Attach: provider.HeaderNamed("X-Riot-Token"),
		Rules: []provider.MatchRule{
			{Status: []int{429}, Header: kind, Equals: "application", Reason: provider.ReasonQuota, Scope: provider.ScopeToken},
			{Status: []int{429}, Header: kind, Equals: "method", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint},
			{Status: []int{429}, Header: kind, Equals: "service", Reason: provider.ReasonOverload, Scope: provider.ScopeEndpoint},
			{Status: []int{429}, Reason: provider.ReasonOverload, Scope: provider.ScopeEndpoint}, // of what stands behind the API
		},
	}
}
