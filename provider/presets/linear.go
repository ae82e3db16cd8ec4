package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Linear returns the preset "linear": Linear's GraphQL API. It takes a personal API key as it is; for OAuth
// set Attach to provider.Bearer.
func Linear() *provider.Provider {
	bucket := func(name string) provider.WindowHeaders {
		return provider.WindowHeaders{
			Name: name, Unit: name, Limit: "X-RateLimit-" + name + "-Limit", Remaining: "X-RateLimit-" + name + "-Remaining",
			Reset: "X-RateLimit-" + name + "-Reset", Length: time.Hour, Refills: true,
		}
	}
	requests, complexity := bucket("Requests"), bucket("Complexity")
	requests.Unit = ""
	return &provider.Provider{
		Name: "linear", Limits: []limit.Limit{leaky(1500, time.Hour)},
		Note:   "by user with an API key, as responses announce it; also 250,000 points of complexity an hour, and 10,000 for one query",
		Source: "https://developers.linear.app/docs/graphql/working-with-the-graphql-api/rate-limiting", AsOf: undatedCopy, Scope: provider.ScopeUser,
		Attach:  provider.HeaderNamed("Authorization"),
		Windows: []provider.WindowHeaders{requests, complexity},
		Rules: []provider.MatchRule{
			{Field: "errors[].extensions.code", Equals: "RATELIMITED", Reason: provider.ReasonQuota, Scope: provider.ScopeUser, MaxWait: time.Hour},
			{Field: "errors[].extensions.code", Equals: "AUTHENTICATION_ERROR", Reason: provider.ReasonDeadToken},
		},
	}
}
