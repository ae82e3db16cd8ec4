package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Deezer returns the preset "deezer": Deezer's API.
func Deezer() *provider.Provider {
	return &provider.Provider{
		Name: "deezer", Limits: []limit.Limit{{Max: 50, Window: 5 * time.Second}},
		Note:   "by address; refusals have status 200",
		Source: "https://developers.deezer.com/api", AsOf: fromDigest, Scope: provider.ScopeIP,
		Attach: provider.QueryNamed("access_token"), ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Field: "error.code", Equals: "4", Reason: provider.ReasonQuota, MaxWait: 5 * time.Second},
			{Field: "error.code", Equals: "300", Reason: provider.ReasonDeadToken},
			{Field: "error.code", Equals: "200", Reason: provider.ReasonDenied},
			{Field: "error.code", Equals: "700", Reason: provider.ReasonOverload},
			{Field: "error.code", Reason: ""},
		},
	}
}
