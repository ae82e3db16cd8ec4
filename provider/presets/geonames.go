package presets

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// GeoNames returns the preset "geonames": the web services of GeoNames. Its token is the name of a user.
func GeoNames() *provider.Provider {
	return &provider.Provider{
		Name: "geonames", Limits: []limit.Limit{limit.PerHour(1000), {Max: 10_000, Window: aDay, Algorithm: limit.SubWindows}},
		Note:   "credits of the free services, of which most requests cost 1; refusals have status 200",
		Source: "https://www.geonames.org/export/webservice-exception.html", AsOf: undatedCopy, Scope: provider.ScopeUser,
		Attach: provider.QueryNamed("username"), ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Field: geoNamesCode, Equals: "18", Reason: provider.ReasonQuota, MaxWait: aDay},
			{Field: geoNamesCode, Equals: "19", Reason: provider.ReasonQuota, MaxWait: time.Hour},
			{Field: geoNamesCode, Equals: "20", Reason: provider.ReasonQuota, MaxWait: 7 * aDay},
			{Field: geoNamesCode, Equals: "13|22", Reason: provider.ReasonOverload},
			{Field: geoNamesCode, Equals: "10", Reason: provider.ReasonDeadToken},
			{Field: geoNamesCode, Reason: ""},
		},
	}
}

const geoNamesCode = "status.value" // of JSON, and of XML
