package presets

import (
	"net/http"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Crossref returns the preset "crossref": Crossref's REST API.
func Crossref() *provider.Provider {
	return &provider.Provider{
		Name: "crossref", Limits: []limit.Limit{limit.PerSecond(5)}, Note: "one request at once; 10 a second and three at once with a mailto",
		Source: "https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/", AsOf: fromDigest, Scope: provider.ScopeIP,
		Attach: func(req *http.Request, secret string) error {
			req.Header.Set("Crossref-Plus-API-Token", "Bearer "+secret)
			return nil
		},
		Windows: []provider.WindowHeaders{
			{Limit: "X-Rate-Limit-Limit", LengthHeader: "X-Rate-Limit-Interval"},
			{Name: "concurrency", Unit: provider.ConcurrentUnit, Limit: "X-Concurrency-Limit"},
		},
		Rules: []provider.MatchRule{{Status: []int{503}, Reason: provider.ReasonOverload}},
	}
}
