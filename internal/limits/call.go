package limits

import (
	"context"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/observe"
	"github.com/ration-go/ration/provider"
)

// A Call is one that was sent, and what it was charged to.
type Call struct {
	// Account is the one that was charged, of List.
	Account *Account
	List    *List
	// Slot is when it was to leave, on the store's clock, and Waited whether its caller waited for that.
	Slot   time.Time
	Waited bool
	// Cost is what it cost, and Units what its meters were charged with.
	Cost  int
	Units []int
	// Total is what the fleet had booked with it. Zero: that is not known.
	Total int64
	// Scopes are the call's.
	Scopes []string
}

// Read compares what a response says about the limits of what a call was charged to with the logs and with the limits themselves. where
// is the endpoint, and costs whether calls cost different amounts. It reports whether the response is about the endpoint by itself.
func (k *Keeper) Read(ctx context.Context, c *Call, windows []provider.Window, where string, costs bool) (apart bool) {
	ctx, stop := k.Store.Soon(ctx)
	defer stop()
	for i, units := range c.Units {
		if own := windowsOf(windows, &c.List.Meters[i]); units > 0 && len(own) > 0 {
			of := *c
			of.Account, of.Cost, of.Total = c.List.Meter(i, c.Account.ID), units, 0
			k.readOf(ctx, &of, own, where, false)
		}
	}
	apart, known := k.readOf(ctx, c, windows, where, costs)
	if !known {
		account, _ := k.understand(c.Account)
		if n := observe.Unclear(windows, account.WithoutMargin); n > 0 && k.reconcilerFor(account).unclear.Swap(n) != n {
			k.Owner.Unclear(account.ID, int(n), account.WithoutMargin)
		}
	}
	return apart
}

// readOf compares what a response says about the limits of one account or meter, with what the call was charged there, and reports
// whether it says anything that is known of.
func (k *Keeper) readOf(ctx context.Context, c *Call, windows []provider.Window, where string, costs bool) (apart, known bool) {
	account, understood := k.understand(c.Account)
	observed := observe.Limits(windows, account.WithoutMargin, c.Scopes, costs)
	if len(observed) == 0 {
		return false, false
	}
	r, now := k.reconcilerFor(account), k.Store.Now()
	observed, apart = r.announcements.Take(where, observed, account.WithoutMargin, now)
	if len(observed) == 0 {
		return apart, true
	}
	if understood {
		r.adoptAnnounced(k, account, observed)
	}
	r.reports.Note(observed, now)
	r.recordResets(ctx, k, account, observed, now)
	r.reconcile(ctx, k, account, c, observed, now)
	return apart, true
}

// windowsOf returns the windows of what a meter counts, as those of a meter, which counts nothing else. A window of a unit has its
// name or, if none has, counts it: of tokens there may be several. One of a part of the API is what is counted per key: a provider
// may count several values together, as Discord does the routes of a bucket, and then each of their meters follows.
func windowsOf(windows []provider.Window, m *Meter) (of []provider.Window) {
	named := slices.ContainsFunc(windows, func(w provider.Window) bool { return w.Unit != "" && w.Name == m.Unit })
	for _, w := range windows {
		if m.Unit != "" && w.Unit != "" && (w.Name == m.Unit || !named && w.Unit == m.Unit) {
			w.Name, w.Unit = "", ""
			of = append(of, w)
		}
		if part := w.Scope.Has(provider.ScopeEndpoint) || w.Scope.Has(provider.ScopeBucket); part && m.Unit == "" {
			w.Name, w.Scope = "", ""
			of = append(of, w)
		}
	}
	return of
}

// refusedBy returns what a call was charged to whose limits it exceeded, and with how many units: the account, unless the response
// is about a part of the API that a meter counts, or about a meter's unit; if it names nothing, what is nearest to spent. Nil: it is about
// a part that nothing counts.
func (k *Keeper) refusedBy(c *Call, f *provider.Feedback, scope provider.Scope) (charged *Account, units int) {
	if scope.HasShared() || scope.HasObject() {
		return nil, 0 // another limit than the account's
	}
	part := scope.Has(provider.ScopeEndpoint) || scope.Has(provider.ScopeBucket)
	binding := f.Binding()
	if binding == nil && !part && len(c.Units) > 0 {
		return k.nearest(c)
	}
	for i, n := range c.Units {
		m := &c.List.Meters[i]
		ofUnit := binding != nil && m.Unit != "" && len(windowsOf([]provider.Window{*binding}, m)) > 0
		if n > 0 && (ofUnit || part && m.Unit == "") {
			return c.List.Meter(i, c.Account.ID), n
		}
	}
	if part {
		return nil, 0
	}
	return c.Account, c.Cost
}

// nearest returns what a call was charged to of which the smallest share is left, by the log.
func (k *Keeper) nearest(c *Call) (charged *Account, units int) {
	charged, units = c.Account, c.Cost
	least := k.shareLeft(c.Account)
	for i, n := range c.Units {
		if one := c.List.Meter(i, c.Account.ID); n > 0 {
			if left := k.shareLeft(one); left < least {
				charged, units, least = one, n, left
			}
		}
	}
	return charged, units
}

// shareLeft returns the smallest share that is left of an account's limits; 1 if the store does not answer.
func (k *Keeper) shareLeft(account *Account) float64 {
	least := 1.0
	u, _ := k.usageOf(k.InForce(account))
	for _, l := range u.Limits {
		least = min(least, float64(l.Remaining)/float64(l.Limit.Capacity()))
	}
	return least
}
