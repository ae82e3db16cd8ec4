// Package limit says how a provider limits calls: at most so many units of cost in
// any window, counted by one of several algorithms.
package limit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of what can be counted exactly: microseconds since the epoch and
// running totals are doubles in Redis's scripts, exact up to 2^53. The sum of two
// numbers of units fits into an int, also of 32 bits.
const (
	MaxUnits  = min(1_000_000_000_000, math.MaxInt/2)
	minWindow = time.Millisecond
	MaxWindow = 366 * 24 * time.Hour
	MaxMargin = 24 * time.Hour
)

// A Limit is at most Max units of cost in any Window, counted as Algorithm
// says. A limit is a value: copy it freely.
type Limit struct {
	// Max is in units of cost; a call costs one unit unless it says
	// otherwise. From 1 to 10^12, or to 2^30 - 1 if an int has 32 bits.
	Max int
	// Window is from a millisecond to 366 days, in whole microseconds.
	Window time.Duration
	// Algorithm is how the provider counts. Zero: SlidingLog.
	Algorithm Algorithm
	// Scope names the requests that the limit covers: those whose scopes have
	// it, as [WithScopes] or [Transport.Scope] says. 1 to 32 letters, digits,
	// '-', '_' and '.'. Empty: all requests. The limits of an account name at most 6.
	Scope string

	// Burst is, for GCRA, how many units may leave at once after a rest. Zero:
	// 1, each unit an even share of the window behind the last. At most Max.
	Burst int
	// Resolution is, for SubWindows, the length of a sub-window, in whole
	// microseconds. Zero: a sixtieth of the window. At most 1,000 to a window, and
	// 2,000 to all windows of an account.
	Resolution time.Duration
	// Zone is, for FixedWindow, the IANA time zone in which windows are
	// aligned: with "America/Los_Angeles" a Window of 24 h is from midnight to
	// midnight there, 23 or 25 h long when the clocks change. Empty: UTC.
	Zone string
	// FirstUse tells, for FixedWindow, that a window begins with the first call
	// after the last one ended, or where [Budget.Reset] says.
	FirstUse bool

	// Margin is what is kept free around a window, because the provider
	// counts a call when it arrives. Zero: [Budget.Margin]; to a [Store], none.
	// Negative: none. At most 24 h.
	Margin time.Duration
}

// PerSecond returns a limit of n units in any second.
func PerSecond(n int) Limit { return Limit{Max: n, Window: time.Second} }

// PerMinute returns a limit of n units in any minute.
func PerMinute(n int) Limit { return Limit{Max: n, Window: time.Minute} }

// PerHour returns a limit of n units in any hour.
func PerHour(n int) Limit { return Limit{Max: n, Window: time.Hour} }

// PerDay returns a limit of n units in any 24 hours.
func PerDay(n int) Limit { return Limit{Max: n, Window: 24 * time.Hour} }

// Using returns the limit counted by a.
func (l Limit) Using(a Algorithm) Limit {
	l.Algorithm = a
	return l
}

// Parse reads a limit as people write it: "5000/1h", "10/s", "100/15m",
// "1000/day". The part behind the slash is a time.Duration, or one of s, m, h,
// d, sec, second, min, minute, hour and day. Behind a colon may follow the
// algorithm, and what else there is to say of it, between commas:
//
//	100/s:gcra,burst=10
//	100000/day:sub-windows,resolution=10m
//	10000/day:fixed-window,zone=America/Los_Angeles
//	5000/h:fixed-window,first-use
//	30/m:fixed-window,scope=search
func Parse(s string) (Limit, error) {
	text, more, _ := strings.Cut(s, ":")
	count, window, found := strings.Cut(strings.TrimSpace(text), "/")
	if !found {
		return Limit{}, fmt.Errorf("ration: limit %q: write it as MAX/WINDOW, such as 5000/1h", s)
	}
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil {
		return Limit{}, fmt.Errorf("ration: limit %q: %q is not a whole number of calls", s, count)
	}
	w, err := parseWindow(strings.TrimSpace(window))
	if err != nil {
		return Limit{}, fmt.Errorf("ration: limit %q: %q is not a window: write a duration such as 1h, 15m or 10s", s, window)
	}
	l := Limit{Max: n, Window: w}
	if len(text) < len(s) {
		if err := l.parseMore(more); err != nil {
			return Limit{}, fmt.Errorf("ration: limit %q: %w", s, err)
		}
	}
	if err := l.Validate(); err != nil {
		return Limit{}, fmt.Errorf("ration: limit %q: %w", s, err)
	}
	return l, nil
}

// parseMore reads what stands behind the colon.
func (l *Limit) parseMore(text string) (err error) {
	name, options, _ := strings.Cut(text, ",")
	if l.Algorithm, err = parseAlgorithm(strings.TrimSpace(name)); err != nil {
		return err
	}
	if options == "" {
		return nil
	}
	for option := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(option), "=")
		switch key {
		case "burst":
			if l.Burst, err = strconv.Atoi(value); err != nil {
				return fmt.Errorf("burst=%s: %q is not a whole number of units", value, value)
			}
		case "resolution":
			if l.Resolution, err = parseWindow(value); err != nil {
				return fmt.Errorf("resolution=%s: write a duration such as 10s", value)
			}
		case "margin":
			if l.Margin, err = time.ParseDuration(value); err != nil {
				return fmt.Errorf("margin=%s: write a duration such as 100ms", value)
			}
		case "zone":
			l.Zone = value
		case "scope":
			l.Scope = value
		case "first-use":
			l.FirstUse = true
		default:
			return fmt.Errorf("%q is none of burst=N, resolution=DURATION, zone=NAME, first-use, scope=NAME and margin=DURATION", option)
		}
	}
	return nil
}

func parseWindow(s string) (time.Duration, error) {
	switch strings.ToLower(s) {
	case "s", "sec", "second":
		return time.Second, nil
	case "m", "min", "minute":
		return time.Minute, nil
	case "h", "hour":
		return time.Hour, nil
	case "d", "day":
		return 24 * time.Hour, nil
	}
	if days, found := strings.CutSuffix(s, "d"); found {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 366 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(s)
}

// String returns the limit as [Parse] reads it.
func (l Limit) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%s", l.Max, shortly(l.Window))
	if l == (Limit{Max: l.Max, Window: l.Window}) {
		return b.String()
	}
	b.WriteString(":" + l.Algorithm.name())
	if l.Burst != 0 {
		fmt.Fprintf(&b, ",burst=%d", l.Burst)
	}
	if l.Resolution != 0 {
		fmt.Fprintf(&b, ",resolution=%s", shortly(l.Resolution))
	}
	if l.Zone != "" {
		fmt.Fprintf(&b, ",zone=%s", l.Zone)
	}
	if l.FirstUse {
		b.WriteString(",first-use")
	}
	if l.Scope != "" {
		fmt.Fprintf(&b, ",scope=%s", l.Scope)
	}
	if l.Margin != 0 {
		fmt.Fprintf(&b, ",margin=%s", shortly(l.Margin))
	}
	return b.String()
}

// shortly writes a duration without the zeros at its end.
func shortly(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

//lint:file-ignore ST1005 these errors begin with the name of the field that they are about

func (l Limit) Validate() error {
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
	case !ValidScope(l.Scope) && l.Scope != "":
		return fmt.Errorf("Scope is %q: it must be 1 to 32 letters, digits, '-', '_' and '.'", l.Scope)
	}
	return l.validateAlgorithm()
}

// validateAlgorithm checks what belongs to one algorithm only.
func (l Limit) validateAlgorithm() error {
	_, known := AlgorithmsOf[l.Algorithm]
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

func ValidScope(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.')
	})
}

// burst is how many units GCRA lets leave at once.
func (l Limit) BurstOrDefault() int { return max(1, l.Burst) }

// resolution is the length of a sub-window, in whole microseconds.
func (l Limit) ResolutionOrDefault() time.Duration {
	if l.Resolution == 0 {
		return max(l.Window/defaultSubWindows, time.Microsecond).Truncate(time.Microsecond)
	}
	return l.Resolution
}

const defaultSubWindows = 60

// margin is what a store keeps free.
func (l Limit) MarginOrDefault() time.Duration { return max(0, l.Margin) }

// Join lists limits in a sentence: "100 in 1h0m0s and 10 in 1s".
func Join(limits []Limit) string {
	all := make([]string, len(limits))
	for i, l := range limits {
		all[i] = l.String()
	}
	return strings.Join(all, " and ")
}

func Validate(limits []Limit) error {
	scopes, subWindows := 0, time.Duration(0)
	if len(limits) == 0 {
		return errors.New("there is no limit: name at least one, such as ration.PerHour(5000)")
	}
	if len(limits) > maxLimits {
		return fmt.Errorf("there are %d limits: at most %d apply to one account", len(limits), maxLimits)
	}
	for i, l := range limits {
		if err := l.Validate(); err != nil {
			return fmt.Errorf("limit %d: %w", i+1, err)
		}
		for j, o := range limits[:i] {
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

// These bound the work of one booking. A log has a run of entries for each set of
// scopes that requests have.
const (
	maxLimits = 16
	maxScopes = 6
)

// atOnce is how many units a limit allows at once.
func (l Limit) Capacity() int {
	if l.Algorithm == GCRA {
		return l.BurstOrDefault()
	}
	return l.Max
}
