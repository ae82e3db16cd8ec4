package presets

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/provider"
)

// SPAPI returns the preset "sp-api": Amazon's Selling Partner API. It also reads
// `x-amzn-RateLimit-Limit`.
func SPAPI() *provider.Provider {
	return &provider.Provider{
		Name: "sp-api", Note: "a bucket for each operation, by seller and application: the reference of the operation has its rate and its burst: add the slowest as a limit such as 10/20s:gcra,per=operation,burst=10",
		Source: "https://developer-docs.amazon.com/sp-api/docs/usage-plans-and-rate-limits", AsOf: undatedCopy, Scope: operation,
		Attach:  provider.HeaderNamed("X-Amz-Access-Token"),
		Windows: []provider.WindowHeaders{},
		Keys:    func(req *http.Request) map[string]string { return map[string]string{"operation": spapiOperation(req)} },
		Rules: []provider.MatchRule{
			{Field: "errors[].code", Equals: "QuotaExceeded", Reason: provider.ReasonQuota, Scope: operation},
			{Status: []int{403}, Field: "errors[].details", Contains: "access token you provided has expired", Reason: provider.ReasonDeadToken},
		},
		Adjust: adjustSPAPI,
	}
}

// An operation is an endpoint and a method.
const operation = provider.ScopeEndpoint + "+method"

// adjustSPAPI reads the rate of the operation's bucket, in requests a second: 0.0167 is one a minute. Its size is told
// nowhere but in the reference.
func adjustSPAPI(r *provider.Response, f *provider.Feedback) {
	const by = "X-Amzn-Ratelimit-Limit"
	if rate, ok := header.Number(r.Header.Get(by)); ok && rate > 0 && rate <= header.MaxUnits {
		f.Windows = append(f.Windows, provider.Window{Name: "operation", Rate: rate, Refills: true, Scope: operation, By: by})
	}
}

// spapiOperation names a request's operation: its endpoint, without the products and sellers that stand behind "items".
func spapiOperation(req *http.Request) string {
	parts := strings.Split(endpoint.Of(req), "/")
	if items := slices.Index(parts, "items"); items > 0 {
		for i := items + 1; i < len(parts) && parts[i] != "offers"; i++ {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}
