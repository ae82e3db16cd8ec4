package presets

import (
	"net/http"

	"github.com/ration-go/ration/provider"
)

// AzureDevOps returns the preset "azure-devops": Azure DevOps Services.
func AzureDevOps() *provider.Provider {
	return &provider.Provider{
		Name: "azure-devops", Note: "200 units of throughput in a sliding five minutes, by user; who exceeds them is first delayed and asked to wait, on successes too, and then refused",
		Source: "https://learn.microsoft.com/en-us/azure/devops/integrate/concepts/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeUser,
		Attach: personalAccessToken,
		Windows: []provider.WindowHeaders{{
			Unit: "tstu", Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset", ResetForm: provider.ResetUnix, Refills: true,
		}},
		Rules: []provider.MatchRule{{Contains: "TF400733", Reason: provider.ReasonQuota}},
	}
}

// personalAccessToken puts a token in the place of a password without a name.
func personalAccessToken(req *http.Request, secret string) error {
	req.SetBasicAuth("", secret)
	return nil
}
