package provider

import (
	"math"
	"time"

	"github.com/ration-go/ration/internal/header"
)

// ConcurrentUnit is the [Window.Unit] of a limit on requests in flight.
const ConcurrentUnit = "concurrent-requests"

// A Window is the state of one quota: a window, a bucket, or a share of a budget.
type Window struct {
	// Name is the provider's name for it, or its unit. Empty: it has none.
	Name string
	// Unit is what it counts, such as "tokens" or "points". Empty: requests.
	Unit string
	// Limit, Remaining and Used are in units. Limit is 1 or more. Remaining is rounded down,
	// and 0 if the quota is overdrawn; Used is rounded up.
	Limit, Remaining, Used Optional[int64]
	// UsedPercent is 0 or more, and above 100 if the quota is overdrawn.
	UsedPercent Optional[float64]
	// Length is the length of the window.
	Length Optional[time.Duration]
	// Reset is how long after the arrival there is more. One that has passed is unknown.
	Reset Optional[time.Duration]
	// Refills is whether it is a bucket that refills all the time. Reset is then when it is
	// full, and one unit is there much sooner.
	Refills bool
	// Rate is how many units a second it refills by. Zero: unknown.
	Rate float64
	// Scope is whom it is about, and Object the provider's name for that. Empty: unknown.
	Scope  Scope
	Object string
	// By is the header, or the place in the body, that it is read from.
	By string
	// ResetBy is the header that Reset is read from. Empty: By.
	ResetBy string
}

// Exhausted reports whether nothing is left.
func (w *Window) Exhausted() bool {
	return w.Remaining.Known && w.Remaining.Value == 0 || w.UsedPercent.Known && w.UsedPercent.Value >= 100
}

// ShareLeft returns the share that is left, from 0 on. It is unknown of a window of which
// neither the limit nor a percentage is known, unless nothing is left.
func (w *Window) ShareLeft() Optional[float64] {
	switch {
	case w.Remaining.Known && w.Remaining.Value == 0:
		return Some(0.0)
	case w.Remaining.Known && w.Limit.Known:
		return Some(float64(w.Remaining.Value) / float64(w.Limit.Value))
	case w.UsedPercent.Known:
		return Some(math.Max(0, 1-w.UsedPercent.Value/100))
	}
	return Optional[float64]{}
}

// Binding returns the window that limits the next request: of those that are exhausted, the
// one with the latest reset; or else the one with the smallest share left; or else, if no
// share is known, the one with the fewest units left. It is nil if there is none. Windows
// of bytes and of requests in flight are left out.
func (f *Feedback) Binding() *Window {
	var best *Window
	for i := range f.Windows {
		w := &f.Windows[i]
		if w.Unit == ConcurrentUnit || w.Unit == "content-bytes" {
			continue // a caller cannot spend these one by one
		}
		if best == nil || w.bindsBefore(best) {
			best = w
		}
	}
	return best
}

func (w *Window) bindsBefore(other *Window) bool {
	left, others := w.ShareLeft(), other.ShareLeft()
	empty, otherEmpty := left.Known && left.Value == 0, others.Known && others.Value == 0
	switch {
	case empty && otherEmpty:
		return w.Reset.Value > other.Reset.Value
	case empty || otherEmpty:
		return empty
	case left.Known && others.Known:
		return left.Value < others.Value
	case w.Remaining.Known && other.Remaining.Known:
		return w.Remaining.Value < other.Remaining.Value
	case w.Remaining.Known || other.Remaining.Known:
		return w.Remaining.Known
	}
	return false // the provider's order
}

// tells reports whether anything is known of the window.
func (w *Window) tells() bool {
	return w.Limit.Known || w.Remaining.Known || w.Used.Known || w.UsedPercent.Known || w.Reset.Known
}

// untilMore returns the time until the window has a unit again. A bucket has one long
// before it is full: after the time of a unit, but at least a second, or when it is full.
func (w *Window) untilMore() time.Duration {
	if !w.Refills {
		return w.Reset.Value
	}
	one := time.Second
	switch missing := w.Limit.Value - w.Remaining.Value; {
	case w.Rate > 0:
		one = max(one, header.Seconds(1/w.Rate))
	case w.Limit.Known && missing > 0:
		one = max(one, w.Reset.Value/time.Duration(missing))
	default:
		return w.Reset.Value
	}
	return min(one, w.Reset.Value)
}

// resetBy returns the header that the reset is read from.
func (w *Window) resetBy() string {
	if w.ResetBy != "" {
		return w.ResetBy
	}
	return w.By
}
