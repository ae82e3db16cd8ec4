package limit

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
var AlgorithmsOf = map[Algorithm]struct{ title, name, Letter string }{
	SlidingLog:    {"SlidingLog", "sliding-log", "L"},
	StreamLog:     {"StreamLog", "stream-log", "S"},
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
	all := make([]Algorithm, 0, len(AlgorithmsOf))
	for a := range AlgorithmsOf {
		all = append(all, a)
	}
	slices.Sort(all)
	return all
}

// String returns the constant's name.
func (a Algorithm) String() string {
	if known, found := AlgorithmsOf[a]; found {
		return known.title
	}
	return "Algorithm(" + strconv.Itoa(int(a)) + ")"
}

// name is how [ParseLimit] reads it.
func (a Algorithm) name() string { return AlgorithmsOf[a].name }

// isLog reports whether every booking is kept, so that any window is exact.
func (a Algorithm) IsLog() bool { return a <= StreamLog }

func parseAlgorithm(name string) (Algorithm, error) {
	if strings.EqualFold(name, "packed-log") {
		return 0, fmt.Errorf("%q is not an algorithm: write stream-log, which is as exact, or sub-windows, which takes the least memory", name)
	}
	var names []string
	for _, a := range Algorithms() {
		if strings.EqualFold(a.name(), name) {
			return a, nil
		}
		names = append(names, a.name())
	}
	return 0, fmt.Errorf("%q is not an algorithm: write one of %s", name, strings.Join(names, ", "))
}

// An algorithmSet has a bit for each algorithm.
type AlgorithmSet int

func (s AlgorithmSet) With(a Algorithm) AlgorithmSet { return s | 1<<a }

func (s AlgorithmSet) Has(a Algorithm) bool { return s&(1<<a) != 0 }
