// Package limit says how a provider limits calls: at most so many units of cost in
// any window, counted by one of several algorithms.
package limit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bounds of what can be counted exactly: microseconds since the epoch and
// running totals are doubles in Redis's scripts, exact up to 2^53.
const (
	// MaxUnits is the largest Max of a limit and the largest cost. The sum of two numbers
	// of units fits into an int, also of 32 bits.
	MaxUnits = min(1_000_000_000_000, math.MaxInt/2)
	// MaxWindow is the longest Window.
	MaxWindow = 366 * 24 * time.Hour
	// MaxMargin is the largest Margin.
	MaxMargin = 24 * time.Hour

	minWindow = time.Millisecond
)

// A Limit is at most Max units of cost in any Window, counted as Algorithm
// says; or, with InFlight, at most so many calls at once. A limit is a value: copy it freely.
type Limit struct {
	// Max is how many units of cost a window holds; a call costs one unit unless it says
	// otherwise. Required without InFlight: from 1 to 10^12, or to 2^30 - 1 if an int has 32 bits.
	Max int
	// Window is how long a unit counts. Required: from a millisecond to 366 days, in whole
	// microseconds.
	Window time.Duration
	// Unit is what is counted: "tokens" of a language model, "points", or what else a request has any number of. 1 to 32
	// letters, digits, '-' and '_'. Empty: units of cost, which are calls unless a call says otherwise. A Budget counts each
	// unit by itself, whatever a request costs: ration.WithUnits says how many it has.
	Unit string
	// Per names what the provider counts apart, each value by itself: "route", "operation", "endpoint". The limit is then one for
	// each value, made at its first use. ration.WithKey or a Provider's Keys say which value a request has. Letters, digits, '-'
	// and '_', and at most 20 together with Unit. Empty: all requests count together.
	Per string
	// Algorithm is how the provider counts. Zero: SlidingLog.
	Algorithm Algorithm
	// Scope names the requests that the limit covers: those that have it among their
	// scopes. 1 to 32 letters, digits, '-', '_' and '.'. Empty: all requests. The limits
	// of an account name at most 6.
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
	// FirstUse says, for FixedWindow, that a window begins with the first call
	// after the last one ended, or when a budget's Reset says so. Zero: by the clock.
	FirstUse bool

	// InFlight is how many calls may be on their way at once, at most 10^6: from when they are sent until the body of the response is
	// closed, or ration.Grant.Done is called, whatever they cost. Such a limit has a Scope and Per, and nothing else, and stands
	// beside one of calls in a Window. Zero: the limit is of a Window.
	InFlight int

	// Margin is what is kept free around a window, because the provider
	// counts a call when it arrives. Zero: the budget's Margin; to a store, none.
	// Negative: none. At most 24 h. A caller may be late for its slot by half the smallest margin
	// of all limits that it is charged to; as late as it likes if one of its account's has none.
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
//	90000/m:unit=tokens
//	100/inflight
//	4/inflight:per=model
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
	l := Limit{InFlight: n}
	if strings.TrimSpace(window) != inFlight {
		l = Limit{Max: n}
		if l.Window, err = parseWindow(strings.TrimSpace(window)); err != nil {
			return Limit{}, fmt.Errorf("ration: limit %q: %q is not a window: write a duration such as 1h, 15m or 10s, or inflight", s, window)
		}
	} else if n < 1 {
		return Limit{}, fmt.Errorf("ration: limit %q: InFlight is %d: it must be at least 1", s, n)
	}
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

// inFlight stands in place of a window.
const inFlight = "inflight"

// parseMore reads what stands behind the colon.
func (l *Limit) parseMore(text string) (err error) {
	options := text
	if name, others, _ := strings.Cut(text, ","); !strings.Contains(name, "=") {
		if l.Algorithm, err = parseAlgorithm(strings.TrimSpace(name)); err != nil {
			return err
		}
		options = others
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
		case "unit":
			l.Unit = value
		case "per":
			l.Per = value
		case "first-use":
			l.FirstUse = true
		default:
			return fmt.Errorf("%q is none of burst=N, resolution=DURATION, zone=NAME, first-use, scope=NAME, unit=NAME, per=NAME and margin=DURATION", option)
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
	if l.InFlight != 0 {
		fmt.Fprintf(&b, "%d/%s", l.InFlight, inFlight)
	} else {
		fmt.Fprintf(&b, "%d/%s", l.Max, shortly(l.Window))
	}
	if l == (Limit{Max: l.Max, Window: l.Window, InFlight: l.InFlight}) {
		return b.String()
	}
	if l == (Limit{InFlight: l.InFlight, Scope: l.Scope}) && l.InFlight != 0 {
		return b.String() + ":scope=" + l.Scope
	}
	var parts []string
	if l.Algorithm != SlidingLog || l.Unit == "" && l.Per == "" {
		parts = append(parts, l.Algorithm.name())
	}
	if l.Unit != "" {
		parts = append(parts, "unit="+l.Unit)
	}
	if l.Per != "" {
		parts = append(parts, "per="+l.Per)
	}
	b.WriteString(":" + strings.Join(parts, ","))
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

// BurstOrDefault returns Burst, or 1 if it is zero: the units that GCRA lets leave at once.
func (l Limit) BurstOrDefault() int { return max(1, l.Burst) }

// ResolutionOrDefault returns Resolution, or a sixtieth of the window if it is zero, in
// whole microseconds: the length of a sub-window.
func (l Limit) ResolutionOrDefault() time.Duration {
	if l.Resolution == 0 {
		return max(l.Window/defaultSubWindows, time.Microsecond).Truncate(time.Microsecond)
	}
	return l.Resolution
}

const defaultSubWindows = 60

// MarginOrDefault returns the Margin that a store keeps, which is never negative.
func (l Limit) MarginOrDefault() time.Duration { return max(0, l.Margin) }

const (
	minMargin   = 10 * time.Millisecond
	maxMargin   = time.Second
	marginShare = 100 // a hundredth of the window
	// Of GCRA a quarter of the time that the burst covers, which costs a quarter of the burst once and
	// no rate; or, if that is more, a tenth of a spacing up to mostAdded, which lowers the rate.
	burstShare   = 4
	spacingShare = 10
	mostAdded    = 50 * time.Millisecond
)

// DefaultMargin returns the Margin that a ration.Budget gives a limit if nobody has set one: see
// ration.Budget.Margin. The limit must be valid. One of calls in flight has none.
func (l Limit) DefaultMargin() time.Duration {
	if l.InFlight > 0 {
		return 0
	}
	margin := max(l.Window/marginShare, minMargin)
	if l.Algorithm == GCRA { // by what a bucket does, however its rate is written
		spacing := l.Window / time.Duration(l.Max)
		covered := min(time.Duration(l.BurstOrDefault()-1), l.Window/spacing) * spacing
		margin = max(covered/burstShare, min(spacing/spacingShare, mostAdded))
	}
	return min(margin, maxMargin).Truncate(time.Microsecond)
}

// Join lists limits for a message, as String writes each: "100/1h and 10/1s".
func Join(limits []Limit) string {
	all := make([]string, len(limits))
	for i, l := range limits {
		all[i] = l.String()
	}
	return strings.Join(all, " and ")
}

// Capacity returns how many units the limit lets leave at once after a rest: Max, Burst
// of GCRA, or InFlight.
func (l Limit) Capacity() int {
	switch {
	case l.InFlight > 0:
		return l.InFlight
	case l.Algorithm == GCRA:
		return l.BurstOrDefault()
	}
	return l.Max
}
