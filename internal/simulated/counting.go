package simulated

import (
	"time"
)

// Counting is the way in which a Provider counts the calls of a token. Each is defined on the arrivals that count, in
// their order, of which two may be at the same moment. A call that would break the rule, or make one break it that
// came later and got here before it, is refused.
type Counting int

const (
	// CountByDialect is the way of the Dialect, which is CountLog with Instagram's. It is the zero value.
	CountByDialect Counting = iota

	// CountLog refuses a call that arrives less than Window after the Limit-th before it: no window of any alignment
	// holds more than Limit. It is exact.
	CountLog

	// CountFixedWindow refuses a call beyond Limit in one window. A window begins whenever the clock of Zone reads a
	// whole multiple of Window since 1970-01-01 00:00 on that clock: with a Window of 24 h at midnight. Where the clock
	// is set forward a window is cut short; where it is set back within one that is longer, and where it is set back
	// into an earlier one another begins. Up to twice Limit arrive within Window across the edge of two.
	CountFixedWindow

	// CountFirstUse refuses a call beyond Limit in one window. A window begins with the first call that arrives when
	// none is open, and is open for Window: one that arrives exactly Window later begins the next.
	CountFirstUse

	// CountWeighted refuses a call if the estimate, itself included, is beyond Limit. The estimate is
	//
	//	previous*(1 - elapsed/Window) + current
	//
	// where current is the number of calls so far in the window of the call, previous that in the window before, and
	// elapsed the time since the window began. Windows begin at whole multiples of Window since the epoch.
	CountWeighted

	// CountSubWindows refuses a call if the calls in the last Window/Resolution sub-windows, that of the call and
	// itself included, are more than Limit. Sub-windows begin at whole multiples of Resolution since the epoch, and
	// those count that begin less than Window before the call. So a call counts up to one Resolution less long than
	// Window, and a window of other alignment can hold more than Limit.
	CountSubWindows

	// CountGCRA refuses a call that arrives before TAT - (Burst-1)*T, where T is Window/Limit. If it is not refused then
	// TAT, the theoretical arrival time of the next, becomes the later of TAT and the arrival, and T more. So Burst
	// calls are let in at once after a rest, and one more every T.
	CountGCRA
)

// A rule is a Counting with its parameters. It looks at a log of one token, and the fields of a rule do not change: one
// serves all tokens.
type rule interface {
	// mark is what is to be remembered of the call at that place: it follows from the call and those before it.
	mark(a *arrivals, place int) int64
	// room is how many more calls could arrive together with the call at that place; negative: it is one too many.
	// Far beyond the limit the number says only that it is beyond.
	room(a *arrivals, place int) int
	// bears reports whether the call at that place matters to a later one. If not to one then to none after it.
	bears(a *arrivals, place, later int) bool
	// roomAt is the moment from which one more call is within quota if none comes before. The log must be full.
	roomAt(a *arrivals) time.Duration
	// fullAt is the moment from which nothing that came before counts, if none comes. The log must not be empty.
	fullAt(a *arrivals) time.Duration
}

// rule is how the quota is judged. p.mu must be held.
func (p *Provider) rule() rule {
	limit, window := p.limit(), p.window()
	switch p.count() {
	case CountFixedWindow:
		return expiry{limit, fixedWindow{&p.start, window, p.zone()}.end}
	case CountFirstUse:
		return firstUse{limit, window}
	case CountWeighted:
		return weighted{&p.start, limit, window}
	case CountSubWindows:
		steps := fixedWindow{&p.start, p.resolution(), time.UTC}
		return expiry{limit, func(at time.Duration) time.Duration { return steps.begin(at) + window }}
	case CountGCRA:
		return gcra{limit: limit, window: window, burst: p.burst()}
	}
	return slidingLog(limit, window)
}

// slidingLog is the rule of CountLog, by which every Provider measures, however it judges.
func slidingLog(limit int, window time.Duration) rule {
	return expiry{limit, func(at time.Duration) time.Duration { return at + window }}
}

// depth is how many calls at most one window can hold of calls that are within quota. It is Limit for an exact count
// and up to twice that for others.
func (p *Provider) depth() int {
	if p.count() == CountLog {
		return p.limit()
	}
	return 2 * p.limit()
}

// count is the way in which calls are counted.
func (p *Provider) count() Counting {
	if p.Count == CountByDialect {
		return p.dialect().usual().count
	}
	return p.Count
}

// burst is that of CountGCRA. The bucket of a dialect is as large as its limit.
func (p *Provider) burst() int {
	byDefault := 1
	if p.Count == CountByDialect {
		byDefault = p.limit()
	}
	return min(positiveOr(p.Burst, byDefault), p.limit())
}

func (p *Provider) resolution() time.Duration {
	return min(positiveOr(p.Resolution, max(p.window()/60, 1)), p.window())
}

func (p *Provider) zone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone
}
