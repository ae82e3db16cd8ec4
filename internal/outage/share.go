package outage

import (
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Divide returns the accounts, the shared ones and the meters with a share of each limit, for one of so many workers whose requests
// cost that.
func Divide(a *store.Accounts, workers, cost int, units []int) (list, shared []store.Account, meters []store.Meter) {
	for _, account := range a.All() {
		list = append(list, divide(account, workers, cost))
	}
	for _, account := range a.Shared() {
		shared = append(shared, divide(account, workers, cost))
	}
	for i, meter := range a.Meters() {
		meters = append(meters, store.Meter{Unit: meter.Unit, Limits: divide(store.Account{Limits: meter.Limits}, workers, units[i]).Limits})
	}
	return list, shared, meters
}

// divide returns the account with a share of each limit. If a share is smaller than the
// cost, it is enlarged to the cost and its window lengthened as much.
func divide(a store.Account, workers, cost int) store.Account {
	limits := make([]limit.Limit, len(a.Limits))
	for i, l := range a.Limits {
		share := l.Max / workers
		if least := max(1, cost); share < least {
			share = min(least, l.Max)
			longer := float64(l.Window) * float64(workers) * float64(share) / float64(l.Max)
			l.Window = time.Duration(min(longer, float64(limit.MaxWindow))).Truncate(time.Microsecond)
			l.Resolution = 0
		}
		l.Max = share
		if l.Burst > 0 {
			l.Burst = min(share, max(1, cost, l.Burst/workers))
		}
		limits[i] = l
	}
	return store.Account{ID: a.ID, Limits: limits}
}
