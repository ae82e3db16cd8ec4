package presets

import "github.com/ration-go/ration/provider"

// Generic returns the preset "generic": an API of which nothing is known.
func Generic() *provider.Provider {
	return &provider.Provider{
		Name: "generic", Note: "an API of which nothing is known: the usual headers, statuses and codes",
		Source: "RFC 9110, RFC 6585, draft-ietf-httpapi-ratelimit-headers-01 to -10", AsOf: fromDigest,
	}
}
