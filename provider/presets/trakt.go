package presets

import (
	"net/http"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Trakt returns the preset "trakt": Trakt's API.
func Trakt() *provider.Provider {
	return &provider.Provider{
		Name: "trakt", Limits: []limit.Limit{{Max: 1000, Window: 5 * time.Minute, Scope: "read"}, {Max: 1, Window: time.Second, Scope: "write"}},
		Note:   "reads and writes apart, by user, or by app without one; a request needs the header trakt-api-key too",
		Source: "https://trakt.docs.apiary.io/#introduction/rate-limiting", AsOf: fromDigest, Scope: provider.ScopeUser,
		Scopes: traktScopes,
		Rules: []provider.MatchRule{
			{Status: []int{420}, Reason: provider.ReasonDenied}, // of what a user may keep in lists
			{Status: []int{423}, Reason: provider.ReasonDenied}, // the user's account is locked
			{Status: []int{401}, Reason: provider.ReasonDeadToken},
		},
	}
}

// traktScopes returns whether a request reads or writes, which are counted apart.
func traktScopes(req *http.Request) []string {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == "" {
		return []string{"read"}
	}
	return []string{"write"}
}
