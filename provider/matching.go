package provider

import (
	"slices"
	"time"

	"github.com/ration-go/ration/limit"
)

// What an answer tells of windows is of use where it can be said which limit is meant.
// Names differ between providers and plans, so lengths decide; and what cannot be told
// apart is told of no limit.

// A news is what an answer has told of one limit.
type Observation struct {
	At      int // the limit's place
	Counted int // units that the provider has counted in the window under way; 0: unknown
	Left    int // units that are left, by its own count; -1: unknown
	max     int // what it allows, for GCRA at once; 0: unknown
	rate    int // for GCRA, what it allows in the limit's window; 0: unknown
	Reset   Optional[time.Duration]
}

// newsOf returns what the windows of an answer tell of some limits. The request had the
// scopes, and costs is whether it cost what the provider says it does.
func Observe(windows []Window, limits []limit.Limit, scopes []string, costs bool, p *Provider) []Observation {
	var all []Observation
	for i, l := range limits {
		if l.Scope != "" && !slices.Contains(scopes, l.Scope) {
			continue
		}
		var best *Window
		for j := range windows {
			w := &windows[j]
			if w.isOf(l, limits, costs) && (best == nil || w.left() < best.left()) {
				best = w
			}
		}
		if best != nil {
			all = append(all, best.newsFor(i, l, p))
		}
	}
	return all
}

// isOf reports whether a window is what one of the limits counts.
func (w *Window) isOf(l limit.Limit, limits []limit.Limit, costs bool) bool {
	if !w.counts() || w.Refills != (l.Algorithm == limit.GCRA) {
		return false
	}
	switch w.Unit {
	case "", "requests", "request", "calls":
	case "points", "weight", "units":
		if !costs {
			return false
		}
	default:
		return false
	}
	named := func(scope string) bool { return scope != "" && (w.Name == scope || w.Object == scope) }
	if l.Scope != "" {
		return named(l.Scope) && (!w.Length.Known || w.lasts(l))
	}
	if slices.ContainsFunc(limits, func(o limit.Limit) bool { return named(o.Scope) }) {
		return false
	}
	part := false
	for _, scope := range [...]Scope{ScopeEndpoint, ScopeBucket, ScopeObject, ScopeResource, ScopeIssue, ScopePage} {
		part = part || w.Scope.Has(scope)
	}
	if part && (!w.Limit.Known || w.Limit.Value != int64(l.Capacity())) {
		return false // a part of what the account may ask for has another limit
	}
	if w.Length.Known && !w.percent() {
		return w.lasts(l)
	}
	if !IsWhole(w.Name) && !w.percent() && !part {
		return false
	}
	// Of one whose length is not told it can only be said where there is one limit.
	alike := 0
	for _, o := range limits {
		if o.Scope == "" && (o.Algorithm == limit.GCRA) == w.Refills {
			alike++
		}
	}
	return alike == 1
}

// percent reports whether the window is told as a share of a limit that is not.
func (w *Window) percent() bool { return w.UsedPercent.Known && !w.Limit.Known && !w.Remaining.Known }

// lasts reports whether a window of known length is as long as a limit's.
func (w *Window) lasts(l limit.Limit) bool {
	return (w.Length.Value - l.Window).Abs() <= l.Window/100
}

// newsFor returns what the window tells of the limit at that place.
func (w *Window) newsFor(at int, l limit.Limit, p *Provider) Observation {
	n := Observation{At: at, Left: -1, Reset: w.Reset}
	if w.Remaining.Known {
		n.Left = clampUnits(w.Remaining.Value)
	}
	switch {
	case w.Limit.Known && w.Remaining.Known:
		n.Counted = clampUnits(w.Limit.Value - w.Remaining.Value)
	case w.Used.Known:
		n.Counted = clampUnits(w.Used.Value)
	case w.Remaining.Known:
		n.Counted = clampUnits(int64(l.Capacity()) - w.Remaining.Value)
	case w.UsedPercent.Known:
		n.Counted = clampUnits(int64(w.UsedPercent.Value * float64(l.Capacity()) / 100))
		n.Left = max(0, l.Capacity()-n.Counted)
	}
	if w.Limit.Known && w.Limit.Value >= 1 && w.Limit.Value <= limit.MaxUnits && w.surelyOf(l, p) {
		n.max = int(w.Limit.Value)
		if l.Algorithm == limit.GCRA && w.Rate > 0 {
			n.rate = clampUnits(int64(w.Rate * l.Window.Seconds()))
		}
	}
	return n
}

// surelyOf reports whether the window is the limit's beyond doubt, so that another
// number is another limit: a wrong one would rule the fleet.
func (w *Window) surelyOf(l limit.Limit, p *Provider) bool {
	if w.Length.Known || w.Reset.Value > l.Window/2 && w.Reset.Value <= l.Window+time.Minute {
		return true
	}
	return slices.ContainsFunc(p.Limits, func(o limit.Limit) bool { return o.Window == l.Window })
}

func clampUnits(n int64) int { return int(min(max(n, 0), limit.MaxUnits)) }

// taught returns the limit as the news have it.
func (n Observation) ApplyTo(l limit.Limit) limit.Limit {
	if n.max == 0 || n.max == l.Capacity() {
		return l
	}
	if l.Algorithm != limit.GCRA {
		l.Max = n.max
		return l
	}
	if n.rate > 0 {
		l.Max = n.rate
	}
	// A bucket holds no more than its window brings: a longer one brings as much in
	// the same time.
	if times := (n.max + l.Max - 1) / l.Max; times > 1 && l.Window*time.Duration(times) <= limit.MaxWindow {
		l.Max, l.Window = l.Max*times, l.Window*time.Duration(times)
	}
	l.Burst = min(n.max, l.Max)
	return l
}
