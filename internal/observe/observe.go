// Package observe finds what the windows of a response say about the limits of an account.
//
// Providers and plans name windows differently, so their lengths decide which limit is
// meant. A window that may be of several limits says nothing.
package observe

import (
	"slices"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// An Observation is what a response says about one limit.
type Observation struct {
	Limit   int                              // the index of the limit
	Counted int                              // units that the provider has counted in the current window; 0: unknown
	Left    int                              // units that are left, by the provider's count; -1: unknown
	Reset   provider.Optional[time.Duration] // when there is more, from the arrival

	max  int // what it allows, for GCRA at once; 0: unknown
	rate int // for GCRA, what it allows in the limit's window; 0: unknown
}

// Limits returns what windows say about limits, in the order of the limits. The request
// had these scopes. Weighted is whether its cost is what the provider charges, so that
// windows of points are comparable.
func Limits(windows []provider.Window, limits []limit.Limit, scopes []string, weighted bool) []Observation {
	var all []Observation
	for i, l := range limits {
		if l.Scope != "" && !slices.Contains(scopes, l.Scope) {
			continue
		}
		var best *provider.Window
		for j := range windows {
			w := &windows[j]
			if isOf(w, l, limits, weighted) && (best == nil || shareLeft(w) < shareLeft(best)) {
				best = w
			}
		}
		if best != nil {
			all = append(all, observe(best, i, l))
		}
	}
	return all
}

// shareLeft orders windows: an unknown share comes last.
func shareLeft(w *provider.Window) float64 {
	if share := w.ShareLeft(); share.Known {
		return share.Value
	}
	return 2
}

// isOf reports whether a window is what one of the limits counts.
func isOf(w *provider.Window, l limit.Limit, limits []limit.Limit, weighted bool) bool {
	if w.Refills != (l.Algorithm == limit.GCRA) {
		return false
	}
	switch w.Unit {
	case "", "requests", "request", "calls":
	case "points", "weight", "units":
		if !weighted {
			return false
		}
	default:
		return false
	}
	named := func(scope string) bool { return scope != "" && (w.Name == scope || w.Object == scope) }
	if l.Scope != "" {
		return named(l.Scope) && (!w.Length.Known || isAsLong(w, l))
	}
	if slices.ContainsFunc(limits, func(o limit.Limit) bool { return named(o.Scope) }) {
		return false
	}
	part := w.Scope.HasObject() || w.Scope.Has(provider.ScopeEndpoint) || w.Scope.Has(provider.ScopeBucket)
	if part && (!w.Limit.Known || w.Limit.Value != int64(l.Capacity())) {
		return false // it is of a part of the API, which has another limit
	}
	if w.Length.Known && !onlyPercent(w) {
		return isAsLong(w, l)
	}
	if !provider.Scope(w.Name).IsWholeAPI() && !onlyPercent(w) && !part {
		return false
	}
	// A window of unknown length can be of this limit only if there is no other, and if it has the same number: when it
	// resets proves nothing, since a quota of a minute has a second left, too.
	return isAlone(l, limits) && (!w.Limit.Known || w.Limit.Value == int64(l.Capacity()))
}

// isAlone reports whether no other limit counts all calls in the same way.
func isAlone(l limit.Limit, limits []limit.Limit) bool {
	alike := 0
	for _, o := range limits {
		if o.Scope == "" && (o.Algorithm == limit.GCRA) == (l.Algorithm == limit.GCRA) {
			alike++
		}
	}
	return alike == 1
}

// Unclear returns what a window allows that may be that of the only limit, says another number, and does not tell how long
// it is; 0: there is none.
func Unclear(windows []provider.Window, limits []limit.Limit) int64 {
	for _, l := range limits {
		if l.Scope != "" || !isAlone(l, limits) {
			continue
		}
		for i := range windows {
			w := &windows[i]
			whole := (w.Unit == "" || w.Unit == "requests") && w.Scope == "" && provider.Scope(w.Name).IsWholeAPI()
			if whole && !w.Length.Known && w.Limit.Known && w.Limit.Value != int64(l.Capacity()) && w.Limit.Value != int64(l.Max) {
				return w.Limit.Value
			}
		}
	}
	return 0
}

// onlyPercent reports whether a window is a share of a limit that the provider hides.
func onlyPercent(w *provider.Window) bool {
	return w.UsedPercent.Known && !w.Limit.Known && !w.Remaining.Known
}

// isAsLong reports whether a window of known length is as long as a limit's.
func isAsLong(w *provider.Window, l limit.Limit) bool {
	return (w.Length.Value - l.Window).Abs() <= l.Window/100
}

// observe returns what a window says about the limit with that index.
func observe(w *provider.Window, index int, l limit.Limit) Observation {
	o := Observation{Limit: index, Left: -1, Reset: w.Reset}
	if w.Remaining.Known {
		o.Left = clamp(w.Remaining.Value)
	}
	switch {
	case w.Limit.Known && w.Remaining.Known:
		o.Counted = clamp(w.Limit.Value - w.Remaining.Value)
	case w.Used.Known:
		o.Counted = clamp(w.Used.Value)
	case w.Remaining.Known:
		o.Counted = clamp(int64(l.Capacity()) - w.Remaining.Value)
	case w.UsedPercent.Known:
		o.Counted = clamp(int64(w.UsedPercent.Value * float64(l.Capacity()) / 100))
		o.Left = max(0, l.Capacity()-o.Counted)
	}
	if w.Limit.Known && w.Limit.Value >= 1 && w.Limit.Value <= limit.MaxUnits && isSurelyOf(w, l) {
		o.max = int(w.Limit.Value)
		if l.Algorithm == limit.GCRA && w.Rate > 0 {
			o.rate = clamp(int64(w.Rate * l.Window.Seconds()))
		}
	}
	return o
}

// isSurelyOf reports whether a window is beyond doubt the limit's, so that another number is
// another limit: the whole fleet adopts it. The response, or the preset, says how long the window is, or it has the
// name of the limit's scope.
func isSurelyOf(w *provider.Window, l limit.Limit) bool {
	return w.Length.Known || l.Scope != "" && (w.Name == l.Scope || w.Object == l.Scope)
}

func clamp(n int64) int { return int(min(max(n, 0), limit.MaxUnits)) }

// ResetWithin returns how far from Reset the window's end may be: of whole seconds nobody knows which way
// they were rounded, nor by which second of a Date they were counted.
func (o Observation) ResetWithin() time.Duration {
	if o.Reset.Value%time.Second == 0 {
		return time.Second
	}
	return 0
}

// Announced reports whether the response says what the limit allows.
func (o Observation) Announced() bool { return o.max > 0 }

// ApplyTo returns the limit with the numbers that were observed.
func (o Observation) ApplyTo(l limit.Limit) limit.Limit {
	if o.max == 0 || o.max == l.Capacity() {
		return l
	}
	if l.Algorithm != limit.GCRA {
		l.Max = o.max
		return l
	}
	if o.rate > 0 {
		l.Max = o.rate
	}
	// A bucket holds at most what its window brings: a longer window brings as much in the
	// same time.
	if times := (o.max + l.Max - 1) / l.Max; times > 1 && l.Window*time.Duration(times) <= limit.MaxWindow {
		l.Max, l.Window = l.Max*times, l.Window*time.Duration(times)
	}
	l.Burst = min(o.max, l.Max)
	return l
}
