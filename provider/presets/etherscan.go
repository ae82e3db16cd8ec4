package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Etherscan returns the preset "etherscan": Etherscan's API, and those of its other explorers. It
// refuses in a 200.
func Etherscan() *provider.Provider {
	return &provider.Provider{
		Name: "etherscan", Limits: []limit.Limit{limit.PerSecond(3), {Max: 100_000, Window: aDay, Algorithm: limit.SubWindows}},
		Note:   "on the free plan, of all keys of an account together; from 5 to 30 a second and up to 1,500,000 a day on others",
		Source: "https://docs.etherscan.io/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Attach: provider.QueryNamed("apikey"), ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Field: "result", Contains: "max daily rate limit", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount, MaxWait: aDay},
			{Field: "result", Contains: "max rate limit reached|max calls per sec", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount, MinWait: time.Second},
			{Field: "result", Contains: "too many invalid api key attempts", Reason: provider.ReasonBan, Scope: provider.ScopeIP, MinWait: 30 * time.Second},
			{Field: "result", Contains: "invalid api key", Reason: provider.ReasonDeadToken},
		},
	}
}
