package presets

import (
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Shopify returns the preset "shopify": Shopify's Admin API. It also reads
// `throttleStatus` in the body.
func Shopify() *provider.Provider {
	return &provider.Provider{
		Name: "shopify", Limits: []limit.Limit{leaky(40, 20*time.Second)},
		Note:   "by app and store, 2 a second, and 4 or 20 on other plans; the GraphQL API takes points instead, 100 a second",
		Source: "https://shopify.dev/docs/api/admin-rest/usage/rate-limits", AsOf: undatedCopy, Scope: provider.ScopeToken,
		Attach:          provider.HeaderNamed("X-Shopify-Access-Token"),
		ReadSuccessBody: true, MaxBody: 1 << 20, // what is left stands behind the data
		Windows: []provider.WindowHeaders{{Ratio: "X-Shopify-Shop-Api-Call-Limit", Refills: true, Length: 20 * time.Second}},
		Rules: []provider.MatchRule{
			{Field: "errors[].extensions.code|errors[].message", Equals: "THROTTLED", Reason: provider.ReasonQuota},
			{Field: "errors[].extensions.code", Equals: "MAX_COST_EXCEEDED", Reason: provider.ReasonTooLarge},
			{Status: []int{430}, Reason: provider.ReasonBan, Scope: provider.ScopeIP},
		},
		SpentInBody: func(_ *http.Response, body []byte) map[string]int {
			if n, found := actualCost.last(body); found {
				return map[string]int{"points": n}
			}
			return nil
		},
		Adjust: adjustShopify,
	}
}

// actualCost is what a query has cost, behind the data. It is booked by what it may cost.
var actualCost = tokenCount{name: "actualQueryCost"}

// adjustShopify reads the bucket of the GraphQL API, which only the body describes, behind
// the data.
func adjustShopify(r *provider.Response, f *provider.Feedback) {
	const cost, status = "extensions.cost.", "extensions.cost.throttleStatus."
	most, hasMost := r.Number(status + "maximumAvailable")
	left, hasLeft := r.Number(status + "currentlyAvailable")
	rate, _ := r.Number(status + "restoreRate")
	requested, asked := r.Number(cost + "requestedQueryCost")
	if !hasMost || !hasLeft {
		return
	}
	w := provider.Window{Name: "graphql", Unit: "points", Limit: provider.OptionalOf(header.Limit(most)), Remaining: provider.OptionalOf(header.Remaining(left, true)), Refills: true, By: "the body's throttleStatus"}
	if rate > 0 && rate <= header.MaxUnits {
		w.Rate = rate
		if most > left {
			w.Reset = provider.Some(header.Seconds((most - left) / rate))
		}
	}
	f.Windows = append(f.Windows, w)
	switch {
	case f.Reason != provider.ReasonQuota || !asked:
	case requested > most:
		f.Reason = provider.ReasonTooLarge
	case requested > left && w.Rate > 0:
		f.Wait, f.WaitBy = provider.Some(header.Seconds((requested-left)/rate)), w.By
	}
}
