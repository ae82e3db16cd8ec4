package limit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Algorithm is how a provider counts the calls of a limit. docs/explanation/algorithms.md
// compares them, with what each costs and lets through at worst.
type Algorithm int

const (
	// SlidingLog keeps every booking's slot in a sorted set: no window of any
	// alignment ever holds more than Max. It is the zero value, and how
	// Instagram, Meta and TikTok count.
	SlidingLog Algorithm = iota
	// StreamLog is as exact, in a Redis stream: about a fifth of the memory.
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

// algorithms has the names of each: its constant, the one that [Parse] reads, and its Code.
var algorithms = map[Algorithm]struct{ title, name, code string }{
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

// Algorithms returns all algorithms, in the order of the constants.
func Algorithms() []Algorithm {
	all := make([]Algorithm, 0, len(algorithms))
	for a := range algorithms {
		all = append(all, a)
	}
	slices.Sort(all)
	return all
}

// String returns the constant's name, such as "SlidingLog".
func (a Algorithm) String() string {
	if known, found := algorithms[a]; found {
		return known.title
	}
	return "Algorithm(" + strconv.Itoa(int(a)) + ")"
}

// name is how [Parse] reads it.
func (a Algorithm) name() string { return algorithms[a].name }

// Code returns the letter by which stores keep the algorithm; "" if it is none of the
// package's constants. It never changes.
func (a Algorithm) Code() string { return algorithms[a].code }

// AlgorithmOf returns the algorithm with that Code, and whether there is one.
func AlgorithmOf(code string) (Algorithm, bool) {
	for a, of := range algorithms {
		if of.code == code {
			return a, true
		}
	}
	return 0, false
}

// IsLog reports whether the algorithm keeps every booking, so that no window of any
// alignment ever holds more than Max: SlidingLog and StreamLog.
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

// An AlgorithmSet is a set of algorithms, with a bit for each. The zero set is empty.
type AlgorithmSet int

// With returns the set with one algorithm more.
func (s AlgorithmSet) With(a Algorithm) AlgorithmSet { return s | 1<<a }

// Has reports whether the algorithm is in the set.
func (s AlgorithmSet) Has(a Algorithm) bool { return s&(1<<a) != 0 }
