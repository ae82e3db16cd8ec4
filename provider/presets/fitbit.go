package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Fitbit returns the preset "fitbit": Fitbit's Web API.
func Fitbit() *provider.Provider {
	return &provider.Provider{
		Name: "fitbit", Limits: []limit.Limit{fixed(150, time.Hour)},
		Note:   "by user of an app, until the full hour; the calls that an app makes for no user are counted by themselves",
		Source: "https://dev.fitbit.com/build/reference/web-api/troubleshooting-guide/", AsOf: fromDigest, Scope: provider.ScopeUser,
		Windows: []provider.WindowHeaders{{
			Limit: "Fitbit-Rate-Limit-Limit", Remaining: "Fitbit-Rate-Limit-Remaining", ResetAfter: "Fitbit-Rate-Limit-Reset", Length: time.Hour,
		}},
	}
}
