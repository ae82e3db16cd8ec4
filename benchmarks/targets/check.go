package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// A row is a row of the table of targets.
type row struct {
	number int
	what   string
	run    measurement
}

// A check is one target of a row, and what was measured for it.
type check struct {
	row      int
	what     string
	measured []float64 // one for each round
	target   target
	figures  string // the absolute figures behind it
	// hindrance is what stands in the way: empty unless a measurement of the same
	// run shows that no limiter could meet the target on this machine.
	hindrance string
}

// A target is a bound in some unit.
type target struct {
	bound   float64
	unit    string
	atLeast bool
}

func atLeast(bound float64, unit string) target { return target{bound, unit, true} }
func atMost(bound float64, unit string) target  { return target{bound, unit, false} }

// String is as the table has it.
func (t target) String() string {
	switch {
	case t.atLeast:
		return "at least " + quantity(t.bound, t.unit)
	case t.bound == 0:
		return "none"
	default:
		return "at most " + quantity(t.bound, t.unit)
	}
}

// summary is the median of the rounds, and how sure it is.
func (c check) summary() benchmath.Summary { return summarize(c.measured) }

// summarize leaves the rounds in their order, by which ratios are made: benchmath
// sorts what it is given.
func summarize(rounds []float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(rounds), &benchmath.DefaultThresholds), 0.95)
}

// met judges by the median.
func (c check) met() bool {
	center := c.summary().Center
	if c.target.atLeast {
		return center >= c.target.bound
	}
	return center <= c.target.bound
}

// value is the median and, of several rounds, where it lies.
func (c check) value() string {
	return spread(c.measured, c.target.unit)
}

func spread(rounds []float64, unit string) string {
	center := quantity(median(rounds), unit)
	if len(rounds) == 1 {
		return center
	}
	low, high := interval(rounds)
	return fmt.Sprintf("%s (%s to %s)", center, number(low), number(high))
}

// interval is where the median lies with a confidence of 95 %, or of too few rounds
// for that where all of them do.
func interval(rounds []float64) (low, high float64) {
	s := summarize(rounds)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return slices.Min(rounds), slices.Max(rounds)
	}
	return s.Lo, s.Hi
}

// quantity is a number with its unit.
func quantity(v float64, unit string) string {
	return strings.TrimSpace(number(v) + " " + unit)
}

// number has three digits that count, or all before the point, with commas
// between thousands.
func number(v float64) string {
	decimals := 0
	switch abs := math.Abs(v); {
	case abs == 0 || abs >= 100:
	case abs >= 10:
		decimals = 1
	case abs >= 1:
		decimals = 2
	default:
		decimals = 3
	}
	s := fmt.Sprintf("%.*f", decimals, v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	whole, rest, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}

// worse returns the ratios that are less favourable by their median, of a target
// that is a lower bound.
func worse(a, b []float64) []float64 {
	if summarize(b).Center < summarize(a).Center {
		return b
	}
	return a
}

// worseOf likewise, of one that is an upper bound.
func worseOf(a, b []float64) []float64 {
	if summarize(b).Center > summarize(a).Center {
		return b
	}
	return a
}

// median is that of benchmath.
func median(rounds []float64) float64 { return summarize(rounds).Center }
