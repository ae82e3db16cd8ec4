package presets

import (
	"time"

	"github.com/ration-go/ration/provider"
)

// KuCoin returns the preset "kucoin": KuCoin's API.
func KuCoin() *provider.Provider {
	return &provider.Provider{
		Name: "kucoin", Note: "points in 30 s, by pool of endpoints (spot, futures, management, earn, public) and by the level of the account; the reset is in milliseconds",
		Source: "https://www.kucoin.com/docs-new/rate-limit", AsOf: fromDigest, Scope: provider.ScopeUser,
		Windows: []provider.WindowHeaders{{
			Unit: "points", Limit: "Gw-Ratelimit-Limit", Remaining: "Gw-Ratelimit-Remaining", Reset: "Gw-Ratelimit-Reset", ResetForm: provider.ResetMilliseconds,
			Length: 30 * time.Second,
		}},
		Rules: []provider.MatchRule{
			{Field: "code", Equals: "429000|200002|1015", Reason: provider.ReasonQuota},
			{Status: []int{400, 401}, Field: "code", Equals: "400003|400004|400005|400006", Reason: provider.ReasonDeadToken},
		},
	}
}
