package limits

import (
	"context"
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

// Read compares what a response says about the account's limits with the log and with the limits themselves. where is the endpoint, and
// costs whether calls cost different amounts. It reports whether the response is about the endpoint by itself.
func (k *Keeper) Read(ctx context.Context, c *Call, windows []provider.Window, where string, costs bool) (apart bool) {
	if len(c.Units) > 0 {
		k.readMeters(ctx, c, windows)
	}
	account, understood := k.understand(c.Account)
	observed := observe.Limits(windows, account.WithoutMargin, c.Scopes, costs)
	if len(observed) == 0 {
		if n := observe.Unclear(windows, account.WithoutMargin); n > 0 && k.reconcilerFor(account).unclear.Swap(n) != n {
			k.Owner.Unclear(account.ID, int(n), account.WithoutMargin)
		}
		return false
	}

	ctx, stop := k.Store.Soon(ctx)
	defer stop()
	r, now := k.reconcilerFor(account), k.Store.Now()
	observed, apart = r.announcements.Take(where, observed, account.WithoutMargin, now)
	if len(observed) == 0 {
		return apart
	}
	if understood {
		r.adoptAnnounced(k, account, observed)
	}
	r.reports.Note(observed, now)
	r.recordResets(ctx, k, account, observed, now)
	r.reconcile(ctx, k, account, c, observed, now)
	return apart
}

// readMeters compares what a response says of other units with the logs of the account's meters. What a limit of these is
// it does not learn.
func (k *Keeper) readMeters(ctx context.Context, c *Call, windows []provider.Window) {
	ctx, stop := k.Store.Soon(ctx)
	defer stop()
	now := k.Store.Now()
	for i, units := range c.Units {
		meter := c.List.Meter(i, c.Account.ID)
		observed := observe.Limits(windowsOf(windows, &c.List.Meters[i]), meter.WithoutMargin, c.Scopes, false)
		if units == 0 || len(observed) == 0 {
			continue
		}
		r, of := k.reconcilerFor(meter), *c
		of.Cost, of.Total = units, 0
		r.reports.Note(observed, now)
		r.recordResets(ctx, k, meter, observed, now)
		r.reconcile(ctx, k, meter, &of, observed, now)
	}
}

// windowsOf returns the windows of what a meter counts, as those of a meter, which counts nothing else. A window of a unit has its
// name, or counts it and has none: of tokens there may be several. One of a part of the API is what is counted per key: a provider
// may count several values together, as Discord does the routes of a bucket, and then each of their meters follows.
func windowsOf(windows []provider.Window, m *Meter) (of []provider.Window) {
	for _, w := range windows {
		if m.Unit != "" && w.Unit != "" && (w.Name == m.Unit || w.Name == "" && w.Unit == m.Unit) {
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
// is about a part of the API that a meter counts, or about a meter's unit. Nil: it is about a part that nothing counts.
func (c *Call) refusedBy(f *provider.Feedback, scope provider.Scope) (charged *Account, units int) {
	if scope.HasShared() || scope.HasObject() {
		return nil, 0 // another limit than the account's
	}
	part := scope.Has(provider.ScopeEndpoint) || scope.Has(provider.ScopeBucket)
	binding := f.Binding()
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
