package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// ArXiv returns the preset "arxiv": arXiv's API.
func ArXiv() *provider.Provider {
	return &provider.Provider{
		Name: "arxiv", Limits: []limit.Limit{{Max: 1, Window: 3 * time.Second}},
		Note:   "one connection at a time, of all your machines together",
		Source: "https://info.arxiv.org/help/api/tou.html", AsOf: "2026-07", Scope: provider.ScopeIP,
		ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Status: []int{200, 403, 429, 503}, Contains: "rate exceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeIP, MinWait: 3 * time.Second},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeIP, MinWait: 3 * time.Second},
			{Status: []int{503}, Reason: provider.ReasonOverload, Scope: provider.ScopeIP, MinWait: 3 * time.Second},
		},
	}
}
