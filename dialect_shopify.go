package ration

// Shopify's GraphQL API tells of its bucket of points in the body only, behind the data.

func adjustShopify(a *Answer, f *Feedback) {
	const cost, status = "extensions.cost.", "extensions.cost.throttleStatus."
	most, hasMost := a.number(status + "maximumAvailable")
	left, hasLeft := a.number(status + "currentlyAvailable")
	rate, _ := a.number(status + "restoreRate")
	requested, asked := a.number(cost + "requestedQueryCost")
	if !hasMost || !hasLeft {
		return
	}
	w := Window{Name: "graphql", Unit: "points", Limit: limitOf(most), Remaining: remainingOf(left, true), Refills: true, By: "the body's throttleStatus"}
	if rate > 0 && rate <= mostUnits {
		w.Rate = rate
		if most > left {
			w.Reset = told(seconds((most - left) / rate))
		}
	}
	f.Windows = append(f.Windows, w)
	switch {
	case f.Reason != ReasonQuota || !asked:
	case requested > most:
		f.Reason = ReasonTooLarge
	case requested > left && w.Rate > 0:
		f.Wait, f.WaitBy = told(seconds((requested-left)/rate)), w.By
	}
}
