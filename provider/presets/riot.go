package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Riot returns the preset "riot": Riot Games' APIs.
func Riot() *provider.Provider {
	const kind = "X-Rate-Limit-Type"
	return &provider.Provider{
		Name: "riot", Limits: []limit.Limit{limit.PerSecond(20), {Max: 100, Window: 2 * time.Minute}},
		Note:   "of a development key, in each region: a budget for each; production keys have 500 in 10 seconds and more; methods have limits of their own, which responses list: add one such as 2000/1m:per=method",
		Source: "https://developer.riotgames.com/docs/portal", AsOf: fromDigest, Scope: provider.ScopeToken,
		Attach: provider.HeaderNamed("X-Riot-Token"),
		Keys:   func(req *http.Request) map[string]string { return map[string]string{"method": riotMethod(req)} },
		Rules: []provider.MatchRule{
			{Status: []int{429}, Header: kind, Equals: "application", Reason: provider.ReasonQuota, Scope: provider.ScopeToken},
			{Status: []int{429}, Header: kind, Equals: "method", Reason: provider.ReasonQuota, Scope: provider.ScopeEndpoint},
			{Status: []int{429}, Header: kind, Equals: "service", Reason: provider.ReasonOverload, Scope: provider.ScopeEndpoint},
			{Status: []int{429}, Reason: provider.ReasonOverload, Scope: provider.ScopeEndpoint}, // of what stands behind the API
		},
	}
}

// riotMethod names a request's method: its endpoint, without the names of players that stand behind "by-name" and the like.
func riotMethod(req *http.Request) string {
	parts := strings.Split(endpoint.Of(req), "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "by-") {
			continue
		}
		names := 1
		if part == "by-riot-id" {
			names = 2 // the player's and the tag
		}
		for j := i + 1; j <= i+names && j < len(parts); j++ {
			parts[j] = "*"
		}
	}
	return strings.Join(parts, "/")
}
