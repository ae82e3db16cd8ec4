package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Bybit returns the preset "bybit": version 5 of Bybit's API.
func Bybit() *provider.Provider {
	return &provider.Provider{
		Name: "bybit", Limits: []limit.Limit{{Max: 600, Window: 5 * time.Second}},
		Note: "by address; beside it each endpoint has a limit a second by user, which the headers tell. Refusals have status 200; " +
			"who exceeds the address's limit gets 403 for ten minutes",
		Source: "https://bybit-exchange.github.io/docs/v5/rate-limit", AsOf: undatedCopy, Scope: provider.ScopeIP,
		Attach: provider.HeaderNamed("X-BAPI-API-KEY"), ReadSuccessBody: true,
		Windows: []provider.WindowHeaders{{
			Limit: "X-Bapi-Limit", Remaining: "X-Bapi-Limit-Status", Reset: "X-Bapi-Limit-Reset-Timestamp", ResetForm: provider.ResetUnix,
			Length: time.Second, Scope: provider.ScopeUser + "+" + provider.ScopeEndpoint,
		}},
		Rules: []provider.MatchRule{
			{Field: "retCode", Equals: "10006", Reason: provider.ReasonQuota, Scope: provider.ScopeUser + "+" + provider.ScopeEndpoint},
			{Field: "retCode", Equals: "10018", Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
			{Field: "retCode", Equals: "10003|33004", Reason: provider.ReasonDeadToken},
			{Field: "retCode", Equals: "10016|10000", Reason: provider.ReasonOverload},
			{Status: []int{403}, Contains: "too frequent", Reason: provider.ReasonBan, Scope: provider.ScopeIP, MinWait: 10 * time.Minute},
			{Status: []int{200}, Field: "retCode", Reason: ""},
		},
	}
}
