package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/provider"
)

// X returns the preset "x": X's API, once Twitter.
func X() *provider.Provider {
	return &provider.Provider{
		Name: "x", Note: "10 to 10,000 in 15 minutes, by endpoint, for the user or the app; some endpoints also have a limit per day or per second: add one such as 300/15m:fixed-window,per=endpoint",
		Source: "https://docs.x.com/x-api/fundamentals/rate-limits", AsOf: "2026-08", Scope: provider.ScopeUser + "+" + provider.ScopeEndpoint,
		LatestReset: true,
		Keys: func(req *http.Request) map[string]string {
			name := endpoint.Of(req)
			if path, _, found := strings.Cut(name, "/by/username/"); found {
				name = path + "/by/username/*"
			}
			return map[string]string{"endpoint": name}
		},
		Windows: []provider.WindowHeaders{
			{Name: "15min", Limit: "X-Rate-Limit-Limit", Remaining: "X-Rate-Limit-Remaining", Reset: "X-Rate-Limit-Reset", Length: 15 * time.Minute},
			{Name: "24hour", Limit: "X-User-Limit-24hour-Limit", Remaining: "X-User-Limit-24hour-Remaining", Reset: "X-User-Limit-24hour-Reset", Length: aDay},
			{Name: "app-24hour", Limit: "X-App-Limit-24hour-Limit", Remaining: "X-App-Limit-24hour-Remaining", Reset: "X-App-Limit-24hour-Reset", Length: aDay, Scope: provider.ScopeApp},
		},
		Rules: []provider.MatchRule{
			{Field: "title", Equals: "UsageCapExceeded", Reason: provider.ReasonBilling, Scope: provider.ScopeApp},
			{Field: "type", Contains: "problems/usage-capped", Reason: provider.ReasonBilling, Scope: provider.ScopeApp},
			{Field: "title", Equals: "CreditsDepleted", Reason: provider.ReasonBilling, Scope: provider.ScopeApp},
			{Field: "title|connection_issue|errors[].title", Equals: "TooManyConnections|ConnectionException", Reason: provider.ReasonConcurrency},
			{Status: []int{420}, Reason: provider.ReasonQuota, MaxWait: 15 * time.Minute},
			{Field: "errors[].code", Equals: "88", Reason: provider.ReasonQuota, MaxWait: 15 * time.Minute},
			{Status: []int{401, 403}, Field: "errors[].code", Equals: "89", Reason: provider.ReasonDeadToken},
			{Status: []int{429}, Reason: provider.ReasonQuota, MaxWait: aDay},
		},
	}
}
