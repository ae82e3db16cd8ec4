package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Replicate returns the preset "replicate": Replicate's API.
func Replicate() *provider.Provider {
	return &provider.Provider{
		Name: "replicate", Limits: []limit.Limit{
			{Max: 600, Window: time.Minute, Algorithm: limit.GCRA, Burst: 60, Scope: "predictions"},
			{Max: 3000, Window: time.Minute, Algorithm: limit.GCRA, Burst: 300, Scope: "other"},
		},
		Note:   "by account, with short bursts; with little credit left less, and without a way to pay one a second and six a minute",
		Source: "https://replicate.com/docs/topics/predictions/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Scopes: replicateScopes,
		Rules:  []provider.MatchRule{{Status: []int{401}, Reason: provider.ReasonDeadToken}},
	}
}

// replicateScopes returns whether a request begins a prediction, which are counted apart.
func replicateScopes(req *http.Request) []string {
	if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/predictions") {
		return []string{"predictions"}
	}
	return []string{"other"}
}
