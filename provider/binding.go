package provider

import (
	"math"
)

// concurrentUnit is the unit of the IETF's drafts for requests in flight.
const ConcurrentUnit = "concurrent-requests"

// counts reports whether what the window counts is what a caller can spend one
// by one: requests, points or tokens, and neither bytes nor requests in flight.
func (w *Window) counts() bool { return w.Unit != ConcurrentUnit && w.Unit != "content-bytes" }

// exhausted reports whether nothing is left.
func (w *Window) Exhausted() bool {
	return w.Remaining.Known && w.Remaining.Value == 0 || w.UsedPercent.Known && w.UsedPercent.Value >= 100
}

// left is the share of the window that is left, and 2 if it is not known.
func (w *Window) left() float64 {
	switch {
	case w.Remaining.Known && w.Remaining.Value == 0:
		return 0
	case w.Remaining.Known && w.Limit.Known:
		return float64(w.Remaining.Value) / float64(w.Limit.Value)
	case w.UsedPercent.Known:
		return math.Max(0, 1-w.UsedPercent.Value/100)
	}
	return 2
}

// binding returns the window that the next request meets first: of those that are
// exhausted the one that stays so the longest, or else the one with the smallest
// share left, or with the fewest units where the shares are not known.
func (f *Feedback) Binding() *Window {
	var best *Window
	for i := range f.Windows {
		if w := &f.Windows[i]; w.counts() && (best == nil || w.bindsBefore(best)) {
			best = w
		}
	}
	return best
}

func (w *Window) bindsBefore(other *Window) bool {
	left, others := w.left(), other.left()
	switch {
	case left == 0 && others == 0:
		return w.Reset.Value > other.Reset.Value
	case left == 0 || others == 0:
		return left == 0
	case left < 2 && others < 2:
		return left < others
	case w.Remaining.Known && other.Remaining.Known:
		return w.Remaining.Value < other.Remaining.Value
	case w.Remaining.Known || other.Remaining.Known:
		return w.Remaining.Known
	}
	return false // the provider's order
}

// toldReset names what told of the reset.
func (w *Window) toldReset() string {
	if w.ResetBy != "" {
		return w.ResetBy
	}
	return w.By
}

// leastPercent is what is left of the budgets that are told in percents.
func (f *Feedback) leastPercent() Optional[float64] {
	least := Optional[float64]{}
	for i := range f.Windows {
		if used := f.Windows[i].UsedPercent; used.Known {
			if left := PercentOf(math.Max(0, 100-used.Value)); !least.Known || left.Value < least.Value {
				least = left
			}
		}
	}
	return least
}
