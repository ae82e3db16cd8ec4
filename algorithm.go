package ration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Algorithm is how a provider counts the calls of a limit. docs/algorithms.md
// compares them, with what each costs and lets through at worst.
type Algorithm int

const (
	// SlidingLog keeps every booking's slot in a sorted set: no window of any
	// alignment ever holds more than Max. It is the zero value, and how
	// Instagram, Meta and TikTok count.
	SlidingLog Algorithm = iota
	// StreamLog is as exact, in a Redis stream: a sixth of the memory.
	StreamLog
	// PackedLog is as exact, in strings of 8 bytes a booking: for quotas of
	// millions.
	PackedLog
	// FixedWindow counts in windows that begin at fixed instants, or with the
	// first call. GitHub, X, Reddit and YouTube count like this. Across the
	// edge of two windows up to twice Max can leave within one Window.
	FixedWindow
	// SlidingWindow counts in two fixed windows, the older one weighted by what
	// of it still overlaps the sliding one, as edges such as Cloudflare do.
	SlidingWindow
	// SubWindows counts in sub-windows of Limit.Resolution: never more than Max
	// in any window, and a unit is free again up to one sub-window late.
	SubWindows
	// GCRA spaces units evenly after a burst of Limit.Burst. A leaky bucket is
	// the same with a Burst of 1, and a token bucket that holds n with a Burst
	// of n. Shopify, Stripe and Discord count like this.
	GCRA
)

// algorithms names each, for people and, in one letter, for the scripts.
var algorithms = map[Algorithm]struct{ title, name, letter string }{
	SlidingLog:    {"SlidingLog", "sliding-log", "L"},
	StreamLog:     {"StreamLog", "stream-log", "S"},
	PackedLog:     {"PackedLog", "packed-log", "P"},
	FixedWindow:   {"FixedWindow", "fixed-window", "F"},
	SlidingWindow: {"SlidingWindow", "sliding-window", "W"},
	SubWindows:    {"SubWindows", "sub-windows", "U"},
	GCRA:          {"GCRA", "gcra", "G"},
}

// These bound what is read for one booking: of the sub-windows of one limit, and of
// all limits of an account.
const (
	maxSubWindows    = 1000
	maxAllSubWindows = 2000
)

// Algorithms returns all algorithms.
func Algorithms() []Algorithm {
	all := make([]Algorithm, 0, len(algorithms))
	for a := range algorithms {
		all = append(all, a)
	}
	slices.Sort(all)
	return all
}

// String returns the constant's name.
func (a Algorithm) String() string {
	if known, found := algorithms[a]; found {
		return known.title
	}
	return "Algorithm(" + strconv.Itoa(int(a)) + ")"
}

// name is how [ParseLimit] reads it.
func (a Algorithm) name() string { return algorithms[a].name }

// isLog reports whether every booking is kept, so that any window is exact.
func (a Algorithm) isLog() bool { return a <= PackedLog }

func parseAlgorithm(name string) (Algorithm, error) {
	var names []string
	for _, a := range Algorithms() {
		if strings.EqualFold(a.name(), name) {
			return a, nil
		}
		names = append(names, a.name())
	}
	return 0, fmt.Errorf("%q is not an algorithm: write one of %s", name, strings.Join(names, ", "))
}

// newCounter returns what an algorithm that keeps no log keeps of one limit.
func (a Algorithm) newCounter() counter {
	switch a {
	case FixedWindow:
		return new(fixedWindow)
	case SlidingWindow:
		return new(slidingWindow)
	case SubWindows:
		return new(subWindows)
	case GCRA:
		return new(gcra)
	}
	panic("ration: " + a.String() + " is a log")
}
