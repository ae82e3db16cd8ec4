package presets

import (
	"time"

	"github.com/ration-go/ration/provider"
)

// EVEESI returns the preset "eve-esi": EVE Online's ESI.
func EVEESI() *provider.Provider {
	return &provider.Provider{
		Name: "eve-esi", Note: "tokens by group of routes, app and character, of which a success costs 2 and an error 5; on routes without a group 100 errors a minute, " +
			"after which every route answers 420",
		Source: "https://developers.eveonline.com/docs/services/esi/rate-limiting/", AsOf: undatedCopy, Scope: provider.ScopeMember,
		Windows: []provider.WindowHeaders{
			{NameHeader: "X-Ratelimit-Group", Unit: "tokens", Limit: "X-Ratelimit-Limit", Remaining: "X-Ratelimit-Remaining", Scope: provider.ScopeMember + "+" + provider.ScopeEndpoint},
			{Name: "errors", Unit: "errors", Remaining: "X-Esi-Error-Limit-Remain", ResetAfter: "X-Esi-Error-Limit-Reset", Length: time.Minute, Scope: provider.ScopeIP},
		},
		Rules: []provider.MatchRule{{Status: []int{420}, Reason: provider.ReasonQuota, Scope: provider.ScopeIP, MaxWait: time.Minute}},
	}
}
