package presets

import (
	"github.com/ration-go/ration/provider"
)

// Shopify's GraphQL API tells of its bucket of points in the body only, behind the data.

func adjustShopify(a *provider.Response, f *provider.Feedback) {
	const cost, status = "extensions.cost.", "extensions.cost.throttleStatus."
	most, hasMost := a.Number(status + "maximumAvailable")
	left, hasLeft := a.Number(status + "currentlyAvailable")
	rate, _ := a.Number(status + "restoreRate")
	requested, asked := a.Number(cost + "requestedQueryCost")
	if !hasMost || !hasLeft {
		return
	}
	w := provider.Window{Name: "graphql", Unit: "points", Limit: provider.LimitOf(most), Remaining: provider.RemainingOf(left, true), Refills: true, By: "the body's throttleStatus"}
	if rate > 0 && rate <= provider.MaxUnits {
		w.Rate = rate
		if most > left {
			w.Reset = provider.Some(provider.Seconds((most - left) / rate))
		}
	}
	f.Windows = append(f.Windows, w)
	switch {
	case f.Reason != provider.ReasonQuota || !asked:
	case requested > most:
		f.Reason = provider.ReasonTooLarge
	case requested > left && w.Rate > 0:
		f.Wait, f.WaitBy = provider.Some(provider.Seconds((requested-left)/rate)), w.By
	}
}
