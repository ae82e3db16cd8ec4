package ration

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of what can be counted exactly: microseconds since the epoch and
// running totals are doubles in Redis's scripts, exact up to 2^53.
const (
	maxUnits  = 1_000_000_000_000
	minWindow = time.Millisecond
	maxWindow = 366 * 24 * time.Hour
)

// Algorithm is how a provider counts the calls of a limit.
type Algorithm int

const (
	// SlidingLog keeps every booking's slot: no window of any alignment ever
	// holds more than Max. It is the zero value, and how Instagram, Meta and
	// TikTok count. In Redis it costs about 113 bytes a booking (see
	// docs/design.md for the measurement).
	SlidingLog Algorithm = iota
)

// String returns the algorithm's name.
func (a Algorithm) String() string {
	if a == SlidingLog {
		return "SlidingLog"
	}
	return "Algorithm(" + strconv.Itoa(int(a)) + ")"
}

// A Limit is at most Max units of cost in any Window, counted as Algorithm
// says. A limit is a value: copy it freely.
type Limit struct {
	// Max is in units of cost; a call costs one unit unless it says
	// otherwise. From 1 to 10^12.
	Max int
	// Window is from a millisecond to 366 days, in whole microseconds.
	Window time.Duration
	// Algorithm is how the provider counts. Zero: SlidingLog.
	Algorithm Algorithm
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

// ParseLimit reads a limit as people write it: "5000/1h", "10/s", "100/15m",
// "1000/day". The part behind the slash is a time.Duration, or one of s, m, h,
// d, sec, second, min, minute, hour and day.
func ParseLimit(s string) (Limit, error) {
	count, window, found := strings.Cut(strings.TrimSpace(s), "/")
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
	if err := l.validate(maxWindow); err != nil {
		return Limit{}, fmt.Errorf("ration: limit %q: %w", s, err)
	}
	return l, nil
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

// String returns the limit as [ParseLimit] reads it.
func (l Limit) String() string {
	w := l.Window.String()
	if strings.HasSuffix(w, "m0s") {
		w = strings.TrimSuffix(w, "0s")
	}
	if strings.HasSuffix(w, "h0m") {
		w = strings.TrimSuffix(w, "0m")
	}
	return strconv.Itoa(l.Max) + "/" + w
}

//lint:file-ignore ST1005 these errors begin with the name of the field that they are about

func (l Limit) validate(longest time.Duration) error {
	switch {
	case l.Max < 1:
		return fmt.Errorf("Max is %d: it must be at least 1", l.Max)
	case l.Max > maxUnits:
		return fmt.Errorf("Max is %d: it must be at most %d; count in larger units", l.Max, maxUnits)
	case l.Window < minWindow:
		return fmt.Errorf("Window is %v: it must be at least %v", l.Window, minWindow)
	case l.Window > longest:
		return fmt.Errorf("Window is %v: it must be at most %v", l.Window, longest)
	case l.Window%time.Microsecond != 0:
		return fmt.Errorf("Window is %v: it must be a whole number of microseconds", l.Window)
	case l.Algorithm != SlidingLog:
		return fmt.Errorf("Algorithm is %v: it must be SlidingLog", l.Algorithm)
	}
	return nil
}

func validateLimits(limits []Limit, longest time.Duration) error {
	if len(limits) == 0 {
		return errors.New("there is no limit: name at least one, such as ration.PerHour(5000)")
	}
	if len(limits) > maxLimits {
		return fmt.Errorf("there are %d limits: at most %d apply to one account", len(limits), maxLimits)
	}
	for i, l := range limits {
		if err := l.validate(longest); err != nil {
			return fmt.Errorf("limit %d: %w", i+1, err)
		}
	}
	return nil
}

// maxLimits bounds the work of one booking.
const maxLimits = 16
