package presets

import "github.com/ration-go/ration/provider"

// Generic returns the preset "generic": an API without a preset of its
// own. It reads the usual headers, statuses and codes, as the zero Provider does.
func Generic() *provider.Provider {
	return &provider.Provider{
		Name: "generic", Note: "for an API without a preset: the usual headers, statuses and codes",
		Source: "RFC 9110, RFC 6585, draft-ietf-httpapi-ratelimit-headers-01 to -10", AsOf: fromDigest,
	}
}
