package presets

import (
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// GoogleMaps returns the preset "google-maps": the web services of Google Maps that answer with a status in the body.
func GoogleMaps() *provider.Provider {
	return &provider.Provider{
		Name: "google-maps", Limits: []limit.Limit{limit.PerMinute(3000)},
		Note:   "of the Geocoding API, by project; each of the other services has its own. Refusals have status 200; a day's quota that the owner has set ends at midnight in California",
		Source: "https://developers.google.com/maps/documentation/geocoding/usage-and-billing", AsOf: undatedCopy, Scope: provider.ScopeProject,
		Attach: provider.QueryNamed("key"), ReadSuccessBody: true,
		Rules: append([]provider.MatchRule{
			{Field: "status", Equals: "OVER_QUERY_LIMIT", Reason: provider.ReasonQuota},
			{Field: "status", Equals: "OVER_DAILY_LIMIT", Reason: provider.ReasonQuota, Midnight: pacific},
			{Field: "status", Equals: "REQUEST_DENIED", Reason: provider.ReasonDenied},
			{Field: "status", Equals: "UNKNOWN_ERROR", Reason: provider.ReasonOverload},
			{Field: "status", Equals: "OK|ZERO_RESULTS|INVALID_REQUEST|NOT_FOUND|MAX_ELEMENTS_EXCEEDED", Reason: ""},
		}, googleRules()...),
		WaitFields: []string{googleDelay}, Adjust: adjustGoogle,
	}
}
