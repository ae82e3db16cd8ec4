package limit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

//lint:file-ignore ST1005 these errors begin with the name of the field that they are about

// Validate returns why the limit is malformed, or nil. The error begins with the name of
// the field.
func (l Limit) Validate() error {
	switch {
	case l.InFlight < 0 || l.InFlight > mostInFlight:
		return fmt.Errorf("InFlight is %d: it must be from 1 to %d, or 0 of a limit with a Window", l.InFlight, mostInFlight)
	case l.InFlight > 0 && l != Limit{InFlight: l.InFlight, Scope: l.Scope, Per: l.Per}:
		return errors.New("InFlight is set beside fields of another limit: such a limit has a Scope and Per, and nothing else")
	case l.InFlight > 0:
		l.Max, l.Window = 1, minWindow // which it has not
	}
	switch {
	case l.Max < 1:
		return fmt.Errorf("Max is %d: it must be at least 1", l.Max)
	case l.Max > MaxUnits:
		return fmt.Errorf("Max is %d: it must be at most %d; count in larger units", l.Max, MaxUnits)
	case l.Window < minWindow:
		return fmt.Errorf("Window is %v: it must be at least %v", l.Window, minWindow)
	case l.Window > MaxWindow:
		return fmt.Errorf("Window is %v: it must be at most %v", l.Window, MaxWindow)
	case l.Window%time.Microsecond != 0:
		return fmt.Errorf("Window is %v: it must be a whole number of microseconds", l.Window)
	case l.Margin%time.Microsecond != 0 && l.Margin > 0:
		return fmt.Errorf("Margin is %v: it must be a whole number of microseconds", l.Margin)
	case l.Margin > MaxMargin:
		return fmt.Errorf("Margin is %v: it must be at most %v", l.Margin, MaxMargin)
	case l.Unit != "" && !ValidUnit(l.Unit):
		return fmt.Errorf("Unit is %q: it must be 1 to 32 letters, digits, '-' and '_'", l.Unit)
	case l.Per != "" && (!ValidUnit(l.Per) || len(l.Per)+len(l.Unit) > maxPer):
		return fmt.Errorf("Per is %q: it must be letters, digits, '-' and '_', at most %d together with Unit", l.Per, maxPer)
	case l.Scope != "" && !ValidScope(l.Scope):
		return fmt.Errorf("Scope is %q: it must be 1 to 32 letters, digits, '-', '_' and '.'", l.Scope)
	}
	return l.validateAlgorithm()
}

// validateAlgorithm checks what belongs to one algorithm only.
func (l Limit) validateAlgorithm() error {
	_, known := algorithms[l.Algorithm]
	switch {
	case !known:
		return fmt.Errorf("Algorithm is %v: it must be one of the package's constants", l.Algorithm)
	case l.Burst != 0 && l.Algorithm != GCRA:
		return fmt.Errorf("Burst is %d: only GCRA has one, and Algorithm is %v", l.Burst, l.Algorithm)
	case l.Burst < 0 || l.Burst > l.Max:
		return fmt.Errorf("Burst is %d: it must be from 0 to Max, %d", l.Burst, l.Max)
	case l.Resolution != 0 && l.Algorithm != SubWindows:
		return fmt.Errorf("Resolution is %v: only SubWindows has one, and Algorithm is %v", l.Resolution, l.Algorithm)
	case l.Resolution != 0 && (l.Resolution < l.Window/maxSubWindows || l.Resolution > l.Window || l.Resolution%time.Microsecond != 0):
		return fmt.Errorf("Resolution is %v: it must be a whole number of microseconds, from a %dth of Window to Window", l.Resolution, maxSubWindows)
	case (l.Zone != "" || l.FirstUse) && l.Algorithm != FixedWindow:
		return fmt.Errorf("Zone and FirstUse are FixedWindow's only, and Algorithm is %v", l.Algorithm)
	case l.Zone != "" && l.FirstUse:
		return errors.New("Zone and FirstUse are both set: a window begins at one or the other")
	}
	if l.Zone != "" {
		if !knownZone(l.Zone) {
			return fmt.Errorf("Zone is %q: it must be an IANA time zone such as America/Los_Angeles, known on this machine (import time/tzdata to embed them)", l.Zone)
		}
	}
	return nil
}

// mostInFlight bounds InFlight.
const mostInFlight = 1_000_000

// ValidScope reports whether a scope is 1 to 32 letters, digits, '-', '_' and '.'.
func ValidScope(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.')
	})
}

// ValidUnit reports whether a unit is 1 to 32 letters, digits, '-' and '_'.
func ValidUnit(s string) bool { return ValidScope(s) && !strings.Contains(s, ".") }

// maxPer bounds Per and Unit together: a store has them, and a digest of the value, in the name of what counts them.
const maxPer = 20

// Split returns the limits that count the cost of all requests, and the others, which count other units, calls in flight, or each value
// of Per by itself, in their order.
func Split(limits []Limit) (cost, others []Limit) {
	if !slices.ContainsFunc(limits, func(l Limit) bool { return !l.countsCost() }) {
		return limits, nil
	}
	for _, l := range limits {
		if l.countsCost() {
			cost = append(cost, l)
		} else {
			others = append(others, l)
		}
	}
	return cost, others
}

// SplitInFlight returns the limits of calls in flight, and the others, in their order.
func SplitInFlight(limits []Limit) (inFlight, others []Limit) {
	for _, l := range limits {
		if l.InFlight > 0 {
			inFlight = append(inFlight, l)
		} else {
			others = append(others, l)
		}
	}
	return inFlight, others
}

func (l Limit) countsCost() bool { return l.Unit == "" && l.Per == "" && l.InFlight == 0 }

// ErrNone is what Validate returns if there is no limit.
var ErrNone = errors.New("there is no limit: name at least one, such as ration.PerHour(5000)")

// Validate returns why limits cannot be those of one account, or nil: one is malformed,
// there are none or more than 16, they name more than 6 scopes or have more than 2,000
// sub-windows, or two of them would share a count, since they differ in nothing but Max,
// Margin and Burst. Limits counted by a log may.
func Validate(limits []Limit) error {
	scopes, subWindows := 0, time.Duration(0)
	if len(limits) == 0 {
		return ErrNone
	}
	if len(limits) > maxLimits {
		return fmt.Errorf("there are %d limits: at most %d apply to one account", len(limits), maxLimits)
	}
	for i, l := range limits {
		if err := l.Validate(); err != nil {
			return fmt.Errorf("limit %d: %w", i+1, err)
		}
		for j, o := range limits[:i] {
			if o.InFlight > 0 && l.InFlight > 0 {
				if o.InFlight = l.InFlight; o == l {
					return fmt.Errorf("limits %d and %d differ in nothing but InFlight: keep the smaller", j+1, i+1)
				}
				continue
			}
			if o.Max, o.Margin, o.Burst = l.Max, l.Margin, l.Burst; o == l && !l.Algorithm.IsLog() {
				return fmt.Errorf("limits %d and %d differ in nothing but Max: keep the smaller", j+1, i+1)
			}
		}
		if l.Scope != "" && !slices.ContainsFunc(limits[:i], func(o Limit) bool { return o.Scope == l.Scope }) {
			scopes++
		}
		if l.Algorithm == SubWindows {
			subWindows += (l.Window + l.ResolutionOrDefault() - 1) / l.ResolutionOrDefault()
		}
	}
	if subWindows > maxAllSubWindows {
		return fmt.Errorf("the limits have %d sub-windows: at most %d can be counted in one step: give them a longer Resolution",
			subWindows, maxAllSubWindows)
	}
	if scopes > maxScopes {
		return fmt.Errorf("there are limits of %d scopes: at most %d can be kept in one step: "+
			"give limits that never cover the same request a Budget each", scopes, maxScopes)
	}
	return nil
}

// These bound the work of one booking. A log has a segment for each set of scopes that
// requests have.
const (
	maxLimits = 16
	maxScopes = 6
)
