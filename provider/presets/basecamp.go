package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Basecamp returns the preset "basecamp": Basecamp's API.
func Basecamp() *provider.Provider {
	return &provider.Provider{
		Name: "basecamp", Limits: []limit.Limit{{Max: 50, Window: 10 * time.Second}},
		Note:   "by address; there are more limits, by second, hour and day, which change and are told by Retry-After; 50 in 10 s is met most",
		Source: "https://github.com/basecamp/bc3-api", AsOf: fromDigest, Scope: provider.ScopeIP,
	}
}
