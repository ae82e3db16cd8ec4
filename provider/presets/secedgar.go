package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// SECEDGAR returns the preset "sec-edgar": the EDGAR archives of the SEC. Its token is the contact that User-Agent must name.
func SECEDGAR() *provider.Provider {
	return &provider.Provider{
		Name: "sec-edgar", Limits: []limit.Limit{limit.PerSecond(10)},
		Note: "by address, however many machines there are behind it; who exceeds it is blocked for ten minutes, which each request in them prolongs. " +
			"User-Agent must name a contact, such as \"Example Inc. admin@example.com\"",
		Source: "https://www.sec.gov/os/accessing-edgar-data", AsOf: fromDigest, Scope: provider.ScopeIP,
		Attach: provider.HeaderNamed("User-Agent"),
		Rules: []provider.MatchRule{
			{Contains: "request rate threshold exceeded", Reason: provider.ReasonBan, Scope: provider.ScopeIP, MinWait: 10 * time.Minute},
			{Status: []int{403}, Contains: "undeclared automated tool", Reason: provider.ReasonDenied},
			{Status: []int{429}, Reason: provider.ReasonBan, Scope: provider.ScopeIP, MinWait: 10 * time.Minute},
		},
	}
}
