package main

import (
	"math/bits"
	"slices"
	"time"

	"github.com/ration-go/ration"
)

// admits is how many calls a limit admits, as early as can be, in a crawl of one
// account whose first call is at begin and whose last is span later.
//
// A log admits Max calls at the first instant, and Max more each time the window
// has passed: 500 per 5 s are 500 within 4.9 s, 1,000 within 5 s and 2,000 within
// 15.3 s. Fixed windows admit Max in each that is touched; weighted ones Max at
// first, and from the next edge on Max more evenly in each window; sub-windows
// Max each time that the last Max no longer count; and GCRA Burst at first, and
// evenly Max more in each window.
//
// With a margin it is what a caller reaches who keeps that free around a window.
func admits(l ration.Limit, margin time.Duration, begin time.Time, span time.Duration) int {
	end := begin.Add(span)
	switch {
	case l.Algorithm == ration.FixedWindow && !l.FirstUse:
		return l.Max * int(windowNumber(l, end)-windowNumber(l, begin)+1)
	case l.Algorithm == ration.SlidingWindow:
		// What is kept free at the end of one window is missing in the next too.
		return l.Max + proportion(l.Max, span-untilEdge(l, begin), l.Window+2*margin)
	case l.Algorithm == ration.SubWindows && margin > 0:
		return l.Max * (int(span/(l.Window+resolution(l)+margin)) + 1) // a slot is free up to one sub-window late
	case l.Algorithm == ration.SubWindows:
		step := resolution(l)
		span += time.Duration(begin.UnixNano()) % step
		if span < l.Window {
			return l.Max
		}
		return l.Max * (int((span-l.Window)/(l.Window/step*step)) + 2)
	case l.Algorithm == ration.GCRA:
		// The margin is taken out of the burst first, and what is left of it put between calls.
		each := l.Window / time.Duration(l.Max)
		if more := margin - time.Duration(max(1, l.Burst)-1)*each; margin > 0 && more > 0 {
			return 1 + int(span/(each+more))
		}
		burst := max(1, l.Burst-proportion(l.Max, margin, l.Window))
		return burst + proportion(l.Max, span, l.Window+margin)
	}
	return l.Max * (int(span/(l.Window+margin)) + 1)
}

// proportion is as much of n as part is of whole, rounded down; nothing of a
// negative part.
func proportion(n int, part, whole time.Duration) int {
	if part <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(n), uint64(part%whole)) // may be beyond 64 bits
	rest, _ := bits.Div64(high, low, uint64(whole))
	return n*int(part/whole) + int(rest)
}

// windowNumber counts the windows of a limit since 1970 on the clock of its zone.
func windowNumber(l ration.Limit, t time.Time) int64 {
	return int64(clock(l, t) / l.Window)
}

// untilEdge is the time from t to the next of these windows, if no clock is set.
func untilEdge(l ration.Limit, t time.Time) time.Duration {
	return l.Window - clock(l, t)%l.Window
}

// clock is what the clock of the limit's zone reads since it read 1970-01-01 00:00.
func clock(l ration.Limit, t time.Time) time.Duration {
	_, offset := t.In(zone(l)).Zone()
	return time.Duration(t.UnixNano()) + time.Duration(offset)*time.Second
}

// zone is the limit's, which was found when the limit was read.
func zone(l ration.Limit) *time.Location {
	if zone, err := time.LoadLocation(l.Zone); err == nil {
		return zone
	}
	return time.UTC
}

// resolution is the length of the limit's sub-windows.
func resolution(l ration.Limit) time.Duration {
	if l.Resolution > 0 {
		return l.Resolution
	}
	return max((l.Window / 60).Truncate(time.Microsecond), time.Microsecond)
}

// isExact reports whether the limit holds in windows of any alignment.
func isExact(l ration.Limit) bool {
	return l.Algorithm == ration.SlidingLog || l.Algorithm == ration.StreamLog
}

// isEven reports whether calls become free one by one and not a window's at once.
func isEven(l ration.Limit) bool {
	return l.Algorithm == ration.SlidingWindow || l.Algorithm == ration.GCRA
}

// allowed is how many calls limits admit. Of several the one that admits least
// decides, and is returned. Those of a part of the API do not count, which is not where most
// calls of a crawl go; if all are of parts the first counts.
func allowed(limits []ration.Limit, begin time.Time, span time.Duration) (int, ration.Limit) {
	var least ration.Limit
	most := -1
	for _, l := range limits {
		if l.Scope != "" {
			continue
		}
		if n := admits(l, 0, begin, span); most < 0 || n < most {
			most, least = n, l
		}
	}
	if most < 0 && len(limits) > 0 {
		most, least = admits(limits[0], 0, begin, span), limits[0]
	}
	return max(most, 0), least
}

// A tokenQuota is what the provider allowed a token.
type tokenQuota struct {
	calls    int
	deciding ration.Limit // of its limits
	own      bool         // it is not what the limits of the crawl allow
}

// quotaOf is what the provider allowed a token of the crawl: what it announced goes before what it
// was said to allow, what others spent of it is theirs, and a token that it rejects is
// allowed nothing more. What it accepted it allowed in any case.
func (t *statistics) quotaOf(of tokenStatistics, limits []ration.Limit, begin time.Time, span time.Duration) tokenQuota {
	id, accepted := of.token.ID(), len(of.sent)-of.refused
	var q tokenQuota
	for _, learned := range t.events.Limits {
		if learned.Token == id {
			limits, q.own = nil, true
			for _, text := range learned.Limits {
				if l, err := ration.ParseLimit(text); err == nil { // it was printed by the worker
					limits = append(limits, l)
				}
			}
		}
	}
	q.calls, q.deciding = allowed(limits, begin, span)
	if others := t.external[id]; others > 0 {
		q.calls, q.own = q.calls-others, true
	}
	for _, dead := range t.events.Quarantined {
		if dead.Token == id && (len(of.sent) == 0 || of.sent[len(of.sent)-1] <= dead.at.UnixMicro()) {
			q.calls, q.own = 0, true
		}
	}
	if q.own {
		q.calls = max(q.calls, accepted)
	}
	return q
}

// jain is Jain's fairness index of what each got: 1 if all got the same, 1/n if
// one got everything. Where nobody got anything all got the same.
func jain(got []int) float64 {
	var sum, squares float64
	for _, x := range got {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(got)) * squares)
}

// percentile is the smallest value that p percent of the values do not exceed.
// It sorts them.
func percentile(values []int64, p int) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := (len(values)*p + 99) / 100
	return values[max(rank, 1)-1]
}

// inWindow returns, for each of the ascending instants, how many lie within the
// window that ends with it: those exactly a window earlier do not.
func inWindow(instants []int64, window time.Duration) []int {
	counts := make([]int, len(instants))
	first := 0
	for i, at := range instants {
		for at-instants[first] >= window.Microseconds() {
			first++
		}
		counts[i] = i - first + 1
	}
	return counts
}
