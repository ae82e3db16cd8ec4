package presets

import (
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Notion returns the preset "notion": Notion's API.
func Notion() *provider.Provider {
	return &provider.Provider{
		Name: "notion", Limits: []limit.Limit{limit.PerSecond(3)},
		Note:   "on average, in the older of two copies of the page; in the newer a budget per minute by plan, and one by workspace",
		Source: "https://developers.notion.com/reference/request-limits", AsOf: undatedCopy, Scope: "connection",
		Rules: []provider.MatchRule{
			{Status: []int{529}, Reason: provider.ReasonOverload},
			{Field: "code", Equals: "service_overload", Reason: provider.ReasonOverload},
			{Field: "code", Equals: "rate_limited", Reason: provider.ReasonQuota},
			{Status: []int{401}, Field: "code", Equals: "unauthorized", Reason: provider.ReasonDeadToken},
		},
	}
}
