package presets

import (
	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/provider"
)

// Okta returns the preset "okta": Okta's API.
func Okta() *provider.Provider {
	return &provider.Provider{
		Name: "okta", Note: "per minute by group of endpoints, for the whole organisation; 75 at once, or 35 on the free plan",
		Source: "https://developer.okta.com/docs/reference/rl2-concurrency/", AsOf: "2026-08", Scope: provider.ScopeOrg,
		Attach: authorization("SSWS"),
		Rules:  []provider.MatchRule{{Status: []int{401}, Field: "errorCode", Equals: "E0000011", Reason: provider.ReasonDeadToken}},
		Adjust: adjustOkta,
	}
}

// adjustOkta reads a limit of 0, by which Okta says that too many requests are in flight. Then
// the headers describe no window.
func adjustOkta(r *provider.Response, f *provider.Feedback) {
	limit, found := header.Number(r.Header.Get("X-Rate-Limit-Limit"))
	if found && limit == 0 && r.Status == 429 {
		f.Reason, f.Windows = provider.ReasonConcurrency, nil
	}
}
