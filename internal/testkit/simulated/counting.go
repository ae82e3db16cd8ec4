package simulated

import (
	"time"
)

// Counting is how a Provider counts the calls of a token. Each rule is defined on the arrivals that count, in order;
// two may arrive at the same moment. A call is refused if it would break the rule, or if a call that arrived later and
// was judged earlier would then break it.
type Counting int

const (
	// CountByDialect counts as the Dialect does: by CountLog for Instagram. It is the zero value.
	CountByDialect Counting = iota

	// CountLog refuses a call that arrives less than Window after the Limit-th before it: no window of any alignment
	// holds more than Limit. It is exact.
	CountLog

	// CountFixedWindow refuses a call beyond Limit in one window. A window begins whenever the clock of Zone reads a
	// whole multiple of Window since 1970-01-01 00:00 on that clock: with a Window of 24 h at midnight. If the clock is
	// set forward, a window is cut short. If it is set back within a window, that window is longer; if it is set back
	// into an earlier window, another begins. Up to twice Limit can arrive within Window across the edge of two.
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

	// CountSubWindows refuses a call if the last Window/Resolution sub-windows, up to that of the call, hold more than
	// Limit calls with it. Sub-windows begin at whole multiples of Resolution since the epoch, and count if they begin
	// less than Window before the call. So a call counts for Window, or up to one Resolution less, and a window of
	// another alignment can hold more than Limit.
	CountSubWindows

	// CountGCRA refuses a call that arrives before TAT - (Burst-1)*T, where T is Window/Limit. After a call that it
	// accepts, TAT, the theoretical arrival time of the next, is T after the later of TAT and the arrival. So after a
	// rest Burst calls are accepted at once, and one more every T.
	CountGCRA
)

// A rule is a Counting with its parameters. It judges the log of one token. Its fields do not change, so that one rule
// serves all tokens.
type rule interface {
	// state returns what the rule keeps of the call at that place. It follows from the call and those before it.
	state(a *arrivals, place int) int64
	// room returns how many more calls could arrive together with the call at that place. It is negative if the call
	// is beyond the limit, and by how much then means nothing.
	room(a *arrivals, place int) int
	// affects reports whether the call at that place counts for a later one. If it does not count for one, it counts
	// for none after that.
	affects(a *arrivals, place, later int) bool
	// roomAt returns the moment from which one more call is within quota if none comes before. The log must be full.
	roomAt(a *arrivals) time.Duration
	// fullAt returns the moment from which no call in the log counts, if no other comes. The log must not be empty.
	fullAt(a *arrivals) time.Duration
}

// rule returns the rule by which the quota is judged. p.mu must be held.
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

// slidingLog returns the rule of CountLog. Every Provider measures MaxInWindow by it, whatever its Count.
func slidingLog(limit int, window time.Duration) rule {
	return expiry{limit, func(at time.Duration) time.Duration { return at + window }}
}

// depth returns how many calls within quota a window can hold at most: Limit for an exact count, and up to twice that
// for others.
func (p *Provider) depth() int {
	if p.count() == CountLog {
		return p.limit()
	}
	return 2 * p.limit()
}

// count returns how calls are counted.
func (p *Provider) count() Counting {
	if p.Count == CountByDialect {
		return p.dialect().usual().count
	}
	return p.Count
}

// burst returns the burst of CountGCRA. The bucket of a dialect is as large as its limit.
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
