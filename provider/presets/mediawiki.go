package presets

import (
	"time"

	"github.com/ration-go/ration/provider"
)

// MediaWiki returns the preset "mediawiki": the API of Wikipedia and other MediaWikis.
func MediaWiki() *provider.Provider {
	return &provider.Provider{
		Name: "mediawiki", Note: "three requests at once, with a User-Agent that names you",
		Source: "https://www.mediawiki.org/wiki/Wikimedia_APIs/Rate_limits", AsOf: fromDigest, Scope: provider.ScopeIP,
		ReadSuccessBody: true,
		Rules: []provider.MatchRule{
			{Field: "error.code|errors[].code", Equals: "maxlag", Reason: provider.ReasonOverload, MinWait: 5 * time.Second},
			{Field: "error.code|errors[].code", Equals: "readonly", Reason: provider.ReasonOverload},
			{Field: "error.code|errors[].code", Equals: "ratelimited|actionthrottled", Reason: provider.ReasonQuota},
			{Status: []int{503}, Reason: provider.ReasonOverload, MinWait: 5 * time.Second},
			{Status: []int{401, 403}, Field: "error.code", Equals: "mwoauth-invalid-authorization", Reason: provider.ReasonDeadToken},
		},
	}
}
