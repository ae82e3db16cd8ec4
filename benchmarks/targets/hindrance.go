package main

import (
	"fmt"
	"strings"
)

// A part is a racer that does a part of what others must do.
type part struct{ name, what string }

// below tells which of some parts, the least first, takes more time than the bound
// allows of another racer, in all of its confidence interval: then nobody who does
// as much can be within it. It also tells how much more than that the slowest of ours
// takes.
func (r results) below(ours []string, of string, bound float64, parts ...part) string {
	for _, p := range parts {
		ratio := r.over(p.name, of)
		if low, _ := interval(ratio); low > bound {
			return fmt.Sprintf("%s takes %s %s, %s µs, and this %s that", p.what, quantity(median(ratio), "x"), of,
				number(median(r[p.name])), quantity(median(r.worst(worseOf, ours, p.name)), "x"))
		}
	}
	return ""
}

// above likewise tells which, the fastest first, makes fewer calls a second than the
// bound asks for of another racer, and how many of those the slowest of ours makes.
func (r results) above(ours []string, of string, bound float64, parts ...part) string {
	for _, p := range parts {
		ratio := r.over(p.name, of)
		if _, high := interval(ratio); high < bound {
			return fmt.Sprintf("%s make %s of it, %s/s, and these %s that", p.what, quantity(median(ratio), "x"),
				number(median(r[p.name])), quantity(median(r.worst(worse, ours, p.name)), "x"))
		}
	}
	return ""
}

// asleep tells what ours make of another racer where the cores are kept awake, if that meets
// it: then it is that they fall asleep that stands in the way.
func (r results) asleep(ours []string, of string, bound float64) string {
	var kept []string
	for _, name := range ours {
		kept = append(kept, name+onAwakeCores)
	}
	ratio := median(r.worst(worse, kept, of+onAwakeCores))
	if ratio < bound {
		return ""
	}
	figures := make([]string, len(kept))
	for i, name := range kept {
		figures[i] = number(median(r[name])) + "/s"
	}
	return fmt.Sprintf("the cores fall asleep between a script and the next: where a loop that gives way to all else keeps each awake, for theirs too, "+
		"these make %s of it, %s against %s/s", quantity(ratio, "x"), strings.Join(figures, " and "), number(median(r[of+onAwakeCores])))
}

// worst is the worst ratio of some racers to another, as the target counts worse.
func (r results) worst(worse func(a, b []float64) []float64, ours []string, of string) []float64 {
	ratio := r.over(ours[0], of)
	for _, name := range ours[1:] {
		ratio = worse(ratio, r.over(name, of))
	}
	return ratio
}

// dear tells that a part of the work alone takes more microseconds than the bound, in
// all of its confidence interval.
func dear(what string, cost []float64, bound float64) string {
	if low, _ := interval(cost); low > bound {
		return fmt.Sprintf("%s takes %s µs more over the same connection", what, number(median(cost)))
	}
	return ""
}

const (
	ofNothing = "a script that does nothing"
	ofLittle  = "a script that only reads the clock and two entries and adds one"
	ofLook    = "a script that only reads the clock and two entries"
	ofLeave   = ", called by another goroutine so that the caller can leave when a context ends,"
	ofToken   = "a RoundTripper that only clones the request and sets a header"
	ofLimit   = "a RoundTripper that does so and calls Wait of golang.org/x/time/rate"
)
